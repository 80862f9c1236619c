"""Groups of arrays: read whole or in part, and what cannot be read is named."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gapwise.storage.files import DamagedError
from gapwise.storage.layout import ArraySpec, read_group, write_group

SPECS = (ArraySpec("a", ("row",), "f8", "numbers"), ArraySpec("b", ("row", "column"), "i8", "more"))
ARRAYS = {"a": np.array([1.0, np.inf]), "b": np.arange(6).reshape(2, 3)}


@pytest.fixture
def group(tmp_path: Path) -> Path:
    write_group(tmp_path / "x.zarr", SPECS, ARRAYS, {"about": "it"})
    return tmp_path / "x.zarr"


@pytest.mark.parametrize("names", [None, ("b",), lambda name: name == "b"])
def test_group__is_read_back(group: Path, names) -> None:
    arrays, attrs = read_group(group, names)
    assert list(arrays) == (["a", "b"] if names is None else ["b"])
    assert attrs == {"about": "it"}
    for name, array in arrays.items():
        assert array.dtype == ARRAYS[name].dtype
        np.testing.assert_array_equal(array, ARRAYS[name])


@pytest.mark.parametrize(("file", "part"), [("b/c/0/0", "array b"), ("b/zarr.json", "the list of arrays")])
def test_damage__is_named(group: Path, file: str, part: str) -> None:
    (group / file).write_bytes(b"{not what it was")
    with pytest.raises(DamagedError, match=rf"x\.zarr: {part} is missing or cannot be read"):
        read_group(group)
    arrays, _ = read_group(group, ("a",))
    assert list(arrays) == ["a"], "which is whole"
