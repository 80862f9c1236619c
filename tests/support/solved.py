"""Solves of tiny instances, whole or stopped anywhere and resumed."""

from __future__ import annotations

import dataclasses
import json
import math
from hashlib import sha256
from pathlib import Path

import numpy as np

from gapwise.stages.problems.parallel import HERE
from gapwise.stages.solve import Session, Spacing, Task, solve
from gapwise.stages.solver.check import check_path
from gapwise.stages.solver.counts import TRACE
from gapwise.stages.solver.engine import Engine
from gapwise.stages.solver.methods import method_options, methods, options_type
from gapwise.stages.solver.options import CacheOptions, MethodOptions, PathOptions, Status

LOWEST = 0.1
SINGLE = {"rule": "single", "lam": 0.05, "tolerance": 2e-3}
PATHS = {
    "two_sided": {"rule": "two_sided", "kappa": 0.7, "eps": 0.01},
    "two_sided_relative": {"rule": "two_sided", "kappa": 0.7, "eps": 0.03, "relative": True},
    "paper": {"rule": "paper", "lambda_min": 0.5},
    "heuristic": {"rule": "heuristic", "kappa": 0.7, "lambda_min": 0.5},
    **{
        f"grid_{warm}": {"rule": "grid", "lambdas": [1.0, 0.3, 0.1], "warm_start": warm, "tolerance": 5e-3}
        for warm in ("none", "keep_primal", "keep_dual")
    },
    "grid_relative": {"rule": "grid", "lambdas": [0.1, 1.0], "relative": True, "tolerance": 0.02},
    "single": SINGLE,
}


AT_MEAN = "accelerated_at_mean"
"""In tests, `accelerated` with its exact passes at the mean."""


def method_named(choices: dict) -> dict:
    """The choices of a method that tests name, `AT_MEAN` included."""
    if choices.get("method") != AT_MEAN:
        return choices
    return {**choices, "method": "accelerated", "exact_passes": "at_mean"}


def options_of(**choices) -> MethodOptions:
    """Options for many rebase points; what a method does not have is left out."""
    choices = method_named(choices)
    cache = CacheOptions(kind=choices.pop("cache", "gap"), capacity=choices.pop("capacity", 50))
    often = {"refresh_every": 2} if choices.get("method", "bcfw") == "bcfw" else {}
    if choices.get("method") == "mpbcfw":
        often = {"step": "pairwise"}
    known = {field.name for field in dataclasses.fields(options_type(choices.get("method", "bcfw")))}
    usual = {"cache": cache, "rebase_steps": 5, "max_passes": 500.0, **often}
    options = method_options(**{**{name: value for name, value in usual.items() if name in known}, **choices})
    options.check()
    return options


def path_methods() -> list[str]:
    """Names of the methods that solve along every path: those with a dual point that their options let paths use."""
    path, names = PathOptions(), []
    for name in methods():
        try:
            check_path(method_options(method=name), path)
        except ValueError:
            continue
        names += [name] if method_options(method=name).certifies else []
    return names


def path_of(**choices) -> PathOptions:
    path = PathOptions(**{"eps": 0.1, "kappa": 0.9, "lambda_min": LOWEST, **choices})
    path.check()
    return path


def solved(problem, run: Path, options: MethodOptions, path: PathOptions, **more) -> Status:
    """Solve into a folder; `more`: fields of Task, Spacing and Session, and `science`."""
    task = Task(problem, options, path, **{"seed": 3, **_fields(Task, more)})
    session = Session(**{"every_seconds": math.inf, **_fields(Session, more)})
    return solve(task, run, key="k", snapshots=Spacing(**_fields(Spacing, more)), session=session, **more)


def _fields(record: type, more: dict) -> dict:
    """The fields of a dataclass that are in `more`, which loses them."""
    return {field.name: more.pop(field.name) for field in dataclasses.fields(record) if field.name in more}


class StopAfter:
    """stop() is False `left` times and then True, once per rebase point."""

    def __init__(self, left: int) -> None:
        self.left = left

    def __call__(self) -> bool:
        self.left -= 1
        return self.left < 0


class Killed(BaseException):
    """What ends a solve where its process would die: nothing catches it, and nothing is committed."""


class DieAfter(StopAfter):
    """stop() is False `left` times and then raises Killed."""

    def __call__(self) -> bool:
        if super().__call__():
            raise Killed
        return False


def stopped_and_resumed(problem, run: Path, options: MethodOptions, path: PathOptions, stops, **more) -> int:
    """Solve to the end, stopping after the numbers of rebase points in `stops`; returns how often it was interrupted."""
    times = 0
    for left in stops:
        status = solved(problem, run, options, path, stop=StopAfter(left), **more)
        if status is not Status.INTERRUPTED:
            break
        assert not (run / "path.zarr").exists()
        times += 1
    else:
        solved(problem, run, options, path, **more)
    return times


class Kept:
    """A sink in memory that holds every offer, or none: `state` is what was committed last."""

    def __init__(self, held: bool = True, state=None) -> None:
        self.held, self.state, self.offers = held, state, []

    def offer(self, pack, breakpoints) -> bool:
        self.offers.append(pack())
        return self.held

    def commit(self, pack=None, breakpoints=()) -> None:
        if pack is not None:
            self.state = pack()
        elif self.offers:
            assert self.held, "this stop loses the work since the last commit"
            self.state = self.offers[-1]

    def end(self, breakpoints) -> None:
        pass


def bits_of(state) -> str:
    """A hash of all of a committed state that no clock has written."""
    timed = [TRACE.index("seconds"), TRACE.index("timestamp_ms")]
    arrays = {**state.arrays, "trace": np.delete(state.arrays["trace"], timed, axis=1)}
    attrs = json.loads(json.dumps(state.attrs))
    counts = {name: value for name, value in attrs["method"].pop("counts").items() if "seconds" not in name}
    data = {name: array.tolist() for name, array in arrays.items() if "seconds" not in name}
    return sha256(json.dumps([data, counts, attrs], sort_keys=True).encode()).hexdigest()


def restored(task, state, spread=HERE) -> Engine:
    """An engine at this state, as if it came from a file."""
    arrays = {name: array.copy() for name, array in state.arrays.items()}
    return Engine.restored(task, arrays, json.loads(json.dumps(state.attrs)), spread)
