"""When the sweeps of `path.rule=anytime` end: where rounding shows at the largest lambda that was solved."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest

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
