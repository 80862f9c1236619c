"""CPU seconds of one solve from w = 0 to a certified gap; imported by the benchmarks beside other programs."""

from __future__ import annotations

import time

from gapwise.stages.problems.protocol import Problem
from gapwise.stages.solver.engine import Engine, Task
from gapwise.stages.solver.methods import method_options
from gapwise.stages.solver.objective import Certificate
from gapwise.stages.solver.options import CacheOptions, MethodOptions, PathOptions

ACCELERATED = method_options(name="accelerated", method="accelerated", cache=CacheOptions("gap"))


def timed_solve(
    problem: Problem, lam: float, tolerance: float, options: MethodOptions = ACCELERATED
) -> tuple[float, Certificate]:
    """(CPU seconds until gap / dual <= tolerance is certified, the certificate); compiled code is loaded before."""
    path = PathOptions(rule="single", lam=lam, tolerance=tolerance, relative=True)
    engine = Engine.begin(Task(problem, options, path))
    engine.warm_up()
    begun = time.process_time()
    (solved,) = engine.walk()
    return time.process_time() - begun, solved.point


def told(seconds: list[float]) -> str:
    """The least of several turns, and all of them."""
    return f"{min(seconds):.2f} ({', '.join(f'{s:.2f}' for s in seconds)})"
