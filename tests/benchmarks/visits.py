"""What an oracle, a visit of a block and a pass cost, for any structure; imported by the benchmarks of structures."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator

import numpy as np
from numba import njit
from parts import take_steps

from gapwise.stages.problems.protocol import JIT, Problem
from gapwise.stages.solver.exact import exact_gaps
from gapwise.stages.solver.methods import method_options
from gapwise.stages.solver.options import CacheOptions, PathOptions
from gapwise.stages.solver.path.walk import begin

PRESETS = {"bcfw": ("uniform", "fw", "none"), "bcpfw_gap_cache": ("gap", "pairwise", "gap")}


@njit(**JIT)
def repeat(P, w, times, oracle):
    """Scores of all blocks, and the max-oracle if `oracle`, `times` times."""
    scratch = P.scratch()
    theta, y, total = np.empty(np.max(np.diff(P.local_ptr))), np.empty_like(P.truth), 0.0
    for _ in range(times):
        for i in range(P.n):
            here = theta[: P.local_ptr[i + 1] - P.local_ptr[i]]
            P.scores(i, w, here)
            if oracle:
                total += P.max_oracle(i, here, y[P.label_ptr[i] : P.label_ptr[i + 1]], scratch)
    return total


def microseconds(work: Callable[[], object], each: int, repeats: int = 5) -> float:
    """Median CPU microseconds of `work`, for one of `each`."""
    work()
    seconds = []
    for _ in range(repeats):
        began = time.process_time()
        work()
        seconds.append(time.process_time() - began)
    return 1e6 * statistics.median(seconds) / each


def oracle_costs(problem: Problem, w: np.ndarray, times: int) -> tuple[float, float]:
    """CPU microseconds a block for the scores, and for scores and max-oracle."""
    scores, both = (microseconds(lambda: repeat(problem, w, times, b), problem.n * times) for b in (False, True))  # noqa: B023
    return scores, both


def visit_costs(problem: Problem, lam: float) -> Iterator[tuple[str, float, float]]:
    """(preset, CPU microseconds of a visit, CPU milliseconds of an exact gap pass on one thread) after the first pass."""
    for name, (sampler, step, cache) in PRESETS.items():
        options = method_options(
            sampler=sampler, step=step, cache=CacheOptions(kind=cache), refresh_every=0, rebase_steps=problem.n
        )
        solver = begin(problem, options, PathOptions(rule="single", lam=lam), None, seed=0)
        solver.warm_up()
        visits = microseconds(lambda: take_steps(solver), problem.n)  # noqa: B023
        S = solver.it.state
        gaps = microseconds(lambda: exact_gaps(problem, S.w, S.pool), 1)  # noqa: B023
        yield name, visits, gaps / 1e3
