"""A stop between two rebase points: noticed soon, the last rebase point kept, and the same bits in the end."""

from __future__ import annotations

import math
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from equality import assert_same_path
from solved import SINGLE, options_of, path_of, solved
from tiny import multiclass

from gapwise.stages import parallel
from gapwise.stages.parallel import Pace, Spread
from gapwise.stages.solver import iterate, ledger
from gapwise.stages.solver.counts import TRACE, Counts
from gapwise.stages.solver.options import LEAST_FALL, Status
from gapwise.storage import sink
from gapwise.storage.commits import CommitStore
from gapwise.storage.results import read_trace


class Stopped(Exception):
    """A stop was requested."""


class StopAtCheck:
    """check() raises at its `left`-th call."""

    def __init__(self, left: int) -> None:
        self.left = left

    def __call__(self) -> None:
        self.left -= 1
        if self.left == 0:
            raise Stopped


@pytest.mark.parametrize(
    "choices",
    [{"rebase_steps": 40}, {"rebase_steps": 40, "sampler": "permutation"}, {"batch_size": 3, "rebase_steps": 40},
     {"method": "accelerated"}, {"method": "fasole"}, {"method": "mpbcfw", "averaging": "two_track"}],
    ids=["gap", "permutation", "batches", "accelerated", "fasole", "mpbcfw"],
)  # fmt: skip
def test_stop__between_rebase_points_costs_no_bit(tmp_path: Path, monkeypatch, choices: dict) -> None:
    monkeypatch.setattr(sink, "KEPT_SECONDS", 0.0)
    problem, path = multiclass(n=9), path_of(**SINGLE)
    options = options_of(**choices)
    assert solved(problem, tmp_path / "whole", options, path) is Status.CONVERGED
    monkeypatch.setattr(parallel, "PIECE_SECONDS", 0.0)  # every step is a piece
    generations = set()
    for left in (7, 40, 90, 150, 60):
        try:
            solved(problem, tmp_path / "parts", options, path, spread=Spread(check=StopAtCheck(left)))
        except Stopped:
            generations.add(CommitStore(tmp_path / "parts" / "state", {"key": "k"}).load() is not None)
    assert generations == {True}
    solved(problem, tmp_path / "parts", options, path)
    assert_same_path(tmp_path / "parts", tmp_path / "whole")


def test_stop__does_not_reach_steps_whose_rebase_point_is_not_kept(tmp_path: Path, monkeypatch) -> None:
    """Where rebase points are close, the next one is waited for: no work is lost."""
    monkeypatch.setattr(sink, "KEPT_SECONDS", 1e9)
    monkeypatch.setattr(parallel, "PIECE_SECONDS", 0.0)
    problem, asked = multiclass(n=9), []
    far = options_of(rebase_steps=40, refresh_every=0, max_passes=30.0)

    def stop() -> bool:
        asked.append(len(asked))
        return len(asked) > 3

    def check() -> None:
        steps = sys._getframe(1).f_code.co_name == "check_stop"
        if steps and len(asked) > 1:  # the first rebase point is always kept
            raise Stopped

    status = solved(
        problem, tmp_path, far, path_of(**{**SINGLE, "tolerance": 1e-12}), stop=stop, spread=Spread(check=check)
    )
    assert status is Status.INTERRUPTED
    assert len(asked) == 4


@pytest.mark.parametrize("seconds", [0.0, 0.005, 0.2])
def test_pace__makes_pieces_that_take_about_as_long_as_they_should(monkeypatch, seconds: float) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    pace, sizes = Pace(), []

    def work(start: int, stop: int) -> None:
        now[0] += seconds * (stop - start)
        sizes.append(stop - start)

    pace.run(work, 0, 3000, lambda: None)
    assert sum(sizes) == 3000
    assert max(sizes) * seconds <= max(0.1, seconds) + 1e-9
    assert len(sizes) < {0.0: 14, 0.005: 400, 0.2: 3001}[seconds]


def test_spread__checks_between_pieces_and_keeps_the_order(monkeypatch) -> None:
    monkeypatch.setattr(parallel, "PIECE_SECONDS", 0.0)
    checks = []
    spread = Spread(check=lambda: checks.append(1))
    parts = spread.blocks(lambda problem, w, blocks: blocks, SimpleNamespace(d=1), np.zeros(1), range(50))
    assert np.concatenate(parts).tolist() == list(range(50))
    assert len(checks) == 50
    seen = np.zeros(50, int)
    spread.over_threads(lambda a, b: seen.__setitem__(slice(a, b), seen[a:b] + 1), 50)
    assert seen.tolist() == [1] * 50


def test_stalled_lambda__ends_with_a_limit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As if the dual value were wrong: P - D stays above the tolerance, however often the exact pass is repeated."""
    monkeypatch.setattr(ledger, "STALLED", 8)
    options, path = options_of(max_passes=math.inf), path_of(**{**SINGLE, "tolerance": 1e-3})
    right = iterate.Iterate.dual_and_excess
    monkeypatch.setattr(
        iterate.Iterate, "dual_and_excess", lambda self, w: (right(self, w)[0], right(self, w)[1] + 0.1)
    )
    assert solved(multiclass(), tmp_path, options, path) is Status.PASS_LIMIT
    gaps = read_trace(tmp_path)["gap"]
    assert gaps.size % 8 == 0
    assert gaps[-8:].min() > 0.1
    assert gaps[-8:].min() > (1.0 - LEAST_FALL) * gaps[-16:-8].min()


@pytest.mark.parametrize(
    ("gaps", "stalled"),
    [
        ([1.0] * 8, True),
        ([1.0] * 4 + [1.0, 1.0, 0.999, 1.0], False),
        ([1.0] * 4 + [1.0, 1.0, 1.0 - 1e-7, 1.0], True),
        ([1.0] * 7, False),
        ([1.0] * 9, False),
        ([np.nan] * 8, False),
    ],
)
def test_stalled__is_a_least_gap_that_no_longer_falls(
    monkeypatch: pytest.MonkeyPatch, gaps: list[float], stalled: bool
) -> None:
    monkeypatch.setattr(ledger, "STALLED", 4)
    counts = Counts(lam=0.5, breakpoint=2)
    of = ledger.Ledger(3, options_of(max_passes=math.inf), counts, np.zeros(9, np.int64))
    rows = [(2, 0.5, *(0.0,) * (len(TRACE) - 2)) for _ in gaps]
    of.trace = [(*row[: ledger.GAP], gap, *row[ledger.GAP + 1 :]) for row, gap in zip(rows, gaps, strict=True)]
    assert of.stalled() == stalled
    assert (of.limit() is Status.PASS_LIMIT) == stalled
    counts.lam = 0.4  # another lambda, of which there is no row
    assert not of.stalled()
