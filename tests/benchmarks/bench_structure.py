"""Oracle, visit and pass of any structure, preset by preset: `bench_structure.py FEATURES... [--lam 0.01]`.

FEATURES are feature stores (``runs/features/<dataset>-<key>``). CPU time on one thread: the scores of a block at a random w;
scores and max-oracle, of which the scores are what reading the features takes in any case; a visit and a pass of n visits
from the second pass on, the oracle calls a visit, and the exact gap pass. Compare within one run, on a quiet machine.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numba import njit
from parts import take_steps

from gapwise.stages.featurize import open_problem
from gapwise.stages.problems.protocol import JIT, Problem
from gapwise.stages.solver.codes import ORACLE_CALLS
from gapwise.stages.solver.exact import exact_gaps
from gapwise.stages.solver.method import AnyMethod
from gapwise.stages.solver.methods import method_options
from gapwise.stages.solver.options import CacheOptions, PathOptions
from gapwise.stages.solver.path.walk import begin

PRESETS = {
    "bcfw": ("uniform", "fw", "none"),
    "bcfw_gap": ("gap", "fw", "none"),
    "bcpfw": ("uniform", "pairwise", "none"),
    "bcpfw_gap": ("gap", "pairwise", "none"),
    "bcpfw_gap_cache": ("gap", "pairwise", "gap"),
}
PASSES = 8
HEADS = ["features", "n", "d", "scores, us", "oracle with scores, us"]
HEADS += ["method", "a visit, us", "a pass, ms", "calls a visit", "exact gap pass, ms"]


@njit(**JIT)
def repeat(P, w, oracle):
    """Scores of all blocks, and the max-oracle if `oracle`."""
    scratch = P.scratch()
    theta, y, total = np.empty(np.max(np.diff(P.local_ptr))), np.empty_like(P.truth), 0.0
    for i in range(P.n):
        here = theta[: P.local_ptr[i + 1] - P.local_ptr[i]]
        P.scores(i, w, here)
        if oracle:
            total += P.max_oracle(i, here, y[P.label_ptr[i] : P.label_ptr[i + 1]], scratch)
    return total


def milliseconds(work: Callable[[], object], repeats: int = 5) -> float:
    """Median CPU milliseconds."""
    seconds = []
    for _ in range(repeats):
        begun = time.process_time()
        work()
        seconds.append(time.process_time() - begun)
    return 1e3 * statistics.median(seconds)


def pass_times(problem: Problem, preset: str, lam: float, passes: int) -> tuple[list[float], float, AnyMethod]:
    """CPU milliseconds of each pass of n visits from w = 0, oracle calls a visit, and the solver after them."""
    sampler, step, cache = PRESETS[preset]
    options = method_options(
        sampler=sampler, step=step, cache=CacheOptions(kind=cache), refresh_every=0, rebase_steps=problem.n
    )
    solver = begin(problem, options, PathOptions(rule="single", lam=lam), None, seed=0)
    solver.warm_up()
    solver.it.rebase()
    times = [milliseconds(lambda: take_steps(solver), repeats=1) for _ in range(passes)]
    return times, float(solver.it.state.counters[ORACLE_CALLS] / (problem.n * passes)), solver


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("features", nargs="+", type=Path)
    parser.add_argument("--lam", type=float, default=0.01)
    asked = parser.parse_args()
    print(f"| {' | '.join(HEADS)} |\n{'|---' * len(HEADS)}|")
    for store in asked.features:
        problem = open_problem(store, "train")
        n, w = problem.n, np.random.default_rng(1).normal(size=problem.d) / np.sqrt(problem.d)
        w = np.clip(w, problem.lower, problem.upper) if problem.lower.size else w
        repeat(problem, w, True)  # compiles
        scores, both = (1e3 * milliseconds(lambda: repeat(problem, w, oracle)) / n for oracle in (False, True))  # noqa: B023
        for name in PRESETS:
            times, calls, solver = pass_times(problem, name, asked.lam, PASSES)
            later, S = statistics.median(times[1:]), solver.it.state
            exact = milliseconds(lambda: exact_gaps(problem, S.w, S.pool))  # noqa: B023
            print(
                f"| {store.name} | {n:,} | {problem.d:,} | {scores:.1f} | {both:.1f} | {name} | {1e3 * later / n:.1f} | "
                f"{later:.1f} | {calls:.2f} | {exact:.1f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
