"""Compiling is said while it lasts, and its seconds are counted."""

from __future__ import annotations

import time

import pytest
from judged import judged
from numba.core import event

from gapwise.pipeline.cli.predict import saying_that_it_compiles
from gapwise.pipeline.compiling import WHAT, Compiling
from gapwise.pipeline.result import summary


class Said:
    def __init__(self) -> None:
        self.activities: list[str] = []

    def report(self, done: int, total: int, activity: str) -> None:
        self.activities.append(activity)


def test_compiling__is_said_while_it_lasts_and_counted_once() -> None:
    said, began = Said(), time.monotonic()
    with Compiling(said) as compiling:  # type: ignore[arg-type]
        time.sleep(1.2)
        assert said.activities == []
        with event.trigger_event("numba:compile"), event.trigger_event("numba:compile"):
            time.sleep(3.3)
        told = len(said.activities)
        assert set(said.activities) == {WHAT}
        time.sleep(1.2)
    assert len(said.activities) == told
    assert 3.3 <= compiling.seconds < time.monotonic() - began - 2.4  # not twice, and not what was before and after


def test_summary__says_where_the_time_went() -> None:
    from pathlib import Path

    record = {"lambda": 1.0, "gap": 0.05, "primal": 0.5, "effective_passes": 1.0, "oracle_calls": 5, "seconds": 1.0}
    result = {
        "path": [record],
        "verdict": judged(status="PASS_LIMIT", findings={"met": 0}).record(),
        "evaluate": {"best_lambda": 1.0, "test_loss": 0.5, "train_loss": 0.5},
        "problem": {"name": "x", "n": 5, "d": 3},
        "status": "PASS_LIMIT",
    }
    took = {"featurize": 0.1, "solve": 61.4, "verify": 8.6, "compiling": 50.2}
    assert "time  70 s (compiling 50 of it): solve 61 · verify 9" in summary(result, Path("x"), took=took)
    assert "time  " not in summary(result, Path("x"))


def test_predict__says_once_that_it_compiles(capsys: pytest.CaptureFixture[str]) -> None:
    with saying_that_it_compiles(needed=True) as compiling:
        assert isinstance(compiling, Compiling)
        for _ in range(2):
            compiling._progress.report(0, 0, WHAT)
    assert capsys.readouterr().err == f"predict: {WHAT}\n"
    with saying_that_it_compiles(needed=False) as nothing:
        assert nothing is None
