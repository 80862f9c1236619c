"""Equality of the results of two runs: every bit, except in the columns that hold measured times."""

from __future__ import annotations

import fnmatch

from gapwise.storage.backend import Location
from gapwise.storage.format import MEASURES
from gapwise.storage.results import read_iterations, read_path, read_trace

MEASURED = {"seconds", "timestamp_ms"}
"""Columns that hold measured times; all others are the same in every run."""


def assert_same_path(run: Location, expected: Location) -> None:
    """Assert that path and trace have the same bits, and also measures on test data if both runs have them."""
    (a, a_attrs), (b, b_attrs) = (read_path(folder / "path.zarr") for folder in (run, expected))
    assert a_attrs == b_attrs
    measures = {name for name in a.keys() | b.keys() if any(fnmatch.fnmatchcase(name, like) for like in MEASURES)}
    assert a.keys() - measures == b.keys() - measures
    for name in (a.keys() & b.keys()) - MEASURED:
        assert a[name].dtype == b[name].dtype
        assert a[name].shape == b[name].shape, name
        assert a[name].tobytes() == b[name].tobytes(), name
    for read in (read_trace, read_iterations):
        trace, other = read(run), read(expected)
        assert trace.keys() == other.keys()
        for name in trace.keys() - MEASURED:
            assert trace[name].tobytes() == other[name].tobytes(), name
