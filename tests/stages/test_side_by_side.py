"""`path.parallel`: lambdas solved side by side, certified as ever; the same bits for all workers and stops."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from equality import assert_same_path
from solved import StopAfter, options_of, path_of, solved
from tiny import multiclass, multiclass_cone, python_oracle

from gapwise.stages.problems.parallel import Spread
from gapwise.stages.solver import side_by_side
from gapwise.stages.solver.engine import Task
from gapwise.stages.solver.options import Status
from gapwise.stages.verify import verify
from gapwise.storage.results import read_path

TWO_SIDED = {"rule": "two_sided", "eps": 0.02, "kappa": 0.7}


class Copied:
    """Another process: it has the problem, and everything else reaches it, and comes back, pickled."""

    def __init__(self, problem) -> None:
        self.problem, self.done = problem, 0

    def __call__(self, fn, split, w, parts, places):
        return [fn(self.problem, w, np.array(part)) for part in parts]

    def jobs(self, jobs, split, stop):
        assert split == "train"
        answers = []
        for fn, state in jobs:
            if stop():
                return None
            fn, state = pickle.loads(pickle.dumps((fn, state)))
            answers.append(pickle.loads(pickle.dumps(fn(self.problem, state, lambda: False))))
            self.done += 1
        return answers


def test_result__is_the_same_for_all_workers_and_elsewhere_and_certified(tmp_path: Path) -> None:
    problem, options, path = multiclass_cone(), options_of(), path_of(**TWO_SIDED, parallel=3)
    elsewhere = Copied(problem)
    for name, spread in {"one": Spread(), "two": Spread(workers=2), "pickled": Spread(elsewhere=elsewhere)}.items():
        assert solved(problem, tmp_path / name, options, path, spread=spread) is Status.CONVERGED
    assert_same_path(tmp_path / "two", tmp_path / "one")
    assert_same_path(tmp_path / "pickled", tmp_path / "one")
    assert verify(problem, tmp_path / "one", samples=3)["certified"]
    lams = read_path(tmp_path / "one" / "path.zarr", ("lambda",))[0]["lambda"]
    assert np.all(np.diff(lams) < 0.0)
    assert elsewhere.done >= lams.size


def test_resume__after_any_stops_between_rounds_has_the_same_bits(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(side_by_side, "POLL", 60.0)  # asked at ends of rounds only
    problem, options = multiclass(), options_of(method="accelerated")
    path = path_of(rule="anytime", eps=0.05, kappa=0.85, parallel=2)
    solved(problem, tmp_path / "whole", options, path, spread=Spread(workers=2))
    stops = 0
    while solved(problem, tmp_path / "parts", options, path, stop=StopAfter(1 + stops % 2)) is Status.INTERRUPTED:
        stops += 1
    assert stops >= 2
    assert_same_path(tmp_path / "parts", tmp_path / "whole")


@pytest.mark.parametrize(
    ("choices", "options", "expected"),
    [
        ({"rule": "grid", "lambdas": [1.0, 0.5]}, {}, "path.rule=grid hands out one lambda at a time"),
        ({}, {"method": "mpbcfw"}, "mpbcfw records its outer iterations"),
    ],
)
def test_choices__that_cannot_be_solved_side_by_side_are_refused(choices, options, expected) -> None:
    path = path_of(**{"rule": "two_sided", "parallel": 2, **choices})
    with pytest.raises(ValueError, match=expected):
        Task(multiclass(), options_of(**options), path).check()


def test_structures__that_one_thread_can_use_are_refused() -> None:
    task = Task(python_oracle(), options_of(), path_of(rule="two_sided", parallel=2))
    with pytest.raises(ValueError, match="one thread at a time can use a PythonOracle"):
        task.check(Spread(workers=2))
    task.check(Spread(elsewhere=Copied(python_oracle()), workers=2))
