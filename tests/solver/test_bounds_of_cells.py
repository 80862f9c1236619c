"""The bound that stored cells certify at a lambda, and the floor that rounding sets a path, by hand."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from verified import run_of

from gapwise.stages.solver.objective import Certificate
from gapwise.stages.solver.options import PathOptions, Status
from gapwise.stages.solver.path.rule import UNSEEN, WORST_SUM, negligible, rounding_floor
from gapwise.stages.solver.path.rules.anytime import Anytime
from gapwise.stages.solver.path.rules.paper import Paper
from gapwise.stages.solver.path.rules.two_sided import TwoSided
from gapwise.stages.solver.path.walk import worst_hinge
from gapwise.storage.results import read_path


@pytest.mark.parametrize("kind", ["two_sided", "two_sided_whole"])
def test_bound__is_that_of_the_shares_of_its_cell(kind: str) -> None:
    A, attrs = read_path(run_of("multiclass", kind) / "path.zarr")
    last, top = A["lambda"].size, attrs["hinge_at_zero"]

    def point(k: int) -> tuple[float, float, float, float]:
        """(R, ell, N, c)."""
        if k < 0:
            return top, top, 0.0, attrs["psi_norm2"]
        if k >= last:
            return top, 0.0, 0.0, 0.0
        norm2 = A["norm2"][k]
        return A["hinge"][k], A["loss_dual"][k], norm2, A["lambda"][k] ** 2 * norm2

    tried = 0
    for c, (low, high) in enumerate(zip(A["cell_low"], A["cell_high"], strict=True)):
        k, (t, u), (tau, ups) = A["cell_interval"][c], A["cell_primal"][c], A["cell_dual"][c]
        (R, ell, N, q), (S, m, M, r) = point(k - 1), point(k)
        inside = (low + 1e-3 * (min(high, 9.0 * low) - low), 0.5 * (low + min(high, 3.0 * low)))
        for lam in inside if low else (0.3 * high, (1.0 - 1e-9) * high):
            G, H = A["cell_inner"][c], A["cell_dual_inner"][c]
            if k < 0:
                primal, dual = top, top - attrs["psi_norm2"] / (2 * lam)
            elif low > 0.0:
                primal = lam / 2 * (t * t * N + 2 * t * u * G + u * u * M) + t * R + u * S + (1 - t - u) * top
                dual = tau * ell + ups * m - (tau * tau * q + 2 * tau * ups * H + ups * ups * r) / (2 * lam)
            else:
                best = min(1.0, ell * lam / q)
                primal = lam / 2 * t * t * N + (R if t == 1.0 else 0.0)
                dual = best * ell - best * best * q / (2 * lam)
            gap = (primal - dual) / (primal if attrs["relative"] else 1.0)
            assert TwoSided.bound(A, attrs, np.array([lam]))[0] == pytest.approx(gap, rel=1e-9, abs=1e-12)
            tried += 1
    assert tried > 10
    below = 0.5 * A["cell_low"][-1]
    assert not below or math.isnan(TwoSided.bound(A, attrs, np.array([below]))[0])


def test_bound__of_a_step_is_its_gap_at_lambda_and_eps_at_its_lower_end() -> None:
    A, attrs = read_path(run_of("multiclass", "paper") / "path.zarr")
    lam, low = A["lambda"], A["lambda_low"]
    np.testing.assert_allclose(Paper.bound(A, attrs, lam), A["gap"], rtol=1e-9)
    inner = (low > 0.0) & (np.append(lam[1:], 0.0) <= low)
    assert inner.sum() > 3
    np.testing.assert_allclose(Paper.bound(A, attrs, low[inner] * (1.0 + 1e-12)), attrs["eps"], rtol=1e-5)


def test_bound__of_paper_above_the_first_is_convex_in_the_factor() -> None:
    A, attrs = read_path(run_of("multiclass", "paper") / "path.zarr")
    far = Paper.bound(A, attrs, A["lambda"][:1] * np.array([4.0, 1e12]))
    at_zero = attrs["hinge_at_zero"] - A["loss_dual"][0]
    assert A["loss_dual"][0] > 0.1
    np.testing.assert_allclose(far, [0.25 * A["gap"][0] + 0.75 * at_zero, at_zero], rtol=1e-9, atol=1e-11)


def test_worst_hinge__is_in_units_of_the_least_loss() -> None:
    solved: Any = SimpleNamespace(
        problem=SimpleNamespace(n=3, least_loss=lambda i: [2.0, 0.0, 4.0][i]),
        it=SimpleNamespace(hinges=np.array([1.0, 0.0, 3.0])),
    )
    assert worst_hinge(solved) == 0.75


@pytest.mark.parametrize("relative", [False, True])
def test_negligible__is_decided_past_the_top_only(relative: bool) -> None:
    """The hinge has not fallen by eps yet: then lambda is past the top by 1e-4 of ||psi||^2 / (2 eps)."""
    path, unit = PathOptions(rule="two_sided", relative=relative), 0.1 * (4.0 if relative else 1.0)
    start: Any = SimpleNamespace(hinge_at_zero=4.0, psi_norm2=6.0)
    for share, ended in ((0.99, True), (1.01, False)):
        lam = share * 1e-4 * 6.0 / (2.0 * unit)
        point = Certificate(lam, 0.01, 3.95, 3.9, 1e-3, 3.94)
        assert negligible(path, 0.1, point, start) is ended
        assert negligible(path, 0.1, point._replace(hinge=3.0), start)


@pytest.mark.parametrize("unit", [0.1, 0.4])
@pytest.mark.parametrize("scale", [1.0, 1e6])
def test_rounding_floor__is_the_larger_of_its_two_bounds(unit: float, scale: float) -> None:
    start: Any = SimpleNamespace(psi_scale=scale)
    by_rounding = WORST_SUM * 2.0**-52 * scale**2 / (UNSEEN * unit)
    assert rounding_floor(start, unit, 5e-9) == pytest.approx(max(5e-9, by_rounding), rel=1e-12)
    assert (by_rounding > 5e-9) == (scale > 1.0)


@pytest.mark.parametrize("ended", [None, Status.LAMBDA_NEGLIGIBLE])
def test_anytime__says_how_the_axis_ends(ended: Status | None) -> None:
    rule: Any = SimpleNamespace(bottom=lambda eps: (0.0, ended), top=lambda eps: 5.0, reached=0.1)
    assert Anytime.attributes(rule)["axis_end"] == (ended or Status.CONVERGED).value
