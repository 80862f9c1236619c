"""Stochastic subgradient descent: its steps by the formula, its limit against a dense QP, and that it claims nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from dense import best, primal_value
from single import LAM, never
from solved import options_of, path_of, solved
from tiny import feature_matrix, instance, local

from gapwise.stages.solver.methods import method_options
from gapwise.stages.solver.objective import Goal
from gapwise.stages.solver.options import PathOptions, Status
from gapwise.stages.solver.oracles import answers_at
from gapwise.stages.solver.path.walk import begin
from gapwise.stages.verify import CertificateError, asked_for, verify
from gapwise.storage.mixture import model_at
from gapwise.storage.results import read_path

pytestmark = pytest.mark.interpreted

NAMES = ["multiclass", "multiclass_cone", "chain_sparse", "segmentation"]
"""Attributes that are all 0 or 1 would make ties, which rounding decides."""


def ssg_of(problem, lam=LAM, **choices):
    options = method_options("ssg", **{"max_passes": 300.0, **choices})
    options.check()
    return begin(problem, options, PathOptions(rule="single", lam=lam), None, seed=0)


def clipped(problem, w):
    return np.clip(w, problem.lower, problem.upper) if problem.lower.size else w


def naive(problem, lam, steps):
    """w_1, ..., w_T as the formula says, from the labellings that the structure's oracle returns at each."""
    n, rng, w, points = problem.n, np.random.default_rng(0), np.zeros(problem.d), []
    for t in range(1, steps + 1):
        i = int(rng.random() * n)
        truth = problem.truth[problem.label_ptr[i] : problem.label_ptr[i + 1]]
        y = answers_at(problem, w, range(i, i + 1)).vertex[0, : truth.size]
        psi = feature_matrix(problem, i) @ (local(problem, i, truth) - local(problem, i, y))
        w = clipped(problem, (1.0 - 1.0 / t) * w + psi / (lam * t))
        points.append(w)
    return np.array(points)


# -- the steps --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("name", "lam", "averaging"),
    [(name, (1e-3, 0.3)[k % 2], averaging) for k, name in enumerate(NAMES) for averaging in ("none", "weighted")],
)
def test_steps__are_those_of_the_formula(name, lam, averaging):
    problem, T = instance(name), 40
    points = naive(problem, lam, T)
    solver = ssg_of(problem, lam, averaging=averaging, max_oracle_calls=T)
    assert solver.solve(Goal(1e-9), never)[0] is Status.ORACLE_LIMIT
    weights = 2.0 * np.arange(1, T + 1) / (T * (T + 1.0))
    expected = weights @ points if averaging == "weighted" else points[-1]
    np.testing.assert_allclose(solver.primal(), expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())
    assert solver.steps == T


# -- the solve --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("averaging", ["none", "weighted"])
@pytest.mark.parametrize("name", ["multiclass_cone"])
def test_solve__tends_to_the_optimum_and_measures_the_primal_objective(name, averaging):
    problem = instance(name)
    solver = ssg_of(problem, averaging=averaging)
    status, point = solver.solve(Goal(1e9), never)
    assert (status, point) == (Status.PASS_LIMIT, None), "no tolerance ends it, however large"
    trace = np.array(solver.trace)
    passes, gap, dual, primal = trace[:, 2], trace[:, 7], trace[:, 8], trace[:, 9]
    assert np.isnan(gap).all()
    assert np.isnan(dual).all()
    assert primal[-1] == pytest.approx(primal_value(problem, solver.primal(), LAM), abs=1e-9)
    assert primal[-1] == pytest.approx(
        0.5 * LAM * float(np.sum(solver.primal() ** 2)) + float(np.mean(solver.it.hinges))
    )
    error = primal - best(name, LAM)
    assert error.min() >= -1e-9
    # O(log T / T) at the last point, O(1 / T) at the average: at 300 passes much better than at the first check
    assert error[-1] <= 0.05 * best(name, LAM) + 0.01
    assert np.median(error[-5:]) <= 0.35 * error[0]
    assert passes[0] == 11.0, "ten passes of steps and the exact one"
    np.testing.assert_allclose(np.diff(passes[:-1]), 11.0)
    assert passes[-1] >= 300.0 > passes[-2]
    assert solver.supports() is None


# -- what it claims -----------------------------------------------------------------------------------------------------
def test_verify__certifies_nothing_and_recomputes_the_primal_objective(tmp_path: Path) -> None:
    problem, path = instance("multiclass"), path_of(rule="grid", lambdas=[0.3, 0.1])
    solved(problem, tmp_path, options_of(method="ssg", max_passes=10.0), path)
    asked = asked_for(path, "ssg", seed=3, key="k")
    verdict = verify(problem, tmp_path, asked=asked)
    assert (verdict["dual_point"], verdict["certified"], verdict["broken"]) == (False, False, [])
    arrays, attrs = read_path(tmp_path / "path.zarr")
    assert attrs["certified"] is False
    assert np.isnan(arrays["gap"]).all()
    for lam, primal, w in zip(arrays["lambda"], arrays["primal"], arrays["weights"], strict=True):
        assert primal == pytest.approx(primal_value(problem, w, lam), abs=1e-9)
    assert model_at(tmp_path / "path.zarr", 0.3).gap is None
    with pytest.raises(CertificateError, match="dual_point"):
        verify(problem, tmp_path, asked=asked_for(path, "bcfw", seed=3, key="k"))
