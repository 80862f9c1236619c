"""`path.rule=paper`: the epsilon-approximate path of O16 (section 4, Alg. 6, 7).

w^j with the dual point rescaled towards the truth has gap g + (1 - rho) (R - g) at rho lambda_j, first order in the step;
R - g is the paper's Delta. The next breakpoint is where that reaches eps: rho = 1 - (eps - g) / (R - g). (Alg. 7 as
printed in the supplement has its two branches swapped; the main text is right.) The path ends once R <= eps. Above the
first breakpoint the gap of (lambda_1 / lambda) w^1 with the same alpha is convex in the factor: g at 1 and R_0 - ell
at 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from gapwise.stages.solver.objective import Certificate
from gapwise.stages.solver.options import PathOptions
from gapwise.stages.solver.packed import number
from gapwise.stages.solver.path.capabilities import Capabilities
from gapwise.stages.solver.path.descend import (
    Descending,
    below_first,
    just_above,
    next_down,
    stepwise_model,
    to_zero,
)
from gapwise.stages.solver.path.rule import Following, PathStart, Solved

if TYPE_CHECKING:
    from gapwise.stages.problems.parallel import Spread
    from gapwise.stages.problems.protocol import Problem


class Paper(Descending):
    """Breakpoints where the rescaled dual point has a gap of eps."""

    capabilities = Capabilities(kappa=0.9, starts_exactly=True, stale_steps=True)

    @classmethod
    def start(cls, problem: Problem, path: PathOptions, spread: Spread) -> PathStart:
        """lambda_inf = (||psi~||^2 + mean_i max_y <-psi~, psi_i(y)>) / (kappa eps): O16 Alg. 6, l. 1-6."""
        from gapwise.stages.solver.path.start import paper_start

        return paper_start(problem, path, spread)

    @staticmethod
    def lower_root(point: Certificate, eps: float) -> float:
        """rho lambda (O16 Alg. 7)."""
        return point.lam * (1.0 - (eps - point.gap) / (point.hinge - point.gap))

    def warm_start(self) -> str:
        """w stays; alpha moves towards the truth."""
        return "keep_primal"

    def following(self, solved: Solved) -> Following:
        """The lower end."""
        return next_down(self, solved)

    def model(self, solved: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Each breakpoint's w down to the next one; above the first (lambda_1 / lambda) w^1."""
        first = float(solved["lambda"][0])
        return stepwise_model(solved, [(0, just_above(first), (0.0, 1.0), first)])

    @classmethod
    def bound(cls, arrays: Mapping[str, np.ndarray], attrs: Mapping[str, object], lam: np.ndarray) -> np.ndarray:
        """The certified bound on the gap at `lam`, nan where nothing is certified."""
        first, gap, ell = (float(arrays[name][0]) for name in ("lambda", "gap", "loss_dual"))
        s = first / lam
        above = s * gap + (1.0 - s) * (number(attrs, "hinge_at_zero") - ell)

        def at_or_below(above: Mapping[str, np.ndarray], x: np.ndarray) -> np.ndarray:
            first_order = above["gap"] + (1 - x / above["lambda"]) * (above["hinge"] - above["gap"])
            return np.where(above["lambda_low"] <= 0.0, to_zero(above, x), first_order)

        return np.where(lam > first, above, below_first(arrays, lam, at_or_below))


RULE = Paper
