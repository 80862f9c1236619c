"""Lambdas side by side: `bench_side_by_side.py FEATURES [--eps 0.1] [--solver default accelerated] [--lanes 2 4 8 16]`.

FEATURES is a feature store (``runs/features/<dataset>-<key>``). A path with `path.parallel=1`, then with each number of
lanes: effective passes, lambdas, CPU seconds, the bytes of the kept states, and the gain on as many cores as lanes. The gain
is replayed: lanes are solved on one worker, their CPU seconds are recorded, and a round takes as long as its longest lane.
The gain is relative to the CPU seconds of `path.parallel=1`. `--workers N`: also by the clock, on N threads.
`--processes N`: by the clock alone, with the N processes that `compute=processes` starts for oracles in Python. There
`path.parallel=1` calls the oracles of exact passes side by side, and more lanes solve a lambda in each process.
`--origins near|start`: all lanes begin at the nearest lambda of the round before, or all at the start of the path.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from gapwise.pipeline.compute.local import Compute
from gapwise.pipeline.config.run_options import ComputeOptions
from gapwise.stages.featurize import open_problem
from gapwise.stages.init_path import init_path
from gapwise.stages.problems.parallel import Spread
from gapwise.stages.problems.protocol import Problem
from gapwise.stages.solver import side_by_side
from gapwise.stages.solver.engine import Engine, Task
from gapwise.stages.solver.methods import method_options
from gapwise.stages.solver.options import CacheOptions, MethodOptions, PathOptions

PRESETS = {
    "default": method_options(cache=CacheOptions(kind="gap"), sampler="gap"),
    "accelerated": method_options("accelerated"),
    "expensive_oracle": method_options("accelerated_at_mean"),
}

Lane = tuple[int, float]
"""Round and CPU seconds."""


def walked(
    problem: Problem, options: MethodOptions, path: PathOptions, spread: Spread
) -> tuple[Engine, int, float, float]:
    """(engine at its end, lambdas, CPU seconds, seconds by the clock)."""
    engine = Engine.begin(Task(problem, options, path, start=init_path(problem, path)), spread)
    engine.warm_up()
    cpu, clock = time.process_time(), time.perf_counter()
    lambdas = len(list(engine.walk()))
    return engine, lambdas, time.process_time() - cpu, time.perf_counter() - clock


def recorded(lanes: list[Lane]) -> None:
    """From now on, add the round (by its first index) and the CPU seconds of each lane to `lanes`."""
    rounds: dict[int, int] = {}
    solve, begin = side_by_side.solve_lane, side_by_side.solved_round

    def timed(*arguments):
        before = time.thread_time()
        answer = solve(*arguments)
        lanes.append((rounds[0], time.thread_time() - before))
        return answer

    def numbered(lanes_of_round, index, *rest):
        rounds[0] = index
        return begin(lanes_of_round, index, *rest)

    side_by_side.solve_lane, side_by_side.solved_round = timed, numbered


def replayed(lanes: list[Lane]) -> float:
    """Seconds that the rounds take on as many workers as lanes."""
    longest: dict[int, float] = {}
    for number, seconds in lanes:
        longest[number] = max(longest.get(number, 0.0), seconds)
    return sum(longest.values())


def by_processes(
    features: Path, problem: Problem, options: MethodOptions, path: PathOptions, asked: list[int], workers: int
) -> None:
    """A row by the clock for `path.parallel=1` and for each number of lanes."""
    alone = 0.0
    with tempfile.TemporaryDirectory() as folder, Compute(ComputeOptions(kind="processes", workers=workers)) as compute:
        spread = compute.spread(features, Path(folder), True)
        for k in (1, *asked):
            side = PathOptions(**{**vars(path), "parallel": k})
            walked(problem, options, side, spread)  # starts the processes and compiles there
            engine, lambdas, _, clock = walked(problem, options, side, spread)
            passes, alone = engine.solver.oracle_calls / problem.n, alone or clock
            print(f"  {k:2}: {passes:7.1f} {lambdas:4} {clock:7.2f} s, gain {alone / clock:.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("features", type=Path)
    parser.add_argument("--eps", type=float, default=0.1)
    parser.add_argument("--rule", default="two_sided")
    parser.add_argument("--lambda-min", type=float, default=0.0)
    parser.add_argument("--solver", nargs="*", choices=PRESETS, default=["default", "accelerated"])
    parser.add_argument("--lanes", nargs="*", type=int, default=[2, 4, 8, 16])
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--processes", type=int, default=0)
    parser.add_argument("--origins", choices=("near", "start"))
    arguments = parser.parse_args()
    if arguments.origins == "near":
        side_by_side.TRIED = 0
    if arguments.origins == "start":
        side_by_side.Lanes.origins = lambda lanes: [0] * len(lanes.lams)
    problem = open_problem(arguments.features, "train")
    lanes: list[Lane] = []
    recorded(lanes)
    print(f"{arguments.features.name}: n = {problem.n:,}, eps = {arguments.eps:g}")
    print("solver, lanes: passes, lambdas, CPU seconds (of k = 1), replayed seconds, gain; MB of states; clock")
    for name in arguments.solver:
        options = PRESETS[name]
        path = PathOptions(rule=arguments.rule, eps=arguments.eps, lambda_min=arguments.lambda_min).for_method(options)
        if arguments.processes:
            print(f"{name}, {arguments.processes} processes, lanes: passes, lambdas, clock", flush=True)
            by_processes(arguments.features, problem, options, path, arguments.lanes, arguments.processes)
            continue
        walked(problem, options, path, Spread())  # compiles
        engine, lambdas, alone, clock_alone = walked(problem, options, path, Spread())
        passes = engine.solver.oracle_calls / problem.n
        print(
            f"{name:18}  1: {passes:7.1f} {lambdas:4} {alone:7.2f} s; clock {clock_alone:.2f} s, {engine.status}",
            flush=True,
        )
        for k in arguments.lanes:
            side = PathOptions(**{**vars(path), "parallel": k})
            lanes.clear()
            engine, lambdas, cpu, _ = walked(problem, options, side, Spread())
            passes, replay = engine.solver.oracle_calls / problem.n, replayed(lanes)
            assert engine.lanes is not None
            size = sum(array.nbytes for array in engine.lanes.packed()[0].values()) / 1e6
            clock = ""
            if arguments.workers:
                seconds = walked(problem, options, side, Spread(workers=arguments.workers))[3]
                clock = f"; clock {seconds:.2f} s on {arguments.workers}, gain {clock_alone / seconds:.2f}"
            print(
                f"{name:18} {k:2}: {passes:7.1f} {lambdas:4} {cpu:7.2f} s ({cpu / alone:.2f}) {replay:7.2f} s, "
                f"gain {alone / replay:.2f}, {len({number for number, _ in lanes})} rounds; {size:.0f} MB{clock}",
                flush=True,
            )


if __name__ == "__main__":
    main()
