"""Exact passes alternate with cached passes until the cached gap is about half the exact one: S15 without its clock.

S15 Alg. 3 alternates an exact pass with approximate passes over the cached planes as long as these gain more per second.
Here cached passes end when their gap is below `acceleration.inner_target` of the exact pass's gap, so that runs repeat. All
steps are pairwise, and all labellings that have weight are candidates. S15's own rule, steps and working sets: `mpbcfw`.
"""

from __future__ import annotations

from gapwise.stages.solver.cached_passes import MOST_CACHED_PASSES, CachedPasses, CachedPassOptions

Options = CachedPassOptions


class MultiplaneHalf(CachedPasses):
    """No proximal term, no momentum: w is always w(alpha)."""

    def outer(self, tolerance: float, relative: bool) -> None:
        """One moving exact pass and the cached passes after it."""
        self.moving_pass()
        dual, _ = self.dual_and_excess()
        estimate = self.known_gap
        if estimate <= self.left_for_oracle(tolerance * (max(dual, 0.0) if relative else 1.0)):
            self.at.exact_due = True
            return
        options = self.options.acceleration
        self.state.skip[:] = 0
        for _ in range(MOST_CACHED_PASSES):
            self.cached_round(options.skip_share * estimate / self.problem.n)
            if self.known_gap <= options.inner_target * estimate:
                break
        if self.limit():
            self.at.exact_due = True


METHOD = MultiplaneHalf
