"""When the sweeps of `path.rule=anytime` end: where rounding shows at the largest lambda that was solved."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from gapwise.stages.solver.options import PathOptions, Status
from gapwise.stages.solver.path.axis import Member
from gapwise.stages.solver.path.cells import SolvedPoint
from gapwise.stages.solver.path.rule import PathStart
from gapwise.stages.solver.path.rules.anytime import Anytime, Worst

NOTHING = np.zeros(2)
START = PathStart(1.0, 8.0, 1.0, 4.0, NOTHING, NOTHING, NOTHING, 2)


def member(lam: float) -> Member:
    return Member(SolvedPoint(lam, 0.0, 1.0, 1.0, 0.0, 4.0), NOTHING, NOTHING, -1)


@dataclass
class Plain(Anytime):
    """Each interval is within the level until level 1e-3, where rounding shows up to lambda = `rounding`."""

    rounding: float = 0.0

    def intervals(self) -> Iterator[tuple[Any, Worst]]:
        for _, below in pairwise(self.members):
            yield None, Worst(below.point.lam, 0.0 if self.level > 2e-3 else 9.0)

    def bottom(self, eps: float) -> tuple[list[Any], Status]:
        return [], Status.CONVERGED

    def rounding_at(self, eps: float) -> float:
        return self.rounding

    def again(self, pair: Any, lam: float) -> float:
        return lam


def sweep_of(lams: list[float], rounding: float) -> Plain:
    return Plain(
        PathOptions(rule="anytime", eps=1e-6), START, [member(lam) for lam in lams], done=2.0, rounding=rounding
    )


@pytest.mark.parametrize("lams", [[math.inf, 1.0], [math.inf, 1.0, 0.5]])
def test_sweep__ends_where_rounding_reaches_the_largest_finite_lambda(lams: list[float]) -> None:
    assert sweep_of(lams, rounding=1.0).following_lambda(0.5) is None


@pytest.mark.parametrize("lams", [[math.inf, 1.0], [math.inf, 1.0, 0.5]])
def test_sweep__goes_on_while_rounding_stays_below_it(lams: list[float]) -> None:
    sweep = sweep_of(lams, rounding=0.999)
    assert sweep.following_lambda(lams[-1]) in lams[1:]
    assert sweep.level == pytest.approx(1e-3)


def axis_with(point: SolvedPoint) -> Anytime:
    """w = 0 and one solved lambda."""
    path = PathOptions(rule="anytime", eps=0.01)
    return Anytime(path, START, [member(math.inf), Member(point, NOTHING, NOTHING, 0)], done=0.1)


def test_step__below_w_zero_goes_to_the_end_of_the_axis() -> None:
    axis = axis_with(SolvedPoint(1.0, 0.0, 1.0, 1.0, 0.0, 0.0))
    assert axis.below_last() == axis.floor_at(axis.level)


@pytest.mark.parametrize("name", ["hinge", "norm2", "ell", "gap", "dual_norm2"])
def test_certify__raises_where_a_number_of_a_solved_lambda_is_none(name: str) -> None:
    point = SolvedPoint(1.0, 0.01, 0.5, 0.7, 0.2, 0.2)
    assert 0.01 < axis_with(point).certify() < 2.0
    with pytest.raises(ArithmeticError, match=r"path\.rule=anytime: .*Scale the features"):
        axis_with(point._replace(**{name: math.nan})).certify()
