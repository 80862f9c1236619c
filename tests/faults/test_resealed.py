"""Tampering with the checksums made again: what arithmetic finds. One case a kind; tests/stages tries the rest on arrays."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from in_process import Here
from real_runs import assert_same_path
from reseal import reseal

Tamper = Callable[[Path], None]


def entry(name: str, pattern: str = "path.zarr") -> Tamper:
    """Another value in the middle of an array."""

    def tamper(run: Path) -> None:
        array: Any = zarr.open_group(max(run.glob(pattern)), mode="a")[name]
        values = array[...]
        values.flat[values.size // 2] += 1
        array[...] = values

    return tamper


def other_eps(run: Path) -> None:
    zarr.open_group(run / "path.zarr", mode="a").attrs["eps"] = 0.2


def other_label(run: Path) -> None:
    """Another label of a token in the features of the training blocks."""
    (file,) = run.parent.glob("features/*/train/labels.npy")
    labels = np.load(file)
    labels[labels.size // 2] = (labels[labels.size // 2] + 1) % 3
    np.save(file, labels)


CAUGHT = {
    "a number": ("solved", entry("gap")),
    "weights": ("solved", entry("weights")),
    "supports": ("solved", entry("support_label")),
    "cells": ("solved", entry("cell_high")),
    "an attribute": ("solved", other_eps),
    "features": ("solved", other_label),
    "a segment": ("halfway", entry("dual", "state/s*.zarr")),
    "a state": ("halfway", entry("support_offset", "state/g*.zarr")),
}


@pytest.mark.parametrize("what", CAUGHT)
def test_tampering__is_caught(request: pytest.FixtureRequest, copy: Callable[[Here], Here], what: str) -> None:
    like, tamper = CAUGHT[what]
    sandbox = copy(request.getfixturevalue(like))
    tamper(sandbox.run)
    reseal(sandbox.root)
    done = sandbox.issue("run.until=verify")
    assert done.code == 1, done.err
    assert "error: " in done.err
    assert "delete" in done.err or "Move the directory away" in done.err, done.err
    assert not (sandbox.run / "result.json").exists()


def test_complete_run__is_checked_again_once_verify_json_is_deleted(calm: Here, copy: Callable[[Here], Here]) -> None:
    sandbox = copy(calm)
    entry("gap")(sandbox.run)
    reseal(sandbox.root)
    sandbox.finish()  # taken at its word
    (sandbox.run / "verify.json").unlink()
    assert sandbox.issue().code == 1
    assert not (sandbox.run / "result.json").exists()
    shutil.rmtree(sandbox.run / "path.zarr")
    sandbox.finish("run.until=verify")
    assert_same_path(sandbox, calm)
