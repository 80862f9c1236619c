"""Block-coordinate Frank-Wolfe without line search: the step gamma = 2n / (k + 2n) of LJ13 Alg. 4.

Step k = 0, 1, ... at one lambda draws a block i, calls its max-oracle and moves along delta = m(y*) - mu_i by gamma:

    mu_i <- mu_i + gamma delta,    ell_i <- ell_i + gamma (L_i(y*) - ell_i),    v <- v - (gamma / lambda n) B_i delta.

The dual objective may fall in a step, but E[D* - D] <= 2n (C + D* - D_0) / (k + 2n) after k of them, with the curvature
C <= 4 R^2 / (lambda n), R = max ||psi_i(y)|| (LJ13 Theorem 2). Everything else is `methods.bcfw`: sampling, the weighted
average, and the exact passes that certify. k begins anew at every lambda, so that the first steps there are long.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from numba import njit

from gapwise.stages.problems.compiled import driver
from gapwise.stages.problems.inner import inner
from gapwise.stages.problems.protocol import JIT, PLAIN
from gapwise.stages.solver.block.sampling import draw
from gapwise.stages.solver.block.step import Choice, look, move
from gapwise.stages.solver.block.views.features import by_features
from gapwise.stages.solver.block_method import block_method
from gapwise.stages.solver.codes import AVERAGED, DONE, FW, STEPS, SUM_REACHED
from gapwise.stages.solver.iterate import Iterate
from gapwise.stages.solver.loop import reason_to_return
from gapwise.stages.solver.methods.bcfw import SPECS, Bcfw, setup_of
from gapwise.stages.solver.options import BcfwOptions, CacheOptions, check
from gapwise.stages.solver.schedule import Schedule
from gapwise.stages.solver.supports import insert


@dataclass
class Options(BcfwOptions):
    """Those of `bcfw` that go with a fixed step towards the oracle's vertex."""

    step: str = "fw"
    sampler: str = "uniform"

    def check(self) -> None:
        """Raises ValueError naming the key."""
        BcfwOptions.check(self)
        plain = {"step": "fw"}
        for name, only in plain.items():
            value = getattr(self, name)
            check(f"solver.{name}", value, value == only, f"{str(only).lower()}, for method={self.method}")
        kind = self.cache.kind
        check("solver.cache.kind", kind, kind == CacheOptions().kind, f"none, for method={self.method}")


@inner(**PLAIN)
def fixed_step(P, S, V, flags, i):
    """One step of block i by 2n / (k + 2n), k being the steps at this lambda; V is the view by features (LJ13 Alg. 4).

    Not `block.step.step`: it searches no line, and moves even where the slope is negative.
    """
    n = S.ell.size
    gamma = 2.0 * n / (S.counters[AVERAGED] + 2.0 * n)
    S.counters[STEPS] += 1
    seen = look(P, S, V, flags, i, 0)
    target, h, loss = V.ask_oracle(P, S, flags, i, seen.base)
    if target < 0:
        target = insert(S.pool, i, V.y[: P.label_ptr[i + 1] - P.label_ptr[i]], loss, flags.capacity)
    S.pool.used[target] = S.counters[STEPS]
    norm2 = V.measure_move(P, S, flags, i, FW, target, -1)
    move(P, S, V, flags, i, Choice(FW, gamma, h - seen.base, norm2), target, -1, loss)
    S.counters[AVERAGED] += 1
    V.end_visit(P, S, flags, i)


@driver
def fixed_steps_driver(fingerprint: str) -> Callable[..., tuple[int, int]]:
    """`run_fixed(P, S, flags, rng, order, steps) -> (steps made, why it returned)`, as `loop.steps_driver`."""

    @njit(cache=True, **JIT)
    def run_fixed(P, S, flags, rng, order, steps):
        fingerprint  # noqa: B018
        V = by_features(P, S, flags, P.scratch())
        for k in range(steps):
            why = reason_to_return(S, flags)
            if why != DONE:
                return k, why
            i = draw(S, flags, rng, order, k)
            if i < 0:
                return k, SUM_REACHED
            fixed_step(P, S, V, flags, i)
        return steps, DONE

    return run_fixed


def schedule_of(it: Iterate, options: Options, own_primal: bool) -> Schedule:
    """The schedule of `bcfw`, with steps of a length that is fixed beforehand."""
    return Bcfw(it, options, fixed_steps_driver).schedule()


METHOD = block_method(schedule_of, setup_of, SPECS)
