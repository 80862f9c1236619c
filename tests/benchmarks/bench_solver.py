"""The cost of a pass of the real solver: `python tests/benchmarks/bench_solver.py FEATURES [--passes 8]`.

FEATURES is a feature store (``runs/features/<dataset>-<key>``). For each preset: CPU milliseconds of n visits at
lambda = 1/n, the first pass apart (it visits the blocks in order); then the rebase, and the exact gap pass, alone, on two
threads, and as a run does, with their bound: two threads that repeat a half each and never wait for one
another. One core for the rest; run it on a quiet machine and compare within one run.
"""

from __future__ import annotations

import argparse
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from parts import take_steps

from gapwise.pipeline.compute.local import Compute
from gapwise.pipeline.config.run_options import ComputeOptions
from gapwise.stages.featurize import open_problem
from gapwise.stages.problems.parallel import HERE, Spread
from gapwise.stages.problems.protocol import Problem, frozen
from gapwise.stages.solver.codes import ORACLE_CALLS
from gapwise.stages.solver.exact import exact_gaps
from gapwise.stages.solver.method import AnyMethod
from gapwise.stages.solver.methods import method_options
from gapwise.stages.solver.options import CacheOptions, PathOptions
from gapwise.stages.solver.oracles import BASES, ORACLES, Answers, run_driver
from gapwise.stages.solver.path.walk import begin

PRESETS = {
    "bcfw": ("uniform", "fw", "none"),
    "bcfw_gap": ("gap", "fw", "none"),
    "bcpfw": ("uniform", "pairwise", "none"),
    "bcpfw_gap": ("gap", "pairwise", "none"),
    "bcpfw_gap_cache": ("gap", "pairwise", "gap"),
}


REPEATS = 41
"""Of exact passes on threads."""


def milliseconds(work, repeats: int = 7, clock=time.process_time) -> float:
    """Median over repeats."""
    seconds = []
    for _ in range(repeats):
        begun = clock()
        work()
        seconds.append(clock() - begun)
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
    parser.add_argument("features", type=Path)
    parser.add_argument("--passes", type=int, default=8)
    arguments = parser.parse_args()
    problem = open_problem(arguments.features, "train")
    n = problem.n
    print(f"{arguments.features.name}: n = {n:,}, d = {problem.d:,}")
    print(f"{'preset':16} {'first':>8} {'later':>8} {'us/visit':>9} {'oracle calls/visit':>19}")
    for name in PRESETS:
        times, share, solver = pass_times(problem, name, 1.0 / n, arguments.passes)
        later = statistics.median(times[1:])
        print(f"{name:16} {times[0]:8.1f} {later:8.1f} {1e3 * later / n:9.2f} {share:19.2f}")

    S = solver.it.state
    solver.it.rebase()
    print(f"{'rebase':16} {milliseconds(solver.it.rebase):8.1f}")

    def gap_pass(spread=HERE):
        return exact_gaps(problem, S.w, solver.it.state.pool, spread)

    print(
        f"{'exact gap pass':16} {milliseconds(gap_pass):8.1f}   (wall {milliseconds(gap_pass, clock=time.perf_counter):.1f})"
    )
    alone = milliseconds(gap_pass, repeats=REPEATS, clock=time.perf_counter)
    with ThreadPoolExecutor(2) as threads, Compute(ComputeOptions(kind="threads", workers=2)) as compute:

        def on_threads(fn, ranges):
            return list(threads.map(lambda piece: fn(*piece), ranges))

        # one spread for all passes, as in a run: it learns how long its pieces may be
        spreads = {"on two threads": Spread(on_threads), "as a run does": Spread(compute.map_ranges)}
        for name, spread in spreads.items():
            wall = milliseconds(lambda: gap_pass(spread), repeats=REPEATS, clock=time.perf_counter)  # noqa: B023
            print(f"{name:16} {wall:8.1f}   (wall): {alone / wall:.2f} times as fast")

    def part(first, last):
        of = slice(first, last)
        piece = Answers(*(column[of] for column in answers))
        for _ in range(REPEATS):
            run_driver(problem, w, S.pool, ORACLES | BASES, every[of], base[of], piece)

    answers, base, every, w = Answers.empty(problem, n), np.empty(n), np.arange(n), frozen(S.w)
    half = int(np.searchsorted(problem.local_ptr, problem.local_ptr[-1] / 2))
    halves = (0, half), (half, n)
    with ThreadPoolExecutor(2) as threads:
        alone = milliseconds(lambda: [part(*blocks) for blocks in halves], 3, time.perf_counter)
        both = milliseconds(lambda: list(threads.map(lambda blocks: part(*blocks), halves)), 3, time.perf_counter)
    print(f"{'the cores allow':16} {both / REPEATS:8.1f}   (wall): {alone / both:.2f} times as fast")


if __name__ == "__main__":
    main()
