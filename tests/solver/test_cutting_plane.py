"""Cutting planes: optimal to 1e-8 on every tiny instance, with a true certificate; hard cases; bit-equal when resumed."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from dense import best, primal_value
from equality import assert_same_path
from parts_of import method_of
from single import LAM, never
from solved import options_of, path_of, solved, stopped_and_resumed
from tiny import KINDS, TINY, instance

from gapwise.stages.problems import build
from gapwise.stages.solver import simplex_qp
from gapwise.stages.solver.cutting_planes import PlaneGroup
from gapwise.stages.solver.methods import method, method_options
from gapwise.stages.solver.methods.cutting_plane_nslack import WorkingSetGroup
from gapwise.stages.solver.options import PathOptions, Status
from gapwise.stages.solver.path.walk import begin
from gapwise.stages.solver.solver import Solver
from gapwise.stages.solver.state import truth_pool
from gapwise.stages.solver.supports import blocks_of

pytestmark = pytest.mark.interpreted

WAYS = {
    "one slack": {"method": "cutting_plane"},
    "n slacks": {"method": "cutting_plane_nslack"},
    "by blocks": {"method": "cutting_plane_nslack", "cutting_plane": WorkingSetGroup(quadratic_variables=0)},
}


def solver_of(problem, way: str, lam: float = LAM, *, path: bool = False, **choices) -> Solver:
    options = method_options(**WAYS[way], **{"max_passes": 500.0, **choices})
    options.check()
    recipe = method(options.method)
    solver = recipe.begin(problem, options, truth_pool(problem), 0, own_primal=not path)
    solver.start_lambda(lam, 0)
    return solver


def assert_true(solver: Solver, point) -> None:
    """The certificate is that of a feasible dual point and of the returned w, by enumeration."""
    P, pool = solver.problem, solver.iterate.state.pool
    block = blocks_of(pool)
    held = block >= 0
    assert np.all(pool.alpha[held] >= 0.0)
    np.testing.assert_allclose(np.bincount(block[held], pool.alpha[held], minlength=P.n), 1.0, atol=1e-12)
    assert point.primal == pytest.approx(primal_value(P, solver.primal(), point.lam), rel=1e-9, abs=1e-12)
    assert point.primal - point.dual == pytest.approx(point.gap, rel=1e-9, abs=1e-12 + 1e-12 * point.primal)


@pytest.mark.parametrize(
    ("name", "way"),
    [*((name, "one slack") for name in KINDS), ("multiclass_cone", "n slacks"), ("chain", "by blocks")],
)
def test_cutting_planes__reach_the_optimum_to_1e_8(name: str, way: str) -> None:
    solver = solver_of(instance(name), way)
    status, point = solver.solve(1e-8, never)
    assert status is Status.CONVERGED
    assert -1e-12 <= point.gap <= 1e-8
    assert abs(point.primal - best(name, LAM)) <= 1e-8
    assert abs(point.dual - best(name, LAM)) <= 1e-8
    assert_true(solver, point)
    duals = np.array(solver.trace)[:, 8]
    assert np.all(np.diff(duals) >= -1e-12)


def test_gram__is_that_of_the_planes_and_follows_them() -> None:
    """Rows are added and dropped; what is kept equals the inner products of the planes' slopes, by enumeration."""
    problem = instance("chain")
    solver = solver_of(problem, "one slack", 0.02, cutting_plane=PlaneGroup(unused_iterations=1))
    made = method_of(solver)
    added, add = [], made.add_plane
    made.add_plane = lambda atom, share: (added.append(1), add(atom, share))

    def boundary(solver: Solver) -> None:
        pool, block = solver.iterate.state.pool, blocks_of(solver.iterate.state.pool)
        slopes = np.zeros((made.planes.count, problem.d))
        for k, (atoms, shares) in enumerate(zip(made.planes.atom, made.planes.share, strict=True)):
            for s, share in zip(atoms, shares, strict=True):
                slopes[k] += share * psi(problem, int(block[s]), pool.labels[s]) / problem.n
        np.testing.assert_allclose(made.planes.gram, slopes @ slopes.T, atol=1e-13)
        np.testing.assert_allclose(
            solver.counts.lam * solver.iterate.dual_point()[0], made.planes.beta @ slopes, atol=1e-12
        )
        used = made.planes.used(pool.alpha.size)
        used[made.truth] = True
        newest = pool.used >= solver.steps - 1
        assert np.all(used | newest | (block < 0))

    status, point = solver.solve(1e-8, boundary)
    assert status is Status.CONVERGED
    assert_true(solver, point)
    assert made.planes.count < len(added)


def psi(problem, i: int, y: np.ndarray) -> np.ndarray:
    """psi_i(y), (d,)."""
    first, last = problem.label_ptr[i], problem.label_ptr[i + 1]
    delta, out = np.zeros(problem.local_ptr[i + 1] - problem.local_ptr[i]), np.zeros(problem.d)
    problem.add(i, problem.truth[first:last], 1.0, delta)
    problem.add(i, y[: last - first], -1.0, delta)
    problem.push(i, 1.0, delta, out)
    return out


@pytest.mark.parametrize("way", WAYS)
def test_hard__equal_blocks_and_a_single_block(way: str) -> None:
    x = np.array([[1.0, 2.0, 0.5]])
    for n in (1, 6):
        problem = build("multiclass", {"x": np.repeat(x, n, axis=0), "labels": np.zeros(n, np.int64)}, {"classes": 3})
        solver = solver_of(problem, way)
        status, point = solver.solve(1e-10, never)
        assert status is Status.CONVERGED
        assert_true(solver, point)
        if n == 1:
            single = point
    assert point.primal == pytest.approx(single.primal, abs=1e-10)


def test_exhausted__is_a_status_at_given_lambdas_and_an_error_along_paths() -> None:
    status, point = solver_of(instance("multiclass"), "one slack").solve(1e-300, never)
    assert status is Status.ROUNDING_LIMIT
    assert point.gap < 1e-12
    with pytest.raises(
        ArithmeticError, match=r"method=cutting_plane: at lambda 0\.3 rounding keeps the gap .* path\.eps"
    ):
        solver_of(instance("multiclass"), "one slack", path=True).solve(1e-300, never)


@pytest.mark.parametrize("way", WAYS)
def test_warm_start__of_another_dual_point_keeps_its_value(way: str) -> None:
    """A solve may begin at any dual point, which need not be a mixture of few joint labellings."""
    first = solver_of(instance("chain"), "by blocks", 0.1)
    first.solve(1e-6, never)
    options = method_options(**WAYS[way])
    solver = begin(instance("chain"), options, PathOptions(rule="single", lam=0.1), None, 0, dual=first.supports())
    status, point = solver.solve(1e-8, never)
    assert status is Status.CONVERGED
    assert solver.trace[0][7] <= 1e-6 + 1e-12
    assert np.all(np.diff(np.array(solver.trace)[:, 8]) >= -1e-12)
    assert_true(solver, point)


# -- the quadratic program --------------------------------------------------------------------------------------------
def test_maximise__meets_the_optimality_conditions_whatever_the_rank_and_the_groups() -> None:
    rng = np.random.default_rng(1)
    for k, rank, groups in ((1, 1, 1), (12, 2, 1), (40, 60, 1), (40, 5, 13), (30, 0, 3)):
        root = rng.normal(size=(k, rank))
        root[k // 2 :] = root[: k - k // 2]  # equal planes
        Q, f = root @ root.T, rng.random(k)
        group = np.arange(k) % groups
        x = simplex_qp.maximise(Q, f, group, np.zeros(k))
        assert np.all(x >= 0.0)
        assert np.max(np.bincount(group, x)) <= 1.0 + 1e-15
        assert simplex_qp.restricted_gap(f - Q @ x, x, group) <= 1e-10


def test_project__is_the_nearest_feasible_point() -> None:
    rng = np.random.default_rng(3)
    group = np.array([0, 0, 0, 1, 1, 1, 1])
    for _ in range(20):
        x = rng.normal(size=7)
        y = simplex_qp.project(x, group)
        assert np.all(y >= 0.0)
        assert np.max(np.bincount(group, y)) <= 1.0 + 1e-15
        for g in (0, 1):  # <x - y, z - y> <= 0 at the vertices z of the group's set
            of = group == g
            for z in (np.zeros(of.sum()), *np.eye(of.sum())):
                assert (x - y)[of] @ (z - y[of]) <= 1e-12


# -- stopped and resumed ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("way", "name"), [("one slack", "multiclass_cone"), ("by blocks", "chain")])
def test_resume__has_the_same_bits(tmp_path: Path, way: str, name: str) -> None:
    """Stopped wherever the state can be committed, along a grid that keeps w, where planes are dropped, too."""
    options = options_of(**WAYS[way])
    options.cutting_plane = dataclasses.replace(options.cutting_plane, unused_iterations=3)
    path = path_of(rule="grid", lambdas=[1.0, 0.3], tolerance=1e-6, warm_start="keep_primal")
    assert solved(TINY[name](), tmp_path / "whole", options, path) is Status.CONVERGED
    stops = np.random.default_rng(4).integers(1, 5, size=6)
    assert stopped_and_resumed(TINY[name](), tmp_path / "parts", options, path, stops) >= 2
    assert_same_path(tmp_path / "whole", tmp_path / "parts")
