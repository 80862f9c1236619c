"""The statements of stages/THEOREMS.md on random problems given by their vectors psi_i(y) alone: plain numpy, no solver."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
import pytest

INF = np.inf
CONES = {
    "free": (np.full(4, -INF), np.full(4, INF)),
    "cone": (np.array([0.0, -INF, -INF, 0.0]), np.array([INF, 0.0, INF, 0.0])),
}
BOX = (np.array([-INF, -0.3, 0.1, -0.2]), np.array([INF, 0.4, INF, -0.2]))
SEEDS = range(5)
CASES = [(cone, seed) for cone in CONES for seed in SEEDS]


@dataclass
class Random:
    """n blocks of 5 labellings, the first of them true; d = 4."""

    psi: np.ndarray
    loss: np.ndarray
    lower: np.ndarray
    upper: np.ndarray

    def clip(self, x: np.ndarray) -> np.ndarray:
        return np.clip(x, self.lower, self.upper)

    def hinges(self, w: np.ndarray) -> np.ndarray:
        return np.max(self.loss - self.psi @ w, axis=1)

    def hinge(self, w: np.ndarray) -> float:
        return float(self.hinges(w).mean())

    def primal(self, lam: float, w: np.ndarray) -> float:
        return 0.5 * lam * float(w @ w) + self.hinge(w)

    def of(self, alpha: np.ndarray) -> tuple[float, np.ndarray]:
        """ell and psi of a dual point."""
        return float((alpha * self.loss).sum(axis=1).mean()), np.einsum("iy,iyd->id", alpha, self.psi).mean(axis=0)

    def dual(self, lam: float, alpha: np.ndarray) -> float:
        """The least value over K of the Lagrangian: any box."""
        ell, psi = self.of(alpha)
        x = self.clip(psi / lam)
        return ell + 0.5 * lam * float(x @ x) - float(x @ psi)


def problem(kind: str, seed: int, n: int = 6) -> tuple[Random, np.random.Generator]:
    rng = np.random.default_rng(seed)
    psi, loss = rng.normal(size=(n, 5, 4)), rng.random((n, 5)) + 0.1
    psi[:, 0], loss[:, 0] = 0.0, 0.0
    return Random(psi, loss, *(BOX if kind == "box" else CONES[kind])), rng


def dual_point(p: Random, rng: np.random.Generator, lam: float, steps: int = 300) -> np.ndarray:
    """A dual point after some Frank-Wolfe steps: good, and not optimal."""
    alpha = rng.dirichlet(np.ones(5), size=len(p.loss))
    for k in range(steps):
        w = p.clip(p.of(alpha)[1] / lam)
        vertex = np.eye(5)[np.argmax(p.loss - p.psi @ w, axis=1)]
        alpha += 2.0 / (k + 3.0) * (vertex - alpha)
    return alpha


def solved(p: Random, rng: np.random.Generator, lam: float, steps: int = 300) -> dict:
    alpha = dual_point(p, rng, lam, steps)
    ell, psi = p.of(alpha)
    q = p.clip(psi)
    w = q / lam
    numbers = {"R": p.hinge(w), "ell": ell, "N": float(w @ w), "c": float(q @ q)}
    return {"lam": lam, "alpha": alpha, "w": w, "q": q, "g": lam * numbers["N"] + numbers["R"] - ell, **numbers}


def truth(p: Random) -> np.ndarray:
    return np.eye(5)[np.zeros(len(p.loss), int)]


@pytest.mark.parametrize(("kind", "seed"), CASES)
def test_lemma__the_dual_value_is_below_the_primal_one(kind: str, seed: int) -> None:
    p, rng = problem(kind, seed)
    alpha = rng.dirichlet(np.ones(5), size=len(p.loss))
    ell, psi = p.of(alpha)
    q = p.clip(psi)
    for lam in (0.01, 0.3, 5.0):
        assert p.dual(lam, alpha) == pytest.approx(ell - float(q @ q) / (2.0 * lam))
        assert p.primal(lam, q / lam) - p.dual(lam, alpha) == pytest.approx(
            lam * float(q @ q) / lam**2 + p.hinge(q / lam) - ell
        )
        assert p.primal(lam, p.clip(rng.normal(size=4))) >= p.dual(lam, alpha) - 1e-12


@pytest.mark.parametrize(("kind", "seed"), CASES)
def test_theorem_1__is_second_order_in_the_step(kind: str, seed: int) -> None:
    p, rng = problem(kind, seed)
    s = solved(p, rng, 0.4)
    for lam in np.geomspace(0.02, 8.0, 15):
        predicted = s["g"] + s["N"] * (lam - 0.4) ** 2 / (2.0 * lam)
        assert p.primal(lam, s["w"]) - p.dual(lam, s["alpha"]) == pytest.approx(predicted, abs=1e-12)
    eps = 2.0 * s["g"] + 0.01
    e = (eps - s["g"]) / s["N"]
    ends = [0.4 + e + sign * math.sqrt(e * e + 2.0 * e * 0.4) for sign in (-1, 1)]
    assert [p.primal(lam, s["w"]) - p.dual(lam, s["alpha"]) for lam in ends] == pytest.approx([eps, eps])
    assert ends[0] == pytest.approx(0.4 * math.exp(-math.acosh(1.0 + e / 0.4)))


@pytest.mark.parametrize(("kind", "seed"), CASES)
def test_theorem_1b__reaches_zero(kind: str, seed: int) -> None:
    p, rng = problem(kind, seed)
    s = solved(p, rng, 0.4)
    for lam in np.geomspace(1e-6, 0.4, 25):
        tau = min(1.0, s["ell"] * lam / s["c"])
        dual = p.dual(lam, tau * s["alpha"] + (1.0 - tau) * truth(p))
        assert p.primal(lam, s["w"]) - dual <= max(s["g"], s["R"]) + 1e-12


@pytest.mark.parametrize(("kind", "seed"), CASES)
def test_theorem_1d__is_worst_at_an_end_or_where_t_leaves_1(kind: str, seed: int) -> None:
    p, rng = problem(kind, seed)
    s, zero = solved(p, rng, 0.4), p.hinge(np.zeros(4))

    def bound(lam: float) -> float:
        t = min(max((zero - s["R"]) / (lam * s["N"]), 0.0), 1.0)
        value = 0.5 * lam * t * t * s["N"] + t * s["R"] + (1.0 - t) * zero - s["ell"] + 0.16 * s["N"] / (2.0 * lam)
        assert p.primal(lam, t * s["w"]) - p.dual(lam, s["alpha"]) <= value + 1e-12
        return value

    turn = min(max((zero - s["R"]) / s["N"], 0.4), 9.0)
    assert max(bound(lam) for lam in np.geomspace(0.4, 9.0, 200)) <= max(bound(0.4), bound(turn), bound(9.0)) + 1e-12


@pytest.mark.parametrize(("kind", "seed"), CASES)
def test_theorems_2_and_3__hold_for_points_that_are_not_each_other_s(kind: str, seed: int) -> None:
    p, rng = problem(kind, seed)
    duals = [solved(p, rng, lam, steps=30) for lam in (0.5, 0.2)]
    w = [p.clip(s["w"] + 0.1 * rng.normal(size=4)) for s in duals]
    zero = p.hinge(np.zeros(4))
    for _ in range(20):
        t, tau = rng.dirichlet(np.ones(3), size=2)[:, :2]
        mean = t[0] * w[0] + t[1] * w[1]
        alpha = tau[0] * duals[0]["alpha"] + tau[1] * duals[1]["alpha"] + (1.0 - tau.sum()) * truth(p)
        A = float(mean @ mean)
        R_t = t[0] * p.hinge(w[0]) + t[1] * p.hinge(w[1]) + (1.0 - t.sum()) * zero
        q = tau[0] * duals[0]["q"] + tau[1] * duals[1]["q"]
        B, ell = float(q @ q), tau[0] * duals[0]["ell"] + tau[1] * duals[1]["ell"]

        def bound(lam: float, A: float = A, rest: float = R_t - ell, B: float = B) -> float:
            return 0.5 * lam * A + rest + B / (2.0 * lam)

        low, high = np.sort(np.exp(rng.uniform(-4.0, 1.0, 2)))
        for lam in np.geomspace(low, high, 7):
            assert p.primal(lam, mean) <= 0.5 * lam * A + R_t + 1e-12
            assert p.dual(lam, alpha) >= ell - B / (2.0 * lam) - 1e-12
            if kind == "free":
                assert p.dual(lam, alpha) == pytest.approx(ell - B / (2.0 * lam), abs=1e-12)
            assert p.primal(lam, mean) - p.dual(lam, alpha) <= max(bound(low), bound(high)) + 1e-12


@pytest.mark.parametrize("seed", SEEDS)
def test_scaling__makes_every_hinge_zero(seed: int) -> None:
    p, rng = problem("free", seed)
    w = rng.normal(size=4)
    psi = p.psi + (1.2 - rng.random((6, 5, 1)) - p.psi @ w[:, None]) * w / float(w @ w)  # margins from 0.2 to 1.2
    psi[:, 0] = 0.0
    separable = Random(psi, p.loss, *CONES["free"])
    w = 2.0 * w
    m = float(np.max(separable.hinges(w) / p.loss[:, 1:].min(axis=1)))
    w, m = (w, m) if m < 1.0 else (5.0 * w, float(np.max(separable.hinges(5.0 * w) / p.loss[:, 1:].min(axis=1))))
    assert 0.0 <= m < 1.0
    assert separable.hinge(w / (1.0 - m)) <= 1e-12


@pytest.mark.parametrize("seed", SEEDS)
def test_theorem_4__any_messages_bound_a_potts_model(seed: int) -> None:
    rng = np.random.default_rng(seed)
    edges = [(0, 1), (1, 2), (2, 3), (0, 3), (0, 2)]
    theta, u, c = rng.normal(size=(4, 3)), rng.normal(size=(5, 3)), rng.random(5)
    most = max(
        sum(theta[p, y[p]] for p in range(4)) - sum(c[e] for e, (p, q) in enumerate(edges) if y[p] != y[q])
        for y in itertools.product(range(3), repeat=4)
    )
    for size in (0.0, 0.1, 0.3, 2.0):
        brackets = theta.copy()
        for e, (p, q) in enumerate(edges):
            brackets[q] -= size * u[e]
            brackets[p] += np.maximum(size * u[e], size * u[e].max() - c[e])
        assert brackets.max(axis=1).sum() >= most


@pytest.mark.parametrize("kind", [*CONES, "box"])
@pytest.mark.parametrize("seed", SEEDS)
def test_theorem_5__certifies_any_pair_and_the_mean_by_its_spread(kind: str, seed: int) -> None:
    p, rng = problem(kind, seed)
    lam, alpha = 0.3, dual_point(p, rng, 0.3)
    ell, psi = p.of(alpha)
    v = psi / lam
    points = p.clip(v + rng.normal(size=(7, 4)))
    gaps = np.array([p.primal(lam, w) - p.dual(lam, alpha) for w in points])
    for w, gap in zip(points, gaps, strict=True):
        blocks = p.hinge(w) - ell + float(w @ psi)
        excess = 0.5 * lam * (float((w - v) @ (w - v)) - float((p.clip(v) - v) @ (p.clip(v) - v)))
        assert gap == pytest.approx(blocks + excess, abs=1e-12)
        assert excess >= -1e-12
    share = np.arange(1.0, 8.0) ** 7 / np.sum(np.arange(1.0, 8.0) ** 7)
    mean = share @ points
    spread = float(share @ np.sum((points - mean) ** 2, axis=1))
    assert p.primal(lam, mean) - p.dual(lam, alpha) <= share @ gaps - 0.5 * lam * spread + 1e-12
    assert np.all(p.clip(mean) == pytest.approx(mean))
