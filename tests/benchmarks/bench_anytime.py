"""A path whose eps falls beside paths that know it: `bench_anytime.py FEATURES [--eps 0.1 0.01] [--seeds 3]`.

FEATURES is a feature store (``runs/features/<dataset>-<key>``). `path.rule=anytime` is asked for the least of `--eps` and
notes when it certifies each of the others on the way, which should be ten, a hundred, ... times the least; `two_sided` is
solved for each of them from the beginning. Medians of effective passes, solved lambdas and CPU seconds of the solve alone,
and the ratios, with the default preset and with `expensive_oracle`.
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path

from gapwise.stages.featurize import open_problem
from gapwise.stages.init_path import init_path
from gapwise.stages.problems.protocol import Problem
from gapwise.stages.solver.engine import Engine, Task
from gapwise.stages.solver.events import Event
from gapwise.stages.solver.methods import method_options
from gapwise.stages.solver.options import CacheOptions, MethodOptions, PathOptions, Status
from gapwise.stages.solver.path.breakpoints import Breakpoint

Cost = tuple[float, float, float]
"""Effective passes, solved lambdas, CPU seconds."""


def costs(problem: Problem, options: MethodOptions, path: PathOptions, seed: int, wanted: list[float]) -> list[Cost]:
    """What it took until each eps of `wanted` was certified at every lambda; of a path that knows its eps, to the end."""
    start = init_path(problem, path)
    engine = Engine.begin(Task(problem, options, path, seed, start))
    falling, solver = engine.rule.open_end(), engine.solver
    engine.warm_up()
    begun, reached, solved = time.process_time(), dict[float, Cost](), list[Breakpoint]()

    def note(event: Event) -> Status | None:
        for eps in wanted:
            if falling and falling.certified and falling.reached <= eps and eps not in reached:
                reached[eps] = solver.oracle_calls / problem.n, len(solved), time.process_time() - begun
        return Status.CONVERGED if len(reached) == len(wanted) else None

    for breakpoint in engine.walk([note]):
        solved.append(breakpoint)
    end = solver.oracle_calls / problem.n, len(solved), time.process_time() - begun
    return [reached.get(eps, end) for eps in wanted]


def median(rows: list[Cost]) -> Cost:
    """Column by column."""
    passes, lambdas, seconds = (statistics.median(column) for column in zip(*rows, strict=True))
    return passes, lambdas, seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("features", type=Path)
    parser.add_argument("--eps", type=float, nargs="+", default=[0.1, 0.01])
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    problem, seeds = open_problem(arguments.features, "train"), range(arguments.seeds)
    presets = {
        "default": (method_options(cache=CacheOptions(kind="gap"), sampler="gap"), 0.7),
        "expensive_oracle": (method_options("accelerated_at_mean"), 0.85),
    }
    print(f"{arguments.features.name}: n = {problem.n:,}; passes, solved lambdas, CPU seconds")
    for name, (options, kappa) in presets.items():
        two_sided = [PathOptions(rule="two_sided", eps=eps, kappa=kappa) for eps in arguments.eps]
        anytime = PathOptions(rule="anytime", eps=min(arguments.eps))
        costs(problem, options, two_sided[0], 0, [arguments.eps[0]])  # compiles
        rows = [costs(problem, options, anytime, seed, arguments.eps) for seed in seeds]
        for k, (eps, path) in enumerate(zip(arguments.eps, two_sided, strict=True)):
            once = median([costs(problem, options, path, seed, [eps])[0] for seed in seeds])
            falling = median([row[k] for row in rows])
            words = ", ".join(
                f"{rule} {c[0]:.1f} {c[1]:.0f} {c[2]:.2f}" for rule, c in (("anytime", falling), ("two_sided", once))
            )
            ratios = f"passes {falling[0] / once[0]:.2f}, seconds {falling[2] / once[2]:.2f}"
            print(f"{name:16} eps {eps:g}: {words}; ratio of {ratios}", flush=True)


if __name__ == "__main__":
    main()
