"""Verdicts of verify do not depend on units: features times s and losses times t, from 1e-8 to 1e8."""

from __future__ import annotations

import functools
import tempfile
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

pytestmark = pytest.mark.slow

KINDS = {
    "one_sided": {"rule": "one_sided", "lambda_min": 0.05},
    "two_sided": {"rule": "two_sided", "eps": 0.02, "lambda_min": 0.3},
    "relative path": {"rule": "two_sided", "eps": 0.05, "relative": True, "lambda_min": 0.05},
    "paper": {"rule": "paper", "lambda_min": 0.5},
    "anytime": {"rule": "anytime", "eps": 0.02, "lambda_min": 0.3},
    "grid": {"rule": "grid", "lambdas": [1.0, 0.2], "tolerance": 1e-3},
    "relative": {"rule": "grid", "lambdas": [1.0, 0.2], "tolerance": 1e-2, "relative": True},
    "negligible": {"rule": "one_sided", "eps": 0.3},
    "negligible, two_sided": {"rule": "two_sided", "eps": 0.3},
}
SCALES = [(s, t) for s in (1e-8, 1.0, 1e8) for t in (1e-8, 1.0, 1e8)]
ABOVE = {"negligible, two_sided": r"the regulariser is negligible; at its last lambda it is worth"}
"""What verify says first of a promise that is too good, where it is not the gap."""
FAR = [(1.0, 1e-8), (1e8, 1.0), (1e-8, 1e8), (1e8, 1e-8)]
FOLDER = tempfile.TemporaryDirectory(prefix="gapwise-scales-")


@functools.cache
def problem_of(kind: str, s: float, t: float) -> Problem:
    if kind.startswith("negligible"):  # no w separates equal inputs with different labels
        x, labels = np.repeat(np.random.default_rng(0).normal(size=(3, 2)), 2, axis=0), np.array([0, 1, 1, 2, 2, 0])
    else:
        plain = multiclass()
        x, labels = plain.x, plain.truth
    return build("multiclass", {"x": s * x, "labels": labels}, {"classes": 3, "cost": t * (1.0 - np.eye(3))})


@functools.cache
def run_of(kind: str, s: float, t: float) -> Path:
    """A solve in these units: lambda has the unit s^2 / t, objective values have t."""
    unit, choices = s * s / t, dict(KINDS[kind])
    for name in ("lambda_min",):
        choices[name] = unit * choices.get(name, 0.0)
    choices["lambdas"] = [unit * lam for lam in choices.get("lambdas", ())]
    for name in () if choices.get("relative") else ("eps", "tolerance"):
        choices[name] = t * choices.get(name, 0.1)
    path = PathOptions(**choices)
    path.check()
    run = Path(tempfile.mkdtemp(dir=FOLDER.name))
    options = method_options(cache=CacheOptions(kind="gap"), max_passes=1000.0, rebase_steps=20)
    status = solve(Task(problem_of(kind, s, t), options, path), run, key="k")
    assert status is (Status.LAMBDA_NEGLIGIBLE if kind.startswith("negligible") else Status.CONVERGED)
    return run


@pytest.mark.share(0.4)
@pytest.mark.parametrize(("s", "t"), SCALES)
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_verify__passes_what_is_solved_in_any_units(kind: str, s: float, t: float) -> None:
    result = verify(problem_of(kind, s, t), run_of(kind, s, t))
    assert result["certified"]
    assert result["broken"] == []
    assert result["max_rebuild_error"] < 1e-10


TAMPER = {
    "weights": ("weights", lambda x: 0.0 * x, "stored weights differ by 1 of the largest"),
    "gap": ("gap", lambda x: 1.001 * x, "gap is stored as"),
    "primal": ("primal", lambda x: (1 + 1e-5) * x, "primal is stored as"),
    "dual": ("dual", lambda x: (1 + 1e-5) * x, "dual is stored as"),
    "norm2": ("norm2", lambda x: (1 + 1e-5) * x, "norm2 is stored as"),
}


@pytest.mark.share(0.4)
@pytest.mark.parametrize("case", TAMPER)
@pytest.mark.parametrize(("s", "t"), FAR)
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_verify__finds_what_is_not_so_in_any_units(tmp_path: Path, kind: str, s: float, t: float, case: str) -> None:
    name, tamper, message = TAMPER[case]
    run = copy_of(run_of(kind, s, t), tmp_path)
    array = zarr.open_group(run / "path.zarr", mode="a")[name]
    array[-1] = tamper(array[-1])
    with pytest.raises(CertificateError, match=message):
        verify(problem_of(kind, s, t), run)


@pytest.mark.parametrize(("s", "t"), FAR)
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_verify__finds_a_gap_above_the_one_promised_in_any_units(tmp_path: Path, kind: str, s: float, t: float) -> None:
    """A promise of a thousandth of the gap that was solved to: 1e-11 where the losses are 1e-8."""
    run = copy_of(run_of(kind, s, t), tmp_path)
    zarr.open_group(run / "path.zarr", mode="a").attrs["eps"] *= 1e-3
    with pytest.raises(CertificateError, match=ABOVE.get(kind, r"is above|the gap reaches|the gap of w = 0")):
        verify(problem_of(kind, s, t), run, samples=0)
