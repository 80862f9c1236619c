"""The compiled arithmetic of proximal problems against numpy and exactly rounded sums."""

from __future__ import annotations

import math

import numpy as np
import pytest
from parts_of import proximal_of
from single import accelerated_of, never
from tiny import TINY, multiclass

from gapwise.stages.solver import iterate
from gapwise.stages.solver.proximal import CHUNK, dual_norms, move_towards, recentre

SIZES = [0, 1, CHUNK, CHUNK + 3]


def vectors(d: int, count: int) -> list[np.ndarray]:
    rng = np.random.default_rng(d)
    return [rng.normal(size=d) * 10.0 ** rng.integers(-8, 9, size=d) for _ in range(count)]


@pytest.mark.parametrize("d", SIZES)
def test_dual_norms__are_those_of_v(d: int) -> None:
    u, centre, w = vectors(d, 3)
    v = u + 7.0 * (u - centre)
    for other in (w, u):
        norm2, distance2 = dual_norms(u, centre, 7.0, other)
        assert norm2 == pytest.approx(math.fsum(v * v), rel=1e-13)
        assert distance2 == pytest.approx(math.fsum((other - v) ** 2), rel=1e-13)


@pytest.mark.parametrize("d", SIZES)
def test_move_towards__moves_by_a_share(d: int) -> None:
    mean, w = vectors(d, 2)
    expected = 0.75 * mean + 0.25 * w
    move_towards(mean, w, 0.25)
    np.testing.assert_allclose(mean, expected, rtol=1e-12, atol=1e-7)


@pytest.mark.parametrize("boxed", [False, True])
@pytest.mark.parametrize("d", SIZES)
def test_recentre__moves_the_centre_and_keeps_v(d: int, boxed: bool) -> None:
    rng = np.random.default_rng(d)
    u, before, centre = rng.normal(size=(3, d))
    w, kappa, lam = (np.clip(u, -0.5, 0.5) if boxed else u.copy()), 3.0, 0.5
    v = ((lam + kappa) * u - kappa * centre) / lam
    expected = w + 0.4 * (w - before)
    recentre(u, w if boxed else w[:0], before, centre, 0.4, kappa / (lam + kappa))
    np.testing.assert_allclose(centre, expected, rtol=1e-13, atol=1e-13)
    np.testing.assert_array_equal(before, w)
    np.testing.assert_allclose(((lam + kappa) * u - kappa * centre) / lam, v, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("name", ["multiclass", "chain", "multiclass_cone"])
def test_dual_and_excess__are_those_of_v_laid_out(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """At every rebase point, of w and of another primal point; with a box too."""
    solver, seen = accelerated_of(TINY[name]()), 0

    def boundary(solver):
        nonlocal seen
        seen += solver.counts.kappa > 0.0
        for w in (None, solver.iterate.state.w, solver.point, 2.0 * solver.iterate.state.w):
            values = solver.iterate.dual_and_excess(w)
            with monkeypatch.context() as patched:
                patched.setattr(iterate, "own_metric", lambda problem: True)  # whose v is always laid out
                assert values == pytest.approx(solver.iterate.dual_and_excess(w), rel=1e-11, abs=1e-13)

    solver.solve(0.01, boundary)
    assert seen > 1


def test_weights__stay_when_the_mean_moves_on() -> None:
    """What has been certified is not moved by the points that come after it."""
    problem = multiclass(n=60, width=12, classes=6)
    solver = accelerated_of(problem, lam=1e-2)
    solver.solve(1e-3, never)
    certified = solver.iterate.weights.copy()
    solver.iterate.state.w[:] += 1.0
    assert proximal_of(solver).counts.points > 1
    proximal_of(solver).note()
    np.testing.assert_array_equal(solver.iterate.weights, certified)
