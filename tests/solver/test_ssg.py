"""Stochastic subgradient descent: its steps by the formula, its limit against a dense QP, and that it claims nothing."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import numba
import numpy as np
import pytest
from dense import best, primal_value
from equality import assert_same_path
from parts_of import method_of
from single import LAM, never, solver_of
from solved import options_of, path_of, solved, stopped_and_resumed
from tiny import feature_matrix, instance, local, multiclass

from gapwise.stages import Stopped
from gapwise.stages.problems import parallel
from gapwise.stages.problems.parallel import Spread
from gapwise.stages.solver.methods import method_options
from gapwise.stages.solver.options import PathOptions, Status
from gapwise.stages.solver.oracles import vertices_at
from gapwise.stages.solver.path.walk import begin
from gapwise.stages.verify import CertificateError, asked_for, verify
from gapwise.storage import sink
from gapwise.storage.commits import CommitStore
from gapwise.storage.mixture import model_at
from gapwise.storage.results import read_path, read_trace

NAMES = ["multiclass", "multiclass_cone", *(["chain_sparse", "segmentation"] if numba.config.DISABLE_JIT else [])]
"""Its steps are compiled for half a minute for each structure: here for one. Attributes that are all 0 or 1 would make ties,
which rounding decides."""
VARIANTS = pytest.mark.parametrize(
    ("averaging", "project"), list(itertools.product(("none", "weighted"), (False, True))),
    ids=["last", "last in a ball", "average", "average in a ball"],
)  # fmt: skip


def ssg_of(problem, lam=LAM, **choices):
    options = method_options("ssg", **{"max_passes": 300.0, **choices})
    options.check()
    return begin(problem, options, PathOptions(rule="single", lam=lam), None, seed=0)


def clipped(problem, w):
    return np.clip(w, problem.lower, problem.upper) if problem.lower.size else w


def naive(problem, lam, steps, project):
    """w_1, ..., w_T as the formula says, from the labellings that the structure's oracle returns at each; and r."""
    n, rng, w = problem.n, np.random.default_rng(0), np.zeros(problem.d)
    radius = math.sqrt(float(np.mean(vertices_at(problem, w, range(n)).hinge)) / lam) if project else math.inf
    points = []
    for t in range(1, steps + 1):
        i = int(rng.random() * n)
        truth = problem.truth[problem.label_ptr[i] : problem.label_ptr[i + 1]]
        y = vertices_at(problem, w, range(i, i + 1)).vertex[0, : truth.size]
        psi = feature_matrix(problem, i) @ (local(problem, i, truth) - local(problem, i, y))
        w = clipped(problem, (1.0 - 1.0 / t) * w + psi / (lam * t))
        w = min(1.0, radius / max(float(np.linalg.norm(w)), 1e-300)) * w
        points.append(w)
    return np.array(points), radius


# -- the steps --------------------------------------------------------------------------------------------------------
@VARIANTS
@pytest.mark.parametrize("lam", [1e-3, 0.3])
@pytest.mark.parametrize("name", NAMES)
def test_steps__are_those_of_the_formula(name, lam, averaging, project):
    """With the small lambda the first projections multiply by 1e-3 together, so that this is moved into the vector."""
    problem, T = instance(name), 40
    points, radius = naive(problem, lam, T, project)
    solver = ssg_of(problem, lam, averaging=averaging, project=project, max_oracle_calls=T + problem.n * project)
    assert solver.solve(1e-9, never)[0] is Status.ORACLE_LIMIT
    weights = 2.0 * np.arange(1, T + 1) / (T * (T + 1.0))
    expected = weights @ points if averaging == "weighted" else points[-1]
    close = 1e-6 if project and name == "chain_sparse" else 1e-9  # its norms are from products of 32 bits
    np.testing.assert_allclose(solver.primal(), expected, rtol=close, atol=close * np.abs(expected).max())
    if project:
        assert method_of(solver).radius == pytest.approx(radius)
        assert np.linalg.norm(solver.primal()) <= radius * (1.0 + close)
        assert lam > 0.1 or np.max(np.linalg.norm(points, axis=1)) == pytest.approx(radius), "some steps are projected"
    assert solver.steps == T


@pytest.mark.parametrize("name", NAMES[:2])
def test_ball__contains_the_optimum(name):
    problem = instance(name)
    for lam in (0.05, 1.0):
        solver = solver_of(problem, lam, step="pairwise", cache="gap", max_passes=20000.0)
        assert solver.solve(1e-5, never)[0] is Status.CONVERGED
        ball = ssg_of(problem, lam, project=True, max_passes=1.0)
        ball.solve(1e-9, never)
        assert np.linalg.norm(solver.iterate.state.w) <= method_of(ball).radius


# -- the solve --------------------------------------------------------------------------------------------------------
@VARIANTS
@pytest.mark.parametrize("name", NAMES[:3])
def test_solve__tends_to_the_optimum_and_measures_the_primal_objective(name, averaging, project):
    problem = instance(name)
    solver = ssg_of(problem, averaging=averaging, project=project)
    status, point = solver.solve(1e9, never)
    assert (status, point) == (Status.PASS_LIMIT, None), "no tolerance ends it, however large"
    trace = np.array(solver.trace)
    passes, gap, dual, primal = trace[:, 2], trace[:, 7], trace[:, 8], trace[:, 9]
    assert np.isnan(gap).all()
    assert np.isnan(dual).all()
    assert primal[-1] == pytest.approx(primal_value(problem, solver.primal(), LAM), abs=1e-9)
    assert primal[-1] == pytest.approx(0.5 * LAM * float(np.sum(solver.primal() ** 2)) + solver.iterate.mean_hinge())
    error = primal - best(name, LAM)
    assert error.min() >= -1e-9
    # O(log T / T) at the last point, O(1 / T) at the average: at 300 passes much better than at the first check
    assert error[-1] <= 0.05 * best(name, LAM) + 0.01
    assert np.median(error[-5:]) <= 0.35 * error[0]
    assert passes[0] == 11.0 + project, "ten passes of steps and the exact one, after that which finds the radius"
    np.testing.assert_allclose(np.diff(passes[:-1]), 11.0)
    assert passes[-1] >= 300.0 > passes[-2]
    assert solver.supports() is None


def test_solve__of_another_lambda_begins_at_zero():
    ends = []
    for lams in ([0.1], [1.0, 0.1]):
        solver = ssg_of(instance("multiclass"), lams[0], averaging="weighted", max_passes=20.0)
        for k, lam in enumerate(lams):
            if k:
                solver.iterate.rng = np.random.default_rng(0)
                solver.move_to(lam, k, "keep_dual")
            solver.solve(1e-9, never)
        ends.append(solver.primal())
        assert solver.ledger.passes_here == 20.0 + 1.0, "the exact pass at the end comes on top"
    np.testing.assert_array_equal(*ends)


def test_solve__without_checks_in_between_measures_at_the_end():
    solver = ssg_of(instance("multiclass"), refresh_every=0, max_passes=12.0)
    solver.solve(1e-9, never)
    assert [row[2] for row in solver.trace] == [13.0]


# -- what goes on from a commit -----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("name", "averaging", "project"),
    [("multiclass", "weighted", True), ("multiclass", "none", False), ("multiclass_cone", "weighted", False),
     ("multiclass_cone", "none", True)],
)  # fmt: skip
def test_resume__is_bit_equal(tmp_path: Path, name, averaging, project) -> None:
    problem = instance(name)
    options = options_of(method="ssg", averaging=averaging, project=project, refresh_every=2, max_passes=15.0)
    path = path_of(rule="grid", lambdas=[0.01, 0.3])
    assert solved(problem, tmp_path / "whole", options, path) is Status.PASS_LIMIT
    stops = np.random.default_rng(4).integers(0, 9, size=6)
    assert stopped_and_resumed(problem, tmp_path / "parts", options, path, stops) >= 3
    assert_same_path(tmp_path / "whole", tmp_path / "parts")
    assert read_trace(tmp_path / "whole")["primal"].size == 2 * 5


def test_stop__between_two_commits_or_in_an_exact_pass_costs_no_bit(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(sink, "KEPT_SECONDS", 0.0)
    problem, path = multiclass(n=9), path_of(rule="single", lam=0.05)
    options = options_of(method="ssg", averaging="weighted", rebase_steps=40, refresh_every=3, max_passes=60.0)
    solved(problem, tmp_path / "whole", options, path)
    monkeypatch.setattr(parallel, "PIECE_SECONDS", 0.0)  # every step is a piece
    ended = []
    for left in (7, 40, 31, 90, 60):
        calls = itertools.count(1)

        def check(calls=calls, left=left) -> None:
            if next(calls) == left:
                raise Stopped

        try:
            ended.append(solved(problem, tmp_path / "parts", options, path, spread=Spread(check=check)))
        except Stopped:
            assert CommitStore(tmp_path / "parts" / "state", {"key": "k"}).load() is not None
    assert not ended
    solved(problem, tmp_path / "parts", options, path)
    assert_same_path(tmp_path / "parts", tmp_path / "whole")


@pytest.mark.parametrize(
    ("key", "change", "message"),
    [
        ("vector", lambda x: x[:-1], r"vector: is float64 \(11,\), expected float64 \(12\)"),
        ("vector", lambda x: x * np.nan, "vector: entry .* expected a finite number"),
        ("numbers", lambda x: x[:-1], "numbers: is float64"),
        ("counters", lambda x: x.astype(float), "counters: is float64"),
        ("trace", lambda x: x[:, :-1], "trace: is float64"),
    ],
)
def test_restored__refuses_arrays_that_do_not_fit(key, change, message) -> None:
    solver = ssg_of(instance("multiclass"), max_passes=3.0)
    solver.solve(1e-9, never)
    arrays, attrs = solver.packed()
    with pytest.raises(ValueError, match=message):
        solver.recipe.restored(solver.problem, solver.options, 0, {**arrays, key: change(arrays[key])}, attrs)


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


def test_path__is_refused(tmp_path: Path) -> None:
    for averaging in ("none", "weighted"):
        options = options_of(method="ssg", averaging=averaging)
        with pytest.raises(
            ValueError, match=r"solver\.method: expected one with a dual point, for path\.rule=two_sided .*, got 'ssg'"
        ):
            solved(instance("multiclass"), tmp_path / "run", options, path_of())
    assert not (tmp_path / "run").exists()


def test_options__need_an_end_that_is_no_tolerance() -> None:
    with pytest.raises(
        ValueError, match=r"solver\.max_passes: expected a number, because no tolerance ends method=ssg"
    ):
        method_options("ssg", max_passes=math.inf).check()
    method_options("ssg", max_passes=math.inf, max_oracle_calls=100.0).check()


def test_projection__is_refused_where_the_ball_might_miss_the_optimum() -> None:
    box = multiclass(lower=np.full(12, 0.5), upper=np.full(12, np.inf))
    with pytest.raises(ValueError, match=r"solver\.project: the bounds of feature 0, 0\.5 to inf, exclude w = 0"):
        ssg_of(box, project=True)
    solver = ssg_of(box)
    solver.solve(1e-9, never)
    assert solver.primal().min() >= 0.5
