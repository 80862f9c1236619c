"""Score maps that are given for photographs of people: blocks, relation maps, new input, keys, and errors."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import numpy as np
import pytest
from memory_sink import problems
from PIL import Image

from gapwise.stages.datasets import DataError, FeatureMap, open_dataset
from gapwise.stages.datasets.inputs import Predicted
from gapwise.stages.datasets.lsp import ANNOTATION, ARCHIVE, read_new, show
from gapwise.stages.datasets.poses.skeleton import JOINTS, NODES

GIVEN = ("head top", "neck", "left knee")
OPTIONS = {"name": "lsp", "n_train": 3, "n_test": 2, "types": 2, "folds": 2}


def maps(n: int = 5) -> dict[str, np.ndarray]:
    """Maps of three nodes on grids of 5 x 4 cells, padded to 6 x 6."""
    unary = np.random.default_rng(1).normal(size=(n, len(GIVEN), 6, 6)).astype(np.float16)
    names = np.array([f"im{k:05d}" for k in range(n)])[::-1]
    return {"unary": unary, "nodes": np.array(GIVEN), "names": names, "size": np.tile([5, 4], (n, 1))}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Five pictures of noise, 16 pixels wide and 18 high, with joints anywhere, and their maps."""
    folder, rng = tmp_path_factory.mktemp("given"), np.random.default_rng(0)
    with tarfile.open(folder / ARCHIVE, "w") as tar:
        for number in range(5):
            out = io.BytesIO()
            Image.fromarray(rng.integers(256, size=(18, 16, 3), dtype=np.uint8)).save(out, "JPEG")
            entry = tarfile.TarInfo(f"im{number:05d}.jpg")
            entry.size = len(out.getvalue())
            tar.addfile(entry, io.BytesIO(out.getvalue()))
    np.savez(folder / ANNOTATION, image_no=np.arange(5), joints=rng.random((5, 14, 2)) * (15.9, 17.9))
    np.savez(folder / "maps.npz", **maps())
    return folder


@pytest.fixture(scope="module")
def features(folder):
    return problems(open_dataset("lsp", OPTIONS | {"root": str(folder), "maps": str(folder / "maps.npz")}))


def test_maps__are_those_of_the_picture_with_that_name(folder, features):
    train, test, sink, meta = features
    given = maps()
    for problem, split in ((train, "train"), (test, "test")):
        for i, name in enumerate(meta["images"][split]):
            unary = problem.unary[problem.unary_ptr[i] : problem.unary_ptr[i + 1]].reshape(26, 5, 4)
            row = given["names"].tolist().index(name)
            for k, node in enumerate(GIVEN):
                np.testing.assert_array_equal(unary[NODES.index(node)], given["unary"][row, k, :5, :4])
            assert np.count_nonzero(np.abs(unary).sum(axis=(1, 2))) == len(GIVEN)
    assert train.d == 26 + 2 * 25 * (2 * 4 + 1)
    assert meta["radius"] == 2  # half of 4.5
    assert not [name for name in sink.whole[""] if name.startswith("part_")]


def test_new_maps__are_encoded_as_those_of_the_test_split_and_shown_as_joints(folder, features):
    _, _, sink, meta = features
    new = read_new([str(folder / "maps.npz")], meta)
    assert new.source == maps()["names"].tolist()
    rows = [new.source.index(name) for name in meta["images"]["test"]]
    feature_map = FeatureMap(meta | {"dataset": "lsp", "structure": "tree"}, sink.whole[""])
    made = feature_map.encode([new.raw[k] for k in rows])
    for name in ("unary", "relations", "grid"):
        np.testing.assert_array_equal(made.arrays[name], sink.arrays("test")[name])
    every = feature_map.encode(new.raw).arrays
    shown = show(new, Predicted(every["labels"], every["labels_ptr"], arrays=every))
    assert len(shown.text.splitlines()) == 1 + len(JOINTS) * len(new.source)
    with pytest.raises(DataError, match=r"maps of picture 0 are \(3, 5, 4\)"):
        feature_map.encode([np.zeros((3, 5, 4))])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"nodes": None}, "has no array nodes; expected unary, nodes"),
        ({"unary": np.zeros((5, 2, 6, 6))}, r"unary is \(5, 2, 6, 6\); expected \(5 pictures, 3 nodes"),
        ({"size": np.tile([7, 4], (5, 1))}, "size must be rows and columns of 5 grids"),
        ({"names": np.array(list("abcde"))}, "has no maps of im0000.; its names begin a, b, c"),
        ({"unary": np.full((5, 3, 6, 6), np.nan)}, "unary of im0000. has a value that is not finite"),
    ],
)
def test_errors__name_the_file_and_the_array(folder, tmp_path, change, message):
    path = tmp_path / "maps.npz"
    np.savez(path, **{name: array for name, array in (maps() | change).items() if array is not None})
    with pytest.raises(DataError, match=message) as caught:
        problems(open_dataset("lsp", OPTIONS | {"root": str(folder), "maps": str(path)}))
    assert str(path) in str(caught.value)
