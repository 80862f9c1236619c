"""The arithmetic of verify, number by number: what no tampered path has shown to be wrong."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gapwise.stages.certify.audit import as_claimed
from gapwise.stages.certify.ends import LEAST, PAST_TOP, ROUNDED, check_end, check_top, rounding_floor
from gapwise.stages.certify.paper import Paper
from gapwise.stages.certify.recompute import Rebuilt, Zero
from gapwise.stages.certify.rounding import SHARE, TOLERANCE
from gapwise.stages.certify.solved_points import SolvedPoints
from gapwise.stages.certify.two_sided import TwoSided

ZERO = Zero(hinge=4.0, psi_norm2=6.0, psi=np.empty(0), psi_scale=2.0)
POINT = Rebuilt(
    norm2=0.7, gap=0.02, hinge=0.31, ell=0.9, simplex_error=0.0, rebuild_error=0.0, primal=0.66, dual=0.64, largest=1.0,
    psi_scale=1.0, dual_norm2=0.5,
)  # fmt: skip


def audit_of(**choices: Any) -> Any:
    attrs = {"eps": 0.1, "relative": False, "lambda_min": 0.0, "status": "CONVERGED", **choices.pop("attrs", {})}
    given = {"zero": ZERO, "attrs": attrs, "rebuilt": [POINT], "broken": [], "problem": None, "spread": None, **choices}
    return SimpleNamespace(**given)


@pytest.mark.parametrize(
    ("gap", "following", "broken"),
    [(0.09, 1.0, 0), (0.1005, 1.0, 0), (0.102, 1.0, 1), (0.09, 1.0 - 1e-9, 1), (0.09, 1.5, 0), (0.09, 2.0, 1)],
)
def test_paper__intervals_keep_eps_and_leave_no_hole(
    gap: float, following: float, broken: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("check_end", "check_top"):
        monkeypatch.setattr(f"gapwise.stages.certify.paper.{name}", lambda audit: None)
    lams, lows = np.array([2.0, following]), np.array([1.0, 0.5])
    audit = audit_of(arrays={"lambda": lams, "lambda_low": lows}, rebuilt=[POINT, POINT], claimed=2)
    audit.bound = lambda *breakpoints: 0.01
    verifier = Paper(audit)
    verifier.check_model = lambda: None  # type: ignore[method-assign]
    verifier.worst_above = lambda r: 0.0  # type: ignore[method-assign]
    verifier.below = lambda r, lam, low: gap if low == 1.0 else 0.0  # type: ignore[method-assign]
    assert verifier.intervals() == [gap, 0.0]
    assert len(audit.broken) == broken


@pytest.mark.parametrize("high", [0.6, 1.0, 5.0])
def test_to_zero__is_the_worst_gap_over_all_lambdas_below(high: float) -> None:
    arrays = {name: np.zeros(1) for name in ("cell_low", "cell_high", "cell_interval")} | {
        "cell_primal": np.array([[1.0, 0.0]])
    }
    verifier = TwoSided(audit_of(arrays=arrays))
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
