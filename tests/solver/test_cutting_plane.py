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
from solved import DieAfter, Killed, StopAfter, options_of, path_of, solved, stopped_and_resumed
from tiny import TINY, by_all_methods, instance, multiclass

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


@pytest.mark.parametrize("name", by_all_methods())
@pytest.mark.parametrize("way", WAYS)
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


@pytest.mark.parametrize("way", ["one slack", "n slacks"])
def test_gram__is_that_of_the_planes_and_follows_them(way: str) -> None:
    """Rows are added and dropped; what is kept equals the inner products of the planes' slopes, by enumeration."""
    problem = instance("chain")
    solver = solver_of(problem, way, 0.02, cutting_plane=PlaneGroup(unused_iterations=1))
    if way == "n slacks":
        solver.options.cutting_plane = WorkingSetGroup(unused_iterations=1)
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


@pytest.mark.parametrize("way", WAYS)
def test_hard__without_a_loss_there_is_nothing_to_do(way: str) -> None:
    solver = solver_of(multiclass(cost=np.zeros((3, 3))), way)
    status, point = solver.solve(1e-12, never)
    assert status is Status.CONVERGED
    assert (point.gap, point.primal, solver.counts.gap_passes) == (0.0, 0.0, 1)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("scale", [1e8, 1e-8])
def test_hard__losses_of_any_size(way: str, scale: float) -> None:
    """Losses and lambda, hence w, in another unit: the same solve. Losses alone: another problem, certified as ever."""
    unit, scaled = multiclass(), multiclass(cost=scale * (1.0 - np.eye(3)))
    expected = solver_of(unit, way)
    same = solver_of(scaled, way, LAM / scale)
    goal = 1e-8
    assert expected.solve(goal, never)[0] is Status.CONVERGED
    status, point = same.solve(goal * scale, never)
    assert status is Status.CONVERGED
    assert point.primal == pytest.approx(scale * best("multiclass", LAM), rel=1e-7)
    assert_true(same, point)
    alone = solver_of(scaled, way, max_passes=100.0)
    status, point = alone.solve(1e-6 * scale, never)
    assert status is Status.CONVERGED
    assert_true(alone, point)


def test_hard__a_broken_quadratic_solver_costs_progress_and_no_truth(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    answers = [lambda k: np.full(k, np.nan), lambda k: 1e6 * rng.normal(size=k), lambda k: np.full(k, -1.0)]
    solve = simplex_qp._solved
    calls = []

    def broken(Q, f, group, most):
        calls.append(1)
        good = len(calls) % 4 == 0
        return solve(Q, f, group, most) if good else answers[len(calls) % 4 - 1](f.size)

    monkeypatch.setattr(simplex_qp, "_solved", broken)
    solver = solver_of(instance("chain"), "one slack")
    status, point = solver.solve(1e-6, never)
    assert status is Status.CONVERGED
    assert len(calls) > 4
    assert_true(solver, point)
    duals = np.array(solver.trace)[:, 8]
    assert np.all(np.diff(duals) >= -1e-12)


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


def test_maximise__has_the_same_bits_wherever_its_arrays_lie() -> None:
    rng = np.random.default_rng(2)
    root = rng.normal(size=(31, 9))
    Q, f, group = root @ root.T, rng.random(31), np.zeros(31, np.int64)
    expected = simplex_qp.maximise(Q, f, group, np.zeros(31))
    for shift in range(1, 5):
        raw = np.empty(31 * 31 + 8)
        moved = raw[shift : shift + 31 * 31].reshape(31, 31)
        moved[:] = Q
        other = np.empty(40)[shift : shift + 31]
        other[:] = f
        assert simplex_qp.maximise(moved, other, group, np.zeros(31)).tobytes() == expected.tobytes()


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
@pytest.mark.share(0.5)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["multiclass_cone", "chain"])
def test_resume__has_the_same_bits(tmp_path: Path, way: str, name: str) -> None:
    """Stopped wherever the state can be committed, along a grid that keeps w, where planes are dropped, too."""
    options = options_of(**WAYS[way])
    options.cutting_plane = dataclasses.replace(options.cutting_plane, unused_iterations=3)
    path = path_of(rule="grid", lambdas=[1.0, 0.3], tolerance=1e-6, warm_start="keep_primal")
    assert solved(TINY[name](), tmp_path / "whole", options, path) is Status.CONVERGED
    stops = np.random.default_rng(4).integers(1, 5, size=6)
    assert stopped_and_resumed(TINY[name](), tmp_path / "parts", options, path, stops) >= 2
    assert_same_path(tmp_path / "whole", tmp_path / "parts")


def test_resume__from_the_last_commit_of_a_process_that_died(tmp_path: Path) -> None:
    options, path = options_of(method="cutting_plane"), path_of(rule="single", lam=0.02, tolerance=1e-8)

    solved(TINY["chain"](), tmp_path / "whole", options, path)
    assert solved(TINY["chain"](), tmp_path / "parts", options, path, stop=StopAfter(4)) is Status.INTERRUPTED
    with pytest.raises(Killed):
        solved(TINY["chain"](), tmp_path / "parts", options, path, stop=DieAfter(5))
    solved(TINY["chain"](), tmp_path / "parts", options, path)
    assert_same_path(tmp_path / "whole", tmp_path / "parts")


DAMAGE = {
    "plane_offset": (lambda x: x[::-1].copy(), "plane_offset: expected numbers that rise"),
    "plane_atom": (lambda x: x + np.int32(10**6), "plane_atom: expected rows of support_alpha, 0 to"),
    "plane_share": (lambda x: x[:-1], "plane_share: is float64"),
    "plane_weight": (lambda x: -1.0 - x, "plane_weight: expected weights from 0 to 1"),
    "plane_loss": (lambda x: np.full_like(x, np.nan), "plane_loss: entry"),
    "plane_idle": (lambda x: x[:-1], "plane_idle: is int64"),
    "plane_gram": (lambda x: x[:-1], "plane_gram: is float64"),
}


@pytest.mark.parametrize("case", DAMAGE)
def test_restored__refuses_planes_that_do_not_fit(case: str) -> None:
    solver = solver_of(instance("multiclass"), "one slack", 0.05)
    stop = StopAfter(4)
    assert solver.solve(1e-12, lambda _: Status.INTERRUPTED if stop() else None)[0] is Status.INTERRUPTED
    arrays, attrs = solver.packed()
    arguments = solver.problem, solver.options, 0
    again = method("cutting_plane").restored(*arguments, arrays, attrs).packed()[0]
    for key, array in arrays.items():
        np.testing.assert_array_equal(again[key], array)
    change, message = DAMAGE[case]
    with pytest.raises(ValueError, match=message):
        method("cutting_plane").restored(*arguments, {**arrays, case: change(arrays[case])}, attrs)


@pytest.mark.parametrize(
    ("name", "choices", "message"),
    [
        ("cutting_plane", PlaneGroup(unused_iterations=0), "unused_iterations: expected an integer >= 1"),
        ("cutting_plane_nslack", WorkingSetGroup(accuracy=1.0), r"accuracy: expected a number in \(0, 1\)"),
        (
            "cutting_plane_nslack",
            WorkingSetGroup(quadratic_variables=10**4),
            "quadratic_variables: expected an integer from",
        ),
    ],
)
def test_options__are_checked(name: str, choices: PlaneGroup, message: str) -> None:
    with pytest.raises(ValueError, match=rf"solver\.cutting_plane\.{message}"):
        method_options(name, cutting_plane=choices).check()
