"""When the sweeps of `path.rule=anytime` end: where rounding shows at the largest lambda that was solved."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gapwise.stages.solver.options import PathOptions
from gapwise.stages.solver.path.axis import Axis, Levels
from gapwise.stages.solver.path.cells import SolvedPoint
from gapwise.stages.solver.path.members import Member
from gapwise.stages.solver.path.rule import PathStart
from gapwise.stages.solver.path.sweep import Sweep


class Halving:
    """Levels 1, 1/2, 1/4, ..."""

    present = 1.0

    @property
    def done(self) -> float:
        return 2.0 * self.present

    @done.setter
    def done(self, level: float) -> None:
        self.present = 0.5 * level


def axis_of(lams: list[float], rounding: float) -> Any:
    """An axis on which each interval is within the level until level 1/8, where rounding shows up to lambda = `rounding`."""
    levels = Halving()

    def interval(k: int) -> tuple[None, SimpleNamespace]:
        return None, SimpleNamespace(bound=0.0 if levels.present > 0.125 else 9.0, lam=lams[k + 1])

    return SimpleNamespace(
        levels=levels,
        members=[SimpleNamespace(point=SimpleNamespace(lam=lam)) for lam in lams],
        interval=interval,
        bottom=lambda level: (0.0, True),
        rounding_at=lambda level: rounding,
    )


class Plain(Sweep):
    """Without moving the worst lambda to a solved end."""

    def again(self, pair: Any, lam: float) -> float:
        return lam


@pytest.mark.parametrize("lams", [[math.inf, 1.0], [math.inf, 1.0, 0.5]])
def test_sweep__ends_where_rounding_reaches_the_largest_finite_lambda(lams: list[float]) -> None:
    assert Plain(axis_of(lams, rounding=1.0)).following_lambda(0.5) is None


@pytest.mark.parametrize("lams", [[math.inf, 1.0], [math.inf, 1.0, 0.5]])
def test_sweep__goes_on_while_rounding_stays_below_it(lams: list[float]) -> None:
    sweep = Plain(axis_of(lams, rounding=0.999))
    assert sweep.following_lambda(lams[-1]) in lams[1:]
    assert sweep.level == 0.125


def axis_with(point: SolvedPoint) -> Axis:
    """w = 0 and one solved lambda."""
    zero, path = np.zeros(2), PathOptions(rule="anytime", eps=0.01)
    start = PathStart(1.0, 8.0, 1.0, 4.0, zero, zero, zero, 2)
    members = [Member(SolvedPoint(math.inf, 0.0, 1.0, 1.0, 0.0, 4.0), zero, zero, -1), Member(point, zero, zero, 0)]
    return Axis(path, start, Levels(path, 0.1), members)


def test_step__below_w_zero_goes_to_the_end_of_the_axis() -> None:
    axis = axis_with(SolvedPoint(1.0, 0.0, 1.0, 1.0, 0.0, 0.0))
    assert Sweep(axis).below_last() == axis.floor_at(axis.levels.present)


@pytest.mark.parametrize("name", ["hinge", "norm2", "ell", "gap", "dual_norm2"])
def test_certify__raises_where_a_number_of_a_solved_lambda_is_none(name: str) -> None:
    point = SolvedPoint(1.0, 0.01, 0.5, 0.7, 0.2, 0.2)
    assert 0.01 < axis_with(point).certify() < 2.0
    with pytest.raises(ArithmeticError, match=r"path\.rule=anytime: .*Scale the features"):
        axis_with(point._replace(**{name: math.nan})).certify()
