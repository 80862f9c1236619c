"""Data that leave nothing to learn, or little: blocks with one labelling, one block only, losses that are all zero."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import numpy as np
import pytest
from solved import options_of
from tiny import chain, multiclass, python_oracle, segmentation

from gapwise.stages.model.predict import predict
from gapwise.stages.reports import charts
from gapwise.stages.reports.stored import StoredRun
from gapwise.stages.solve import Task, solve
from gapwise.stages.solver.options import PathOptions, Status
from gapwise.stages.verify import verify
from gapwise.storage.results import read_path

NOTHING = {
    "one class": lambda: multiclass(classes=1),
    "one label": lambda: chain(classes=1),
    "no loss": lambda: multiclass(cost=np.zeros((3, 3))),
    "one labelling in Python": lambda: python_oracle("Single", how="all"),
    "no loss in Python": lambda: python_oracle("Single", how="no loss"),
    "one block of one class": lambda: multiclass(n=1, classes=1),
}
LITTLE = {
    "one example": lambda: multiclass(n=1),
    "one sequence": lambda: chain(lengths=(3,)),
    "one token": lambda: chain(lengths=(1,)),
    "one image": lambda: segmentation(n=1),
    "some blocks of one labelling in Python": lambda: python_oracle("Single", how="some"),
    "one block in Python": lambda: python_oracle("Single", how="", n=1),
}
KINDS = {
    "two_sided": {"rule": "two_sided", "kappa": 0.7},
    "relative": {"rule": "two_sided", "kappa": 0.7, "relative": True},
    "paper": {"rule": "paper"},
    "anytime": {"rule": "anytime"},
    "grid": {"rule": "grid", "lambdas": [1.0, 0.1], "tolerance": 1e-3},
    "relative grid": {"rule": "grid", "lambdas": [1.0, 0.1], "tolerance": 1e-2, "relative": True},
}


def certified(problem, kind: str, run: Path, method: str) -> dict:
    path = PathOptions(**{"eps": 0.1, "kappa": 0.9, "lambda_min": 0.05, **KINDS[kind]})
    status = solve(Task(problem, options_of(method=method, max_passes=300.0), path), run, key="k")
    assert status is Status.CONVERGED
    result = verify(problem, run)
    assert result["certified"]
    assert math.isfinite(result["max_gap"])
    return result


@pytest.mark.parametrize(
    ("case", "kind", "method"),
    [*zip(itertools.cycle(NOTHING), KINDS, itertools.cycle(["bcfw", "accelerated"]), strict=False)],
)
def test_solve__says_that_zero_is_optimal_where_there_is_nothing_to_learn(
    tmp_path: Path, case: str, kind: str, method: str, caplog: pytest.LogCaptureFixture
) -> None:
    problem = NOTHING[case]()
    assert certified(problem, kind, tmp_path, method)["max_gap"] == 0.0
    labels, losses = predict(problem, np.zeros(problem.d))
    assert labels.size == problem.truth.size
    assert not losses.any()
    if "grid" not in kind:
        arrays, attrs = read_path(tmp_path / "path.zarr")
        assert not PathOptions(**KINDS[kind]).can.bound(arrays, attrs, np.array([1e-6, 1.0, 1e6])).any()
        charts.path(StoredRun(tmp_path, None))
        assert "w = 0 is optimal for every lambda" in caplog.text


@pytest.mark.parametrize(("case", "kind"), [*zip(LITTLE, KINDS, strict=False)])
def test_solve__certifies_where_there_is_little_to_learn(tmp_path: Path, case: str, kind: str) -> None:
    certified(LITTLE[case](), kind, tmp_path, "bcfw")
