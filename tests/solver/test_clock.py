"""No clock decides: a solve under clocks that jump has the bits of one under clocks that run."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pytest
from equality import assert_same_path
from solved import SINGLE, options_of, path_of, solved
from tiny import instance

from gapwise.stages.solver.methods import methods
from gapwise.stages.solver.options import Status

CLOCKS = ("perf_counter", "thread_time", "process_time", "monotonic")
ENDED = (Status.CONVERGED, Status.PASS_LIMIT)


def let_clocks_jump(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Each look at a clock finds it microseconds or a second later than the last one."""
    rng, now = np.random.default_rng(seed), itertools.count(1.0, 0.0)
    steps = itertools.accumulate(rng.choice([1e-6, 1e-4, 0.3, 1.0], size=1_000_000))
    for clock in CLOCKS:
        monkeypatch.setattr(time, clock, lambda: next(now) + next(steps))


SELDOM = pytest.mark.slow
"""The methods that no other test compiles."""


@pytest.mark.parametrize(
    "name", [name if name in ("bcfw", "accelerated") else pytest.param(name, marks=SELDOM) for name in methods()]
)
def test_methods__have_the_same_bits_whatever_clocks_say(name, tmp_path, monkeypatch):
    along = path_of(**{**SINGLE, "tolerance": 1e-4})
    options = options_of(method=name, max_passes=30.0)
    for run, seed in (("one", 0), ("other", 1)):
        with monkeypatch.context() as patch:
            let_clocks_jump(patch, seed)
            assert solved(instance("chain"), tmp_path / run, options, along) in ENDED
    assert_same_path(tmp_path / "one", tmp_path / "other")
