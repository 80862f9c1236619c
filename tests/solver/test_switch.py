"""A lambda of a path that takes many passes goes on with accelerated steps: certificates, and bits after a stop."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from dense import optimum
from solved import StopAfter, options_of, path_of
from tiny import by_all_methods, instance

from gapwise.stages.solve import solve
from gapwise.stages.solver.engine import Engine, Task
from gapwise.stages.solver.events import Stop
from gapwise.stages.solver.methods import bcfw
from gapwise.stages.solver.options import Status
from gapwise.storage.results import read_path
from gapwise.storage.sink import MemorySink

EPS = 0.01


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """After three passes."""
    monkeypatch.setattr(bcfw, "HARD", 3.0)
    monkeypatch.setattr(bcfw, "CALLS", 1)


@functools.cache
def task_of(name: str, rule: str = "two_sided", **choices: Any) -> Task:
    return Task(instance(name), options_of(**choices), path_of(rule=rule, eps=EPS, kappa=0.7), seed=3)


def given_lambda(*, switches: bool = False) -> Task:
    """One lambda far below 1/n, to a thousandth of the objective."""
    goal = path_of(rule="single", lam=1e-4, tolerance=1e-3, relative=True)
    return Task(instance("chain"), options_of(), goal, seed=3, switches=switches)


def walked(task: Task, *observers: Any, sink: MemorySink | None = None) -> tuple[Engine, list[Any]]:
    """Walk on from the last commit of the sink, or from the beginning."""
    sink = sink or MemorySink()
    commit = sink.load()
    engine = Engine.begin(task) if commit is None else Engine.restored(task, commit.arrays, commit.attrs)
    with sink:
        engine.run(observers, sink)
    return engine, sink.columns(("lambda", "gap", "weights", "primal", "oracle_calls"))


@pytest.mark.parametrize("name", by_all_methods(["chain", "multiclass", "segmentation"]))
def test_hard_lambda__is_solved_by_accelerated_steps(name: str) -> None:
    task = task_of(name)
    engine, columns = walked(task)
    assert engine.status is Status.CONVERGED
    assert engine.solver.facts()["accelerated_from"] == engine.solver.counts.switched > 0.0
    assert engine.solver.counts.kappa == 0.0  # each lambda ends at w(alpha)
    np.testing.assert_array_less(columns["gap"], 0.7 * EPS * (1.0 + 1e-9))
    for lam, gap, primal in zip(columns["lambda"], columns["gap"], columns["primal"], strict=True):
        best = optimum(task.problem, float(lam))
        assert best - 1e-7 <= primal <= best + gap + 1e-7


def test_hard_lambda__is_solved_to_the_same_bits_after_stops() -> None:
    task, sink = task_of("chain"), MemorySink()
    _, expected = walked(task)
    switched = 0
    for left in (3, 1, 4, 2, 6, 1, 3, 2):
        engine, _ = walked(task, Stop(StopAfter(left)), sink=sink)
        switched += engine.status is Status.INTERRUPTED and engine.solver.counts.switched > 0.0
    assert switched > 2
    _, columns = walked(task, sink=sink)
    for name, column in expected.items():
        assert column.tobytes() == columns[name].tobytes(), name


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="seven seconds a solve without the JIT")
def test_given_lambda__keeps_its_steps_unless_the_task_lets_it_switch(tmp_path: Path) -> None:
    kept, _ = walked(given_lambda())
    assert kept.solver.counts.switched == 0.0
    task = given_lambda(switches=True)
    solve(task, tmp_path, key="k")
    arrays, attrs = read_path(tmp_path / "path.zarr", ("gap", "primal", "dual"))
    assert attrs["accelerated_from"] == task.path.lam
    best = optimum(task.problem, task.path.lam)
    assert arrays["dual"][0] - 1e-7 <= best <= arrays["primal"][0] + 1e-7
    assert arrays["gap"][0] <= 1e-3 * arrays["dual"][0]


@pytest.mark.parametrize(("rule", "choices"), [("paper", {}), ("two_sided", {"step": "fw"})])
def test_papers_rules_and_other_steps__stay_what_they_are(rule: str, choices: dict[str, Any]) -> None:
    engine, _ = walked(task_of("multiclass", rule, **choices))
    assert engine.solver.counts.switched == 0.0
    assert "accelerated_from" not in engine.solver.facts()
