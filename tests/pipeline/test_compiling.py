"""Compiling is said while it lasts, and its seconds are counted."""

from __future__ import annotations

import time

import pytest
from numba.core import event

from gapwise.pipeline.cli.predict import saying_that_it_compiles
from gapwise.pipeline.compiling import WHAT, Compiling


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
        assert set(said.activities) == {WHAT}
    assert 3.3 <= compiling.seconds < time.monotonic() - began - 1.1  # not twice, and not what was before


def test_predict__says_once_that_it_compiles(capsys: pytest.CaptureFixture[str]) -> None:
    with saying_that_it_compiles(needed=True) as compiling:
        assert isinstance(compiling, Compiling)
        for _ in range(2):
            compiling._progress.report(0, 0, WHAT)
    assert capsys.readouterr().err == f"predict: {WHAT}\n"
