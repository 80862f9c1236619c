"""Exact passes at the mean beside other presets: `bench_at_mean.py FEATURES [--eps 0.1 [--relative]] [--lambdas 0.01 1/n]`.

FEATURES is a feature store (``runs/features/<dataset>-<key>``). A path to `--eps` with the default preset and with
`expensive_oracle`, and what the last lambda of that path costs by itself, from nothing to the same tolerance; or, with
`--lambdas`, each of them to gap / dual <= `--tolerance` with `accelerated` and `expensive_oracle`. For every seed and as
medians: effective passes, cached block steps / n, breakpoints, CPU seconds of the solve alone. `--only NAME`: rows whose
name has this.
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path

from gapwise.stages.featurize import open_problem
from gapwise.stages.init_path import init_path
from gapwise.stages.problems.protocol import Problem
from gapwise.stages.solver.codes import CACHED_STEPS
from gapwise.stages.solver.engine import Engine, Task
from gapwise.stages.solver.methods import method_options
from gapwise.stages.solver.options import CacheOptions, MethodOptions, PathOptions

Row = tuple[float, float, int, float, float]


def measured(problem: Problem, options: MethodOptions, path: PathOptions, seed: int) -> Row:
    """(effective passes, cached block steps / n, breakpoints, CPU seconds, last lambda) of one solve."""
    start = init_path(problem, path) if path.can.finds_lambdas else None
    engine = Engine.begin(Task(problem, options, path, seed, start))
    solver = engine.solver
    engine.warm_up()
    begun = time.process_time()
    solved = list(engine.walk())
    seconds = time.process_time() - begun
    cached = int(solver.it.state.counters[CACHED_STEPS])
    return solver.oracle_calls / problem.n, cached / problem.n, len(solved), seconds, solver.counts.lam


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("features", type=Path)
    parser.add_argument("--eps", type=float, default=0.1)
    parser.add_argument("--relative", action="store_true", help="gaps as shares of the primal value")
    parser.add_argument("--lambda-min", type=float, default=0.0)
    parser.add_argument("--kappa", type=float, default=0.84, help="of expensive_oracle's path")
    parser.add_argument("--lambdas", nargs="*", default=[])
    parser.add_argument("--tolerance", type=float, default=1e-4, help="of --lambdas, as a share of the dual value")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", default="", help="rows whose name has these words")
    arguments = parser.parse_args()
    problem = open_problem(arguments.features, "train")
    usual, accelerated = method_options(cache=CacheOptions(kind="gap"), sampler="gap"), method_options("accelerated")
    at_mean = method_options("accelerated", exact_passes="at_mean")
    print(f"{arguments.features.name}: n = {problem.n:,}; passes, cached steps / n, breakpoints, CPU seconds")

    def row(name: str, options: MethodOptions, path: PathOptions) -> float | None:
        """Print one row; the least last lambda."""
        if arguments.only not in name:
            return None
        measured(problem, options, path, 0)  # compiles
        rows = [measured(problem, options, path, seed) for seed in range(arguments.seeds)]
        passes, cached, breakpoints, seconds, _ = (statistics.median(column) for column in zip(*rows, strict=True))
        every = " ".join(f"{row[0]:.1f}" for row in rows)
        print(f"{name:40} {passes:7.1f} {cached:8.0f} {breakpoints:5.0f} {seconds:8.2f}   ({every})", flush=True)
        return min(row[4] for row in rows)

    for name in arguments.lambdas:
        lam = 1.0 / problem.n if name == "1/n" else float(name)
        path = PathOptions(rule="single", lam=lam, tolerance=arguments.tolerance, relative=True)
        row(f"{name}, accelerated", accelerated, path)
        row(f"{name}, expensive_oracle", at_mean, path)
    if arguments.lambdas:
        return
    common = {"eps": arguments.eps, "lambda_min": arguments.lambda_min, "relative": arguments.relative}
    row("two_sided, default", usual, PathOptions(rule="two_sided", **common))
    last = row("two_sided, expensive_oracle", at_mean, PathOptions(rule="two_sided", kappa=arguments.kappa, **common))
    if last is not None and not arguments.relative:
        tolerance = arguments.kappa * arguments.eps
        cold = PathOptions(rule="single", lam=last, tolerance=tolerance, relative=False)
        row(f"its last lambda alone, {last:.2g}, expensive_oracle", at_mean, cold)
        row(f"its last lambda alone, {last:.2g}, accelerated, expensive_oracle's tolerance", accelerated, cold)


if __name__ == "__main__":
    main()
