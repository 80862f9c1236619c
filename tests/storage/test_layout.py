"""Groups of arrays: read whole or in part, and what cannot be read is named."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import xarray
import zarr

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


@pytest.mark.parametrize("kind", ["f8", "f4", "i8", "i2", "u1", "u8", "?"])
@pytest.mark.parametrize("value", ["0", "fill"])
def test_chunk__that_is_gone_is_damage_whatever_it_held(tmp_path: Path, kind: str, value: str) -> None:
    dtype = np.dtype(kind)
    missing = np.nan if dtype.kind == "f" else np.array(-1).astype(dtype)
    array = np.full(3, 0 if value == "0" else missing, dtype)
    group = tmp_path / "x.zarr"
    write_group(group, (ArraySpec("a", ("row",), kind, "numbers"),), {"a": array}, {})
    np.testing.assert_array_equal(read_group(group)[0]["a"], array)
    (group / "a" / "c" / "0").unlink()
    with pytest.raises(DamagedError, match=r"array a .*chunks missing: 1 of 1.*; delete .*x\.zarr and repeat"):
        read_group(group)
    stored = xarray.open_zarr(group, consolidated=False)["a"]
    np.testing.assert_array_equal(stored, np.full(3, missing, dtype), "what xarray shows")
    assert stored.dtype == dtype


def test_chunk__of_zeros_that_an_earlier_version_left_out_is_read_as_zeros(tmp_path: Path) -> None:
    group = zarr.open_group(tmp_path / "x.zarr", mode="w", zarr_format=3)
    group.create_array("a", shape=3, dtype="f8")[...] = 0.0
    assert not (tmp_path / "x.zarr" / "a" / "c").exists()
    np.testing.assert_array_equal(read_group(tmp_path / "x.zarr")[0]["a"], np.zeros(3))


@pytest.mark.parametrize(("file", "part"), [("b/c/0/0", "array b"), ("b/zarr.json", "the list of arrays")])
def test_damage__is_named(group: Path, file: str, part: str) -> None:
    (group / file).write_bytes(b"{not what it was")
    with pytest.raises(DamagedError, match=rf"x\.zarr: {part} is missing or cannot be read"):
        read_group(group)
    arrays, _ = read_group(group, ("a",))
    assert list(arrays) == ["a"], "which is whole"
