"""Verdicts of verify do not depend on units: features times s and losses times t, from 1e-8 to 1e8."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import zarr
from tiny import multiclass
from verified import copy_of

from gapwise.stages.problems import build
from gapwise.stages.problems.protocol import Problem
from gapwise.stages.solve import Task, solve
from gapwise.stages.solver.methods import method_options
from gapwise.stages.solver.options import CacheOptions, PathOptions, Status
from gapwise.stages.verify import CertificateError, verify

PLAIN = {
    "two_sided": {"rule": "two_sided", "eps": 0.02, "lambda_min": 0.3},
    "relative path": {"rule": "two_sided", "eps": 0.05, "relative": True, "lambda_min": 0.05},
    "paper": {"rule": "paper", "lambda_min": 0.5},
    "anytime": {"rule": "anytime", "eps": 0.02, "lambda_min": 0.3},
    "relative": {"rule": "grid", "lambdas": [1.0, 0.2], "tolerance": 1e-2, "relative": True},
    "negligible": {"rule": "two_sided", "eps": 0.3},
}
TAMPER = {
    "weights": (lambda x: 0.0 * x, "stored weights differ by 1 of the largest"),
    "gap": (lambda x: 1.001 * x, "gap is stored as"),
    "primal": (lambda x: (1 + 1e-5) * x, "primal is stored as"),
    "dual": (lambda x: (1 + 1e-5) * x, "dual is stored as"),
    "norm2": (lambda x: (1 + 1e-5) * x, "norm2 is stored as"),
}
CASES = [
    ("two_sided", 1e8, 1e-8, "weights"),
    ("relative path", 1e-8, 1e8, "gap"),
    ("paper", 1.0, 1e-8, "primal"),
    ("anytime", 1e8, 1.0, "dual"),
    ("relative", 1e-8, 1e-8, "norm2"),
    ("negligible", 1e8, 1e8, "gap"),
]
"""Each rule in units of its own, with an array to tamper with."""


def problem_of(kind: str, s: float, t: float) -> Problem:
    if kind == "negligible":  # no w separates equal inputs with different labels
        x, labels = np.repeat(np.random.default_rng(0).normal(size=(3, 2)), 2, axis=0), np.array([0, 1, 1, 2, 2, 0])
    else:
        plain = multiclass()
        x, labels = plain.rows.x, plain.truth
    return build("multiclass", {"x": s * x, "labels": labels}, {"classes": 3, "cost": t * (1.0 - np.eye(3))})


def path_in(kind: str, s: float, t: float) -> PathOptions:
    """Lambda has the unit s^2 / t, objective values have t."""
    unit, choices = s * s / t, dict(PLAIN[kind])
    choices["lambda_min"] = unit * choices.get("lambda_min", 0.0)
    choices["lambdas"] = [unit * lam for lam in choices.get("lambdas", ())]
    for name in () if choices.get("relative") else ("eps", "tolerance"):
        choices[name] = t * choices.get(name, 0.1)
    path = PathOptions(**choices)
    path.check()
    return path


@pytest.mark.parametrize(("kind", "s", "t", "array"), CASES)
def test_verify__passes_what_is_solved_in_any_units_and_finds_what_is_not_so(
    tmp_path: Path, kind: str, s: float, t: float, array: str
) -> None:
    problem, run = problem_of(kind, s, t), tmp_path / "solved"
    options = method_options(cache=CacheOptions(kind="gap"), max_passes=1000.0, rebase_steps=20)
    status = solve(Task(problem, options, path_in(kind, s, t)), run, key="k")
    assert status is (Status.LAMBDA_NEGLIGIBLE if kind == "negligible" else Status.CONVERGED)
    result = verify(problem, run)
    assert result["certified"]
    assert result["broken"] == []
    assert result["max_rebuild_error"] < 1e-10

    change, message = TAMPER[array]
    tampered = zarr.open_group(copy_of(run, tmp_path / "tampered") / "path.zarr", mode="a")[array]
    tampered[-1] = change(tampered[-1])
    with pytest.raises(CertificateError, match=message):
        verify(problem, tmp_path / "tampered" / "run")

    promised = zarr.open_group(run / "path.zarr", mode="a").attrs
    promised["eps"] *= 1e-3  # 1e-11 where the losses are 1e-8
    above = r"the regulariser is negligible; at its last lambda it is worth|is above|the gap reaches|the gap of w = 0"
    with pytest.raises(CertificateError, match=above):
        verify(problem, run, samples=0)
