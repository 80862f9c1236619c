"""The arithmetic of verify, number by number: what no tampered path has shown to be wrong."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gapwise.stages.certify.audit import as_claimed
from gapwise.stages.certify.cells import Cells
from gapwise.stages.certify.ends import LEAST, PAST_TOP, ROUNDED, check_end, check_top, rounding_floor
from gapwise.stages.certify.points import SolvedPoints
from gapwise.stages.certify.recompute import Rebuilt, Zero
from gapwise.stages.certify.rounding import SHARE, TOLERANCE

ZERO = Zero(hinge=4.0, psi_norm2=6.0, psi=np.empty(0), psi_scale=2.0)
POINT = Rebuilt(
    norm2=0.7, gap=0.02, hinge=0.31, ell=0.9, simplex_error=0.0, rebuild_error=0.0, primal=0.66, dual=0.64, largest=1.0,
    psi_scale=1.0, dual_norm2=0.5,
)  # fmt: skip


def audit_of(**choices: Any) -> Any:
    attrs = {"eps": 0.1, "relative": False, "lambda_min": 0.0, "status": "CONVERGED", **choices.pop("attrs", {})}
    given = {"zero": ZERO, "attrs": attrs, "rebuilt": [POINT], "broken": [], "problem": None, "spread": None, **choices}
    return SimpleNamespace(**given)


def cells_of(lams: list[float], **arrays: Any) -> Any:
    """The verifier of cells over breakpoints with the numbers of `POINT`, of which each has g = 0.02 at its lambda."""
    points = [at_gap(lam) for lam in lams]
    return Cells(audit_of(arrays={"lambda": np.array(lams), **arrays}, rebuilt=points, unfinished=False))


def at_gap(lam: float) -> Rebuilt:
    """`POINT` at another lambda, with q = lambda w and the ell that leaves the gap 0.02."""
    return POINT._replace(dual_norm2=lam**2 * POINT.norm2, ell=lam * POINT.norm2 + POINT.hinge - POINT.gap)


@pytest.mark.parametrize(("low", "high", "scale"), [(1.0, 2.0, math.inf), (0.0, 2.0, math.inf), (2.0, math.inf, 2.0)])
def test_rescaled__is_the_worst_gap_of_the_cell(low: float, high: float, scale: float) -> None:
    """Below lambda_b it is that of (w, (lambda / lambda_b) alpha), above that of ((lambda_b / lambda) w, alpha)."""
    above = high == math.inf
    verifier = cells_of(
        [2.0], cell_low=np.array([low]), cell_high=np.array([high]), cell_interval=np.array([1 - above]),
        cell_primal=np.array([[1.0, 0.0][:: -1 if above else 1]]), cell_scale=np.array([scale]),
    )  # fmt: skip
    r, lams = verifier.audit.rebuilt[0], np.geomspace(max(low, 1e-9), min(high, 1e12), 100_001)
    s, tau = np.minimum(1.0, 2.0 / lams), np.minimum(1.0, lams / 2.0)
    primal = lams / 2 * s**2 * r.norm2 + s * r.hinge + (1 - s) * 4.0
    gaps = primal - (tau * r.ell - tau**2 * r.dual_norm2 / (2 * lams))
    assert verifier._cell(0) == pytest.approx(gaps.max(), rel=1e-7)
    assert not verifier.broken


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"cell_primal": [[0.9, 0.1]]}, "is not that of breakpoint 0"),
        ({"cell_primal": [[0.9, 0.0]]}, "is not that of breakpoint 0"),
        ({"cell_scale": [1.5]}, "is not that of breakpoint 0"),
        ({"cell_high": [2.1]}, "is not that of breakpoint 0"),
        ({"cell_interval": [2]}, "is not that of breakpoint 1"),
        ({"cell_interval": [0]}, "is not that of breakpoint -1"),
        ({"cell_interval": [3]}, "no such interval"),
    ],
)
def test_rescaled__is_of_one_breakpoint_at_or_above_the_cell(change: dict[str, Any], says: str) -> None:
    cell = {
        "cell_low": [1.0],
        "cell_high": [2.0],
        "cell_interval": [1],
        "cell_primal": [[1.0, 0.0]],
        "cell_scale": [math.inf],
    }
    verifier = cells_of([2.0, 1.5], **{name: np.array(value) for name, value in (cell | change).items()})
    assert verifier._cell(0) == math.inf
    assert says in verifier.broken[0]


@pytest.mark.parametrize("high", [0.6, 1.0, 5.0])
def test_to_zero__is_the_worst_gap_over_all_lambdas_below(high: float) -> None:
    arrays = {name: np.zeros(1) for name in ("cell_low", "cell_high", "cell_interval")} | {
        "cell_primal": np.array([[1.0, 0.0]])
    }
    verifier = Cells(audit_of(arrays={**arrays, "cell_dual": np.zeros((1, 2))}, unfinished=False))
    lams = np.append(high * np.geomspace(1e-9, 1.0, 200_000), min(0.5 / 0.9, high))
    tau = np.minimum(1.0, 0.9 * lams / 0.5)
    gaps = lams / 2 * 0.7 + 0.31 - (tau * 0.9 - tau**2 * 0.5 / (2 * lams))
    assert verifier._to_zero(0, 0, high) == pytest.approx(gaps.max(), rel=1e-8)


def test_slack__of_an_inner_product_grows_with_that_of_both_points() -> None:
    slacks = [SimpleNamespace(in_w=0.01), SimpleNamespace(in_w=0.03)]
    points = SolvedPoints(audit_of(rebuilt=[POINT, POINT], arrays={"lambda": [5.0, 2.0]}, slacks=slacks))
    share = TOLERANCE * 6.0
    assert points.slack(4.0, 9.0, 1, dual=False) == pytest.approx(share + 2.0 * 0.03 + 3.0 * 0.01)
    assert points.slack(4.0, 9.0, 1, dual=True) == pytest.approx(share + 2.0 * 0.06 + 3.0 * 0.05)
    assert points.slack(0.0, 9.0, 0, dual=True) == pytest.approx(0.0)


@pytest.mark.parametrize("unit", [0.1, 1e-6])
def test_rounding_floor__is_the_larger_of_two(unit: float) -> None:
    assert rounding_floor(ZERO, unit) == LEAST * 6.0 / unit
    assert rounding_floor(ZERO._replace(psi_scale=1e4), unit) == pytest.approx(ROUNDED * 1e8 / unit)


def test_claimed_hinge__moves_all_that_follows_from_it() -> None:
    claimed = as_claimed(POINT, 0.51)
    assert claimed[1:3] == pytest.approx((0.22, 0.51))
    assert claimed.primal == pytest.approx(0.86)
    assert as_claimed(POINT, 0.2) == POINT


def ended(status: str, relative: bool, low: float, last: float, point: Rebuilt) -> list[str]:
    closed = SimpleNamespace(closed=lambda: np.array([low]))
    audit = audit_of(
        attrs={"relative": relative, "status": status}, verifier=closed, rebuilt=[point], arrays={"lambda": [last]}
    )
    check_end(audit)
    return audit.broken


@pytest.mark.parametrize("eps", [0.1 * TOLERANCE / SHARE, 40.0 * TOLERANCE / SHARE])
def test_top__allows_the_hinge_of_zero_the_smaller_of_two_shares(eps: float) -> None:
    allowed = min(4.0 * TOLERANCE, SHARE * eps)
    for off, broken in ((0.9, 0), (-0.9, 0), (1.1, 1), (-1.1, 1)):
        attrs = {"eps": eps, "lam_top": 5.0, "psi_norm2": 6.0, "hinge_at_zero": 4.0 + off * allowed}
        audit = audit_of(attrs=attrs)
        check_top(audit)
        assert len(audit.broken) == broken


@pytest.mark.parametrize("relative", [False, True])
def test_end__by_rounding_is_at_its_floor_and_no_higher(relative: bool) -> None:
    floor = LEAST * 6.0 / (0.1 * (4.0 if relative else 1.0))
    assert not ended("ROUNDING_LIMIT", relative, 0.999 * floor, 1.0, POINT)
    assert ended("ROUNDING_LIMIT", relative, 1.001 * floor, 1.0, POINT)


@pytest.mark.parametrize("relative", [False, True])
def test_end__where_the_regulariser_is_negligible_is_far_below_the_top_if_the_hinge_has_not_fallen(
    relative: bool,
) -> None:
    last = PAST_TOP * 6.0 / (2.0 * 0.1 * (4.0 if relative else 1.0))
    high = POINT._replace(hinge=3.999, primal=4.0, norm2=0.01)
    assert not ended("LAMBDA_NEGLIGIBLE", relative, 0.5 * last, 0.999 * last, high)
    assert ended("LAMBDA_NEGLIGIBLE", relative, 0.5 * last, 1.001 * last, high)
    fallen = high._replace(hinge=4.0 - 0.1 * (4.0 if relative else 1.0))
    assert not ended("LAMBDA_NEGLIGIBLE", relative, 0.5 * last, 1.001 * last, fallen)


@pytest.mark.parametrize("relative", [False, True])
def test_end__where_the_regulariser_is_negligible_is_at_a_hundredth_of_eps(relative: bool) -> None:
    most = 0.01 * 0.1 * (0.66 if relative else 1.0) / (0.5 * 0.7)  # lambda at which lambda / 2 ||w||^2 is that
    assert not ended("LAMBDA_NEGLIGIBLE", relative, 0.5 * most, 0.998 * most, POINT)
    assert ended("LAMBDA_NEGLIGIBLE", relative, 0.5 * most, 1.002 * most, POINT)
