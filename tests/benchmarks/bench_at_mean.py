"""Exact passes at the mean beside other presets: `bench_at_mean.py FEATURES [--eps 0.1 [--relative]] [--lambdas 0.01 1/n]`.

FEATURES is a feature store (``runs/features/<dataset>-<key>``). A path to `--eps` with the default preset by `one_sided` and
`two_sided`, and with `expensive_oracle`; or, with `--lambdas`, each of them to gap / dual <= 1e-4 with `accelerated` and
`expensive_oracle`. For every seed and as medians: effective passes, cached block steps / n, breakpoints, CPU seconds of the
solve alone.
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path

from stages.featurize import open_problem
from stages.init_path import init_path
from stages.problems.protocol import Problem
from stages.solver.codes import CACHED_STEPS
from stages.solver.methods import method_options
from stages.solver.options import CacheOptions, MethodOptions, PathOptions
from stages.solver.path.rule import rule_of
from stages.solver.path.walk import begin, walk

KAPPA = 0.85


def measured(problem: Problem, options: MethodOptions, path: PathOptions, seed: int) -> tuple[float, float, int, float]:
    """(effective passes, cached block steps / n, breakpoints, CPU seconds) of one solve."""
    start = init_path(problem, path) if path.is_path else None
    rule, solved = rule_of(path).begin(path, start), []
    solver = begin(problem, options, path, start, seed)
    solver.warm_up()
    begun = time.process_time()
    walk(solver, path, start, lambda _: None, solved.append, rule)
    seconds = time.process_time() - begun
    cached = int(solver.state.counters[CACHED_STEPS])
    return solver.oracle_calls / problem.n, cached / problem.n, len(solved), seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("features", type=Path)
    parser.add_argument("--eps", type=float, default=0.1)
    parser.add_argument("--relative", action="store_true", help="gaps as shares of the primal value")
    parser.add_argument("--lambda-min", type=float, default=0.0)
    parser.add_argument("--lambdas", nargs="*", default=[])
    parser.add_argument("--seeds", type=int, default=5)
    arguments = parser.parse_args()
    problem = open_problem(arguments.features, "train")
    usual, accelerated = method_options(cache=CacheOptions(kind="gap"), sampler="gap"), method_options("accelerated")
    at_mean = method_options("accelerated_at_mean")
    common = {"eps": arguments.eps, "lambda_min": arguments.lambda_min, "relative": arguments.relative}
    cases: list[tuple[str, MethodOptions, PathOptions]] = [
        ("one_sided, default", usual, PathOptions(**common)),
        ("two_sided, default", usual, PathOptions(rule="two_sided", **common)),
        ("two_sided, expensive_oracle", at_mean, PathOptions(rule="two_sided", kappa=KAPPA, **common)),
    ]
    if arguments.lambdas:
        cases = []
        for name in arguments.lambdas:
            lam = 1.0 / problem.n if name == "1/n" else float(name)
            path = PathOptions(kind="single", lam=lam, tolerance=1e-4, relative=True)
            cases += [(f"{name}, accelerated", accelerated, path), (f"{name}, expensive_oracle", at_mean, path)]
    print(f"{arguments.features.name}: n = {problem.n:,}; passes, cached steps / n, breakpoints, CPU seconds")
    for name, options, path in cases:
        measured(problem, options, path, 0)  # compiles
        rows = [measured(problem, options, path, seed) for seed in range(arguments.seeds)]
        passes, cached, breakpoints, seconds = (statistics.median(column) for column in zip(*rows, strict=True))
        every = " ".join(f"{row[0]:.1f}" for row in rows)
        print(f"{name:30} {passes:7.1f} {cached:8.0f} {breakpoints:5.0f} {seconds:8.2f}   ({every})", flush=True)


if __name__ == "__main__":
    main()
