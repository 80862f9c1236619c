"""The cost of a pass of the real solver: `python tests/benchmarks/bench_solver.py FEATURES [--passes 8]`.

FEATURES is a feature store (``runs/features/<dataset>-<key>``). For each preset: CPU milliseconds of n visits at
lambda = 1/n, the first pass apart (it visits the blocks in order); then the exact gap pass, alone and on two threads, and
the rebase. One core; run it on a quiet machine and compare within one run.
"""

from __future__ import annotations

import argparse
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from stages.featurize import open_problem
from stages.parallel import HERE, Spread
from stages.solver.codes import ORACLE_CALLS
from stages.solver.gaps import exact_gaps
from stages.solver.methods import method_options
from stages.solver.options import CacheOptions, PathOptions
from stages.solver.path.walk import begin

PRESETS = {
    "bcfw": ("uniform", "fw", "none"),
    "bcfw_gap": ("gap", "fw", "none"),
    "bcpfw": ("uniform", "pairwise", "none"),
    "bcpfw_gap": ("gap", "pairwise", "none"),
    "bcpfw_gap_cache": ("gap", "pairwise", "gap"),
}


def milliseconds(work, repeats: int = 7, clock=time.process_time) -> float:
    """Median over repeats."""
    seconds = []
    for _ in range(repeats):
        begun = clock()
        work()
        seconds.append(clock() - begun)
    return 1e3 * statistics.median(seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("features", type=Path)
    parser.add_argument("--passes", type=int, default=8)
    arguments = parser.parse_args()
    problem = open_problem(arguments.features, "train")
    n = problem.n
    print(f"{arguments.features.name}: n = {n:,}, d = {problem.d:,}")
    print(f"{'preset':16} {'first':>8} {'later':>8} {'us/visit':>9} {'oracle calls/visit':>19}")
    for name, (sampler, step, cache) in PRESETS.items():
        options = method_options(
            sampler=sampler, step=step, cache=CacheOptions(kind=cache), refresh_every=0, rebase_steps=n
        )
        solver = begin(problem, options, PathOptions(kind="single", lam=1.0 / n), None, seed=0)
        solver.warm_up()
        solver.rebase()
        times = []
        for _ in range(arguments.passes):
            times.append(milliseconds(lambda: solver.take_steps(-1.0), repeats=1))  # noqa: B023
        later = statistics.median(times[1:])
        share = solver.state.counters[ORACLE_CALLS] / (n * arguments.passes)
        print(f"{name:16} {times[0]:8.1f} {later:8.1f} {1e3 * later / n:9.2f} {share:19.2f}")

    S = solver.state
    solver.rebase()
    print(f"{'rebase':16} {milliseconds(solver.rebase):8.1f}")

    def gap_pass(spread=HERE):
        return exact_gaps(problem, S.w, S.mu, S.ell, spread, solver.state.pool)

    print(
        f"{'exact gap pass':16} {milliseconds(gap_pass):8.1f}   (wall {milliseconds(gap_pass, clock=time.perf_counter):.1f})"
    )
    with ThreadPoolExecutor(2) as threads:

        def on_threads(fn, ranges):
            return list(threads.map(lambda piece: fn(*piece), ranges))

        spread = Spread(on_threads)  # one for all passes, as in a run: it learns how long its pieces may be
        wall = milliseconds(lambda: gap_pass(spread), clock=time.perf_counter)
        print(f"{'on two threads':16} {wall:8.1f}   (wall)")


if __name__ == "__main__":
    main()
