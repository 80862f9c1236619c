"""1-slack cutting planes: optimal to 1e-8 on tiny instances, with a true certificate; hard cases; bit-equal when resumed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from dense import best, primal_value
from equality import assert_same_path
from single import LAM, never
from solved import options_of, path_of, solved, stopped_and_resumed
from tiny import KINDS, TINY, feature_matrix, instance, local

from gapwise.stages.problems import build
from gapwise.stages.solver.check import check_choices
from gapwise.stages.solver.method import AnyMethod
from gapwise.stages.solver.methods import cutting_plane, method, method_options
from gapwise.stages.solver.objective import Goal
from gapwise.stages.solver.options import Status
from gapwise.stages.solver.state import truth_pool

pytestmark = pytest.mark.interpreted

UNBOUNDED = [name for name in KINDS if not instance(name).lower.size]


def solver_of(problem, lam: float = LAM) -> AnyMethod:
    options = method_options("cutting_plane", max_passes=500.0)
    options.check()
    solver = method("cutting_plane").begin(problem, options, truth_pool(problem), 0)
    solver.start_lambda(lam, 0)
    return solver


def assert_true(solver: AnyMethod, point) -> None:
    """The certificate is that of a feasible dual point and of the returned w, by enumeration."""
    P, supports = solver.problem, solver.supports()
    assert np.all(supports.alpha > 0.0)
    np.testing.assert_allclose(np.add.reduceat(supports.alpha, supports.offset[:-1]), 1.0, atol=1e-12)
    assert point.primal == pytest.approx(primal_value(P, solver.primal(), point.lam), rel=1e-9, abs=1e-12)
    assert point.primal - point.dual == pytest.approx(point.gap, rel=1e-9, abs=1e-12 + 1e-12 * point.primal)


@pytest.mark.parametrize("name", UNBOUNDED)
def test_cutting_planes__reach_the_optimum_to_1e_8(name: str) -> None:
    solver = solver_of(instance(name))
    status, point = solver.solve(Goal(1e-8), never)
    assert status is Status.CONVERGED
    assert -1e-12 <= point.gap <= 1e-8
    assert abs(point.primal - best(name, LAM)) <= 1e-8
    assert abs(point.dual - best(name, LAM)) <= 1e-8
    assert_true(solver, point)
    assert np.all(np.diff(np.array(solver.trace)[:, 8]) >= -1e-12)


def test_gram__is_that_of_the_planes_in_the_pool_of_which_unused_ones_are_dropped(monkeypatch) -> None:
    monkeypatch.setattr(cutting_plane, "UNUSED_ITERATIONS", 1)
    problem = instance("chain")
    solver = solver_of(problem, 0.02)
    made, most = solver, []

    def boundary(solver: AnyMethod) -> None:
        pool, n = solver.it.state.pool, problem.n
        planes = int(pool.counts[0])
        labels, weights = pool.labels[: n * planes].reshape(n, planes, -1), pool.alpha[: n * planes].reshape(n, planes)
        assert (pool.counts == planes).all()
        assert (weights == weights[0]).all()
        lengths = np.diff(problem.label_ptr)
        slopes = np.array([
            sum(psi(problem, i, labels[i, k, : lengths[i]]) for i in range(n)) / n for k in range(planes)
        ])  # fmt: skip
        np.testing.assert_allclose(solver.counts.lam * solver.it.v_and_weights()[0], weights[0] @ slopes, atol=1e-12)
        if made.slopes:
            np.testing.assert_allclose(made.gram, slopes @ slopes.T, atol=1e-13)
        most.append(planes)

    status, point = solver.solve(Goal(1e-8), boundary)
    assert status is Status.CONVERGED
    assert_true(solver, point)
    assert max(most) < len(most), "each iteration adds one"


def psi(problem, i: int, y: np.ndarray) -> np.ndarray:
    """psi_i(y), (d,)."""
    truth = problem.truth[problem.label_ptr[i] : problem.label_ptr[i + 1]]
    return feature_matrix(problem, i) @ (local(problem, i, truth) - local(problem, i, y))


def test_hard__equal_blocks_and_a_single_block() -> None:
    x = np.array([[1.0, 2.0, 0.5]])
    for n in (1, 6):
        problem = build("multiclass", {"x": np.repeat(x, n, axis=0), "labels": np.zeros(n, np.int64)}, {"classes": 3})
        solver = solver_of(problem)
        status, point = solver.solve(Goal(1e-10), never)
        assert status is Status.CONVERGED
        assert_true(solver, point)
        if n == 1:
            single = point
    assert point.primal == pytest.approx(single.primal, abs=1e-10)


def test_bounds__are_refused() -> None:
    with pytest.raises(ValueError, match=r"solver\.method: cutting_plane takes no bounds .* use bcfw or accelerated"):
        check_choices(instance("multiclass_cone"), method_options("cutting_plane"), path_of(rule="single"))


def test_maximise__meets_the_optimality_conditions_whatever_the_rank() -> None:
    rng = np.random.default_rng(1)
    for k, rank in ((1, 1), (12, 2), (40, 60), (40, 5), (30, 0)):
        root = rng.normal(size=(k, rank))
        root[k // 2 :] = root[: k - k // 2]  # equal planes
        Q, f = root @ root.T, rng.random(k)
        x = cutting_plane.maximise(Q, f, np.eye(k)[0], 1e-10)
        gradient = f - Q @ x
        assert np.all(x >= 0.0)
        assert np.sum(x) == pytest.approx(1.0, abs=1e-12)
        assert np.max(gradient) - x @ gradient <= 1e-9


def test_resume__has_the_same_bits(tmp_path: Path, monkeypatch) -> None:
    """Stopped wherever the state can be committed, in the middle of lambdas too, where planes are dropped."""
    monkeypatch.setattr(cutting_plane, "UNUSED_ITERATIONS", 3)
    options, path = options_of(method="cutting_plane"), path_of(rule="grid", lambdas=[1.0, 0.3], tolerance=1e-6)
    assert solved(TINY["chain"](), tmp_path / "whole", options, path) is Status.CONVERGED
    stops = np.random.default_rng(4).integers(1, 5, size=6)
    assert stopped_and_resumed(TINY["chain"](), tmp_path / "parts", options, path, stops) >= 2
    assert_same_path(tmp_path / "whole", tmp_path / "parts")
