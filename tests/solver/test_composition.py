"""What methods commit is what they say, and goes on to the bit."""

from __future__ import annotations

import json

import numpy as np
import pytest
from solved import AT_MEAN, StopAfter, options_of
from tiny import instance

from gapwise.stages.solver.counts import Arrays
from gapwise.stages.solver.method import AnyMethod
from gapwise.stages.solver.methods import method, methods
from gapwise.stages.solver.objective import Goal
from gapwise.stages.solver.options import Status
from gapwise.stages.solver.state import truth_pool

COMPILED = ("accelerated", AT_MEAN, "bcfw")
METHODS = [pytest.param(m, marks=() if m in COMPILED else pytest.mark.interpreted) for m in (*methods(), AT_MEAN)]


def solver_of(name: str) -> AnyMethod:
    problem, options = instance("multiclass_cone"), options_of(method=name)
    solver = method(options.method).begin(problem, options, truth_pool(problem), 3)
    solver.start_lambda(0.05, 0)
    return solver


def stopped(solver: AnyMethod, left: int) -> AnyMethod:
    """Solve on for so many rebase points; to the end if there are fewer."""
    stop = StopAfter(left)
    solver.solve(Goal(1e-3), lambda _: Status.INTERRUPTED if stop() else None)
    return solver


def measured_apart(arrays: Arrays) -> dict[str, np.ndarray]:
    """The arrays without what is measured in seconds."""
    others = {name: array for name, array in arrays.items() if name != "iteration_seconds"}
    return {**others, "trace": np.delete(others["trace"], (5, 6), axis=1)}


@pytest.mark.parametrize("name", METHODS)
def test_restored__packs_the_same_bits_and_goes_on_with_them(name: str) -> None:
    first = stopped(solver_of(name), 4)
    arrays, attrs = first.packed()
    stored = json.loads(json.dumps(attrs))
    second = method(first.options.method).restored(first.problem, first.options, 3, arrays, stored)
    for _ in range(2):
        (a, a_attrs), (b, b_attrs) = first.packed(), second.packed()
        for key in ("seconds", "seconds_before"):
            del a_attrs["counts"][key], b_attrs["counts"][key]
        assert json.dumps(a_attrs) == json.dumps(b_attrs)
        left, right = measured_apart(a), measured_apart(b)
        assert left.keys() == right.keys()
        for key, array in left.items():
            assert array.dtype == right[key].dtype, key
            assert array.tobytes() == right[key].tobytes(), key
        for solver in (first, second):
            stopped(solver, 3)
            solver.it.rebase()
    assert first.steps > arrays["trace"].shape[0]
