"""path.zarr: the breakpoints as they were solved, however they were divided into segments."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import xarray
from records import BLOCKS, breakpoint_record

from gapwise.storage import layout
from gapwise.storage.format import FORMAT_VERSION
from gapwise.storage.layout import PATH, write_group
from gapwise.storage.results import add_losses, read_path, read_trace, stack, write_path, write_trace

RECORDS = [breakpoint_record(k) for k in range(7)]


def written(folder: Path, sizes: list[int], rest: int) -> dict[str, np.ndarray]:
    """RECORDS in segments of the given sizes and the last `rest` of them from memory."""
    folder.mkdir()
    segments, first = [], 0
    for k, size in enumerate(sizes):
        segments.append(folder / f"s{k:06d}.zarr")
        write_group(segments[-1], PATH, stack(RECORDS[first : first + size]), {})
        first += size
    assert first + rest == len(RECORDS)
    write_path(folder / "path.zarr", segments, stack(RECORDS[first:]) if rest else None, {"eps": 0.1, "key": "k"})
    arrays, attrs = read_path(folder / "path.zarr")
    assert attrs == {"format_version": FORMAT_VERSION, "eps": 0.1, "key": "k"}
    return arrays


SPLITS = [([1] * 7, 0), ([1, 5], 1), ([3, 1], 3)]


@pytest.mark.parametrize("chunk", [1 << 21, 200], ids=["one chunk", "small chunks"])
def test_path__does_not_depend_on_its_segments(tmp_path: Path, monkeypatch, chunk: int) -> None:
    monkeypatch.setattr(layout, "CHUNK_BYTES", chunk)
    whole = written(tmp_path / "whole", [], 7)
    for number, (sizes, rest) in enumerate(SPLITS):
        arrays = written(tmp_path / str(number), sizes, rest)
        assert arrays.keys() == whole.keys()
        for name, array in whole.items():
            assert arrays[name].dtype == array.dtype
            assert arrays[name].shape == array.shape
            assert arrays[name].tobytes() == array.tobytes(), (name, sizes, rest)


def test_path__holds_every_breakpoint_and_atom(tmp_path: Path) -> None:
    arrays = written(tmp_path / "run", [3, 1], 3)
    for b, record in enumerate(RECORDS):
        for name in ("lambda", "gap", "status", "oracle_calls", "weights", "block_gap"):
            np.testing.assert_array_equal(arrays[name][b], record[name])
        offset = arrays["support_offset"][b]
        for i in range(BLOCKS):
            mine = range(*record["support_offset"][i : i + 2])
            assert list(range(offset[i], offset[i + 1])) == [k + offset[0] for k in mine]
            for k in mine:
                atom = offset[0] + k
                assert arrays["support_alpha"][atom] == record["support_alpha"][k]
                assert arrays["support_loss"][atom] == record["support_loss"][k]
                labels = arrays["support_label"][slice(*arrays["label_offset"][atom : atom + 2])]
                expected = record["support_label"][slice(*record["label_offset"][k : k + 2])]
                np.testing.assert_array_equal(labels, expected)
    assert arrays["support_label"].dtype == np.int16


def test_path__opens_in_xarray_with_its_losses(tmp_path: Path) -> None:
    written(tmp_path / "run", [3], 4)
    path = tmp_path / "run" / "path.zarr"
    for losses in (np.zeros(7), np.arange(7.0)):  # evaluate may be run again
        add_losses(path, {"train_loss": losses, "test_loss": losses, "test_f1": losses}, {})
    with xarray.open_zarr(path, consolidated=False) as data:
        assert data["weights"].dims == ("breakpoint", "feature")
        assert data["block_gap"].dims == ("breakpoint", "block")
        assert data["test_f1"].dims == ("breakpoint",)
        np.testing.assert_array_equal(data["test_f1"], np.arange(7.0))
        assert all("description" in array.attrs for array in data.values())


def test_layout__wrong_dtype_or_shape_is_an_error_that_names_the_array(tmp_path: Path) -> None:
    good = stack(RECORDS)
    for name, wrong in (
        ("weights", good["weights"].astype(np.float32)),
        ("weights", good["weights"][0]),
        ("oracle_calls", good["oracle_calls"].astype(float)),
        ("support_label", good["support_label"].astype(np.int64)),
    ):
        with pytest.raises(TypeError, match=f"{name}: the layout says"):
            write_group(tmp_path / "x.zarr", PATH, {**good, name: wrong}, {})
    with pytest.raises(KeyError, match="hinge"):
        write_group(tmp_path / "y.zarr", PATH, {k: v for k, v in good.items() if k != "hinge"}, {})


def test_trace__round_trips(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).normal(size=(5, 2))
    for part in (rows[:0], rows):
        write_trace(tmp_path / "trace.zarr", part, ("gap", "seconds"))
        trace = read_trace(tmp_path)
        assert list(trace) == ["gap", "seconds"]
        np.testing.assert_array_equal(trace["seconds"], part[:, 1])
