"""Mini-batches: their cost in oracle calls, and the waiting they save.

    python tests/benchmarks/bench_minibatch.py calls FEATURES --lambdas 0.01 1/n
    python tests/benchmarks/bench_minibatch.py waiting

`calls`: oracle calls (steps and exact passes together) until (P - D) / D <= 1e-3, for tau = 1, 2, 4, 8, 16; median and
range over seeds. FEATURES is a feature store (``runs/features/<dataset>-<key>``). Counts do not depend on the machine.

`waiting`: wall seconds to the same gap with an oracle in Python that sleeps 20 ms, on as many waiting workers as the
batch has blocks. Workers are threads that take one block each, as remote ones do; sleeping needs no core.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from tiny import python_oracle

from gapwise.stages.featurize import open_problem
from gapwise.stages.problems.parallel import HERE, Spread
from gapwise.stages.problems.protocol import Problem
from gapwise.stages.solver.codes import CACHED_STEPS, ORACLE_CALLS
from gapwise.stages.solver.codes import STEPS as STEP_COUNT
from gapwise.stages.solver.methods import method_options
from gapwise.stages.solver.options import CacheOptions, PathOptions, Status
from gapwise.stages.solver.path.walk import begin

SIZES = (1, 2, 4, 8, 16)
PRESETS = {
    "bcfw": ("uniform", "fw", "none"),
    "bcfw_gap": ("gap", "fw", "none"),
    "bcpfw_gap": ("gap", "pairwise", "none"),
    "bcpfw_gap_cache": ("gap", "pairwise", "gap"),
}


def solved(problem: Problem, preset: str, lam: float, size: int, seed: int, passes: float, spread: Spread = HERE):
    """The solver at a relative gap of 1e-3, None where so many passes do not get there, and its wall seconds."""
    sampler, step, cache = PRESETS[preset]
    options = method_options(
        sampler=sampler, step=step, cache=CacheOptions(kind=cache), batch_size=size, max_passes=passes
    )
    solver = begin(problem, options, PathOptions(rule="single", lam=lam), None, seed, spread=spread)
    begun = time.perf_counter()
    status, _ = solver.solve(1e-3, lambda solver: None, relative=True)
    return (solver if status is Status.CONVERGED else None), time.perf_counter() - begun


def calls(arguments: argparse.Namespace) -> None:
    problem = open_problem(arguments.features, "train")
    n = problem.n
    print(f"{arguments.features.name}: n = {n:,}, d = {problem.d:,}; oracle calls to (P - D) / D <= 1e-3,")
    print(f"median (least - most) of {arguments.seeds} seeds; (...): not within {arguments.passes:g} passes")
    for text in arguments.lambdas:
        lam = 1.0 / n if text == "1/n" else float(text)
        print(f"\nlambda = {text}\n{'preset':16}" + "".join(f"{f'tau = {size}':>26}" for size in SIZES))
        for preset in arguments.presets:
            line = f"{preset:16}"
            for size in SIZES:
                counts = []
                for seed in range(arguments.seeds):
                    solver, _ = solved(problem, preset, lam, size, seed, arguments.passes)
                    counts.append(np.inf if solver is None else solver.oracle_calls)
                middle, least, most = statistics.median(counts), min(counts), max(counts)
                text = f"{middle:,.0f} ({least:,.0f} - {most:,.0f})" if most < np.inf else "(...)"
                line += f"{text:>26}"
            print(line, flush=True)


def waiting_on(pool: ThreadPoolExecutor, problem: Problem) -> Spread:
    """Workers elsewhere: each part is a task."""
    return Spread(
        elsewhere=lambda fn, split, w, parts, places: list(
            pool.map(lambda part: fn(problem, w, np.asarray(part)), parts)
        )
    )


def waiting(arguments: argparse.Namespace) -> None:
    quick = python_oracle(n=arguments.blocks, width=4)
    slow = python_oracle(n=arguments.blocks, width=4, delay=arguments.seconds)
    lam = arguments.lam
    print(
        f"n = {slow.n}, d = {slow.d}, lambda = {lam:g}, an oracle of {1e3 * arguments.seconds:g} ms; to (P - D) / D <= 1e-3"
    )
    print(f"{'preset':16} {'tau':>4} {'workers':>8} {'calls':>8} {'from cache':>11} {'seconds':>8} {'speed-up':>9}")
    for preset in arguments.presets:
        solved(quick, preset, lam, 2, 0, 3.0)  # compile
        alone = 0.0
        for size, workers in [(size, size) for size in SIZES]:
            with ThreadPoolExecutor(workers) as pool:
                solver, seconds = solved(slow, preset, lam, size, 0, np.inf, waiting_on(pool, slow))
            assert solver is not None
            alone = alone or seconds
            made = solver.iterate.state.counters
            print(
                f"{preset:16} {size:4} {workers:8} {solver.oracle_calls:8,} "
                f"{made[CACHED_STEPS] / made[STEP_COUNT]:11.0%} {seconds:8.1f} {alone / seconds:9.1f}",
                flush=True,
            )
            assert made[STEP_COUNT] == made[CACHED_STEPS] + made[ORACLE_CALLS]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    counting = commands.add_parser("calls")
    counting.add_argument("features", type=Path)
    counting.add_argument("--lambdas", nargs="+", default=["0.01", "1/n"])
    counting.add_argument("--seeds", type=int, default=5)
    counting.add_argument("--passes", type=float, default=3000.0)
    counting.add_argument("--presets", nargs="+", choices=PRESETS, default=["bcpfw_gap", "bcpfw_gap_cache"])
    counting.set_defaults(run=calls)
    two = commands.add_parser("waiting")
    two.add_argument("--seconds", type=float, default=0.02)
    two.add_argument("--blocks", type=int, default=100)
    two.add_argument("--lam", type=float, default=0.1)
    two.add_argument("--presets", nargs="+", choices=PRESETS, default=["bcpfw_gap", "bcpfw_gap_cache"])
    two.set_defaults(run=waiting)
    arguments = parser.parse_args()
    arguments.run(arguments)


if __name__ == "__main__":
    main()
