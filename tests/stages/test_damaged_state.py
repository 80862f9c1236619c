"""Committed state that does not fit the problem is an error that names array and block; compiled code never reads it."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import pytest
import zarr
from solved import StopAfter, options_of, path_of, solved
from tiny import instance

from gapwise.stages.solver.methods import method
from gapwise.stages.solver.objective import Goal
from gapwise.stages.solver.options import Status
from gapwise.stages.solver.path.walk import begin
from gapwise.storage.commits import CommitStore, StateError


@functools.cache
def packed(name: str):
    """Arrays and attributes of a method after some steps."""
    problem, options = instance("multiclass"), options_of(method=name)
    solver = begin(problem, options, path_of(rule="single", lam=0.05), None, seed=0)
    stop = StopAfter(12)
    assert solver.solve(Goal(1e-12), lambda _: Status.INTERRUPTED if stop() else None)[0] is Status.INTERRUPTED
    return solver.packed()


def restored(name: str, **changes):
    arrays, attrs = packed(name)
    arrays = {**arrays, **{key: change(arrays[key].copy()) for key, change in changes.items()}}
    return method(name).restored(instance("multiclass"), options_of(method=name), 0, arrays, attrs)


def entry(index, value):
    def change(array: np.ndarray) -> np.ndarray:
        array[index] = value
        return array

    return change


DAMAGE = {
    "label": ("support_label", entry(0, 7), "support_label: block 0: holds 7, expected labels 0 to 2"),
    "label offset": ("label_offset", entry(-1, 10**9), "label_offset: block 6: holds 10{9}"),
    "offset": ("support_offset", entry(1, 10**9), "support_offset: block 1: holds 10{9}"),
    "first offset": ("support_offset", entry(0, 1), "support_offset: spans 1"),
    "no atom": ("support_offset", entry(1, 0), "block 0: .*sum is 0|block 1: .*sum is 2"),
    "short": ("support_offset", lambda x: x[:-1], r"support_offset: is int64 \(7,\), expected int64 \(8\)"),
    "negative alpha": ("support_alpha", entry(0, -1.0), "support_alpha: block 0: expected weights >= 0"),
    "nan alpha": ("support_alpha", entry(0, np.nan), "support_alpha: block 0: holds nan"),
    "loss": ("support_loss", entry(1, np.inf), "support_loss: block .: holds inf"),
    "type": ("support_label", lambda x: x.astype(np.int16), "support_label: is int16"),
    "gap": ("block_gap", entry(3, np.nan), "block_gap: block 3: holds nan"),
    "gaps": ("block_gap", lambda x: x[:-1], "block_gap: is float64"),
    "used": ("support_used", lambda x: x[:-1], "support_used: is int64"),
    "counters": ("counters", lambda x: x[:-1], "counters: is int64"),
}


@pytest.mark.parametrize("name", ["bcfw", "accelerated", pytest.param("mpbcfw", marks=pytest.mark.interpreted)])
def test_restored__takes_what_was_packed(name: str) -> None:
    arrays, _ = restored(name).packed()
    for key, array in packed(name)[0].items():
        np.testing.assert_array_equal(arrays[key], array)


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("name", ["bcfw", "accelerated", "mpbcfw"])
def test_restored__refuses_arrays_that_do_not_fit(name: str, damage: str) -> None:
    key, change, message = DAMAGE[damage]
    with pytest.raises(ValueError, match=message):
        restored(name, **{key: change})


@pytest.mark.parametrize(("name", "key"), [("accelerated", "mean"), ("accelerated", "centre"), ("bcfw", "mean")])
def test_restored__refuses_vectors_of_another_size(name: str, key: str) -> None:
    with pytest.raises(ValueError, match=f"^{key}: is float64"):
        restored(name, **{key: lambda x: np.ones(x.size + 1)})


def test_solve__says_which_state_does_not_fit_and_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the checksum had been made of damaged memory."""
    problem, options, path = instance("multiclass"), options_of(), path_of()
    assert solved(problem, tmp_path, options, path, stop=StopAfter(5)) is Status.INTERRUPTED
    (generation,) = (tmp_path / "state").glob("g*.zarr")
    labels = zarr.open_group(generation, mode="a")["support_label"]
    labels[0] = 9
    monkeypatch.setattr(CommitStore, "_damage", lambda self, sidecar: None)
    with pytest.raises(
        StateError, match=r"state: the committed state does not fit .*support_label: block 0: holds 9.*delete it"
    ):
        solved(problem, tmp_path, options, path)
