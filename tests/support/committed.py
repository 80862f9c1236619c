"""Made-up committed states: what is committed under a number, and a check that it came back unchanged."""

from __future__ import annotations

from typing import Any

import numpy as np
from records import breakpoint_record

from gapwise.storage.backend import Location
from gapwise.storage.commits import Commit, CommitStore, Segment
from gapwise.storage.layout import SUPPORTS, ArraySpec, open_group
from gapwise.storage.results import stack

STATE = (
    *SUPPORTS,
    ArraySpec("support_offset", ("block_edge",), "i8", "atoms of each block"),
    ArraySpec("block_gap", ("block",), "f8", "block gaps"),
    ArraySpec("rows", ("row", "column"), "f8", "something with two dimensions"),
    ArraySpec("counters", ("counter",), "i8", "counts"),
)
"""Arrays of a made-up method: storage accepts any."""
IDENTITY = {"key": "abc", "solver.step": "pairwise", "path.lambdas": [1.0, 0.5], "seed": 0}


def state(number: int) -> dict[str, np.ndarray]:
    """Arrays of STATE, different for each number, with floats that conversion to text or rounding would change."""
    rng = np.random.default_rng(number)
    arrays = {}
    for spec in STATE:
        shape = (5 + number,) * len(spec.dims)
        integers = rng.integers(100, size=shape)
        dtype = "u1" if spec.dtype == "label" else spec.dtype
        arrays[spec.name] = rng.normal(size=shape) if dtype == "f8" else integers.astype(dtype)
    arrays["block_gap"][:] = np.resize([0.1, 1.0 / 3.0, np.inf, 1e-308, 2.0**-1074, -0.0, np.nan], 5 + number)
    return arrays


def attributes(number: int) -> dict[str, Any]:
    return {"counts": {"lam": 0.1 * number, "dual": float("nan")}, "rng": {"state": str(2**127 + number)}}


def commit(store: CommitStore, number: int, segment: bool = True) -> None:
    arrays = stack([breakpoint_record(number)]) if segment else None
    store.commit(STATE, state(number), attributes(number), Segment(arrays, {}) if segment else None)


def assert_is(commit: Commit | None, number: int) -> None:
    """Assert that `found` is what `commit` wrote under `number`, to the bit, with the segments of all numbers up to it."""
    assert commit is not None
    expected = state(number)
    assert commit.arrays.keys() == expected.keys()
    for name, array in expected.items():
        assert commit.arrays[name].dtype == array.dtype
        assert commit.arrays[name].tobytes() == array.tobytes(), name
    assert repr(sorted(commit.attrs.items())) == repr(sorted(attributes(number).items()))
    assert [path.name[:7] for path in commit.segments] == [f"s{k:06d}" for k in range(1, number + 1)]
    for k, path in enumerate(commit.segments, start=1):
        assert open_group(path)["lambda"][0] == breakpoint_record(k)["lambda"]


def opened(folder: Location, **changes: Any) -> CommitStore:
    return CommitStore(folder, {**IDENTITY, **changes})
