"""Score maps of one's own: the same blocks from .npz and zarr, what may be left out, and errors."""

from __future__ import annotations

import numpy as np
import pytest
import zarr
from memory_sink import problems

from gapwise.stages.datasets import DataError, FeatureMap, Predicted, open_dataset
from gapwise.stages.datasets.tree_maps import TreeMaps
from gapwise.stages.problems.tree.tree import weights


def arrays(n: int = 5) -> dict[str, np.ndarray]:
    """Three nodes, two types, maps of 4 x 6 cells."""
    rng = np.random.default_rng(n)
    return {
        "unary": rng.normal(size=(n, 3, 4, 6)), "places": rng.integers(4, size=(n, 3, 2)), "loss_scale": np.full(n, 2.0),
        "parent": np.array([-1, 0, 1]), "relations": rng.normal(size=(n, 2, 2, 2, 4, 6)),
    }  # fmt: skip


def stored(folder, ending: str, name: str, content: dict[str, np.ndarray]) -> str:
    path = folder / (name + ending)
    if ending == ".npz":
        np.savez(path, **content)
    else:
        group = zarr.open_group(path, mode="w")
        for key, array in content.items():
            group.create_array(key, data=array)
    return str(path)


def opened(folder, content, ending: str = ".npz", **options):
    files = {"file": stored(folder, ending, "train", content), "test_file": stored(folder, ending, "test", arrays(2))}
    return open_dataset("tree_maps", {"name": "tree_maps", "types": 2, **files, **options})


@pytest.mark.parametrize("ending", [".npz", ""])
def test_maps__become_blocks(tmp_path, ending):
    content = arrays()
    train, test, _, _ = problems(opened(tmp_path, content, ending))
    assert (train.n, test.n, train.d) == (5, 2, weights(3, 2))
    np.testing.assert_allclose(train.unary.reshape(content["unary"].shape), content["unary"], rtol=1e-6)
    np.testing.assert_allclose(train.relations.reshape(content["relations"].shape), content["relations"], rtol=1e-6)
    truth = train.truth.reshape(5, -1)
    np.testing.assert_array_equal(truth[:, :3], content["places"][..., 0] * 6 + content["places"][..., 1])
    assert train.node_loss.tolist() == [1 / 3] * 3


def test_maps__are_cut_to_their_size_and_need_no_relations(tmp_path):
    content = arrays()
    del content["relations"]
    content |= {"size": np.tile([4, 5], (5, 1)), "types": np.ones((5, 2), int), "anchors": np.zeros((2, 2, 2, 2))}
    train, _, _, _ = problems(opened(tmp_path, content))
    assert train.hw.tolist() == [[4, 5]] * 5
    np.testing.assert_allclose(train.unary.reshape(5, 3, 4, 5), content["unary"][..., :5], rtol=1e-6)
    assert train.truth.reshape(5, -1)[:, 3:].min() == 1
    assert not train.relations.any()


def test_new_maps__are_encoded_as_those_of_the_test_split_and_shown_as_places(tmp_path):
    _, test, sink, meta = problems(opened(tmp_path, arrays()))
    given = {name: array for name, array in arrays(2).items() if name in ("unary", "relations")}
    new = TreeMaps.read_new([stored(tmp_path, ".npz", "new", given | {"names": np.array(["one", "two"])})], meta)
    feature_map = FeatureMap(meta | {"dataset": "tree_maps", "structure": "tree"}, sink.whole[""])
    made = feature_map.encode(new.raw)
    for name in ("unary", "relations", "grid"):
        np.testing.assert_array_equal(made.arrays[name], sink.arrays("test")[name])
    header, *rows = TreeMaps.show(new, Predicted(test.truth, test.label_ptr, arrays=made.arrays)).text.splitlines()
    assert header == "image,node,row,column"
    cells = arrays(2)["places"]
    assert rows == [
        f"{name},{v},{','.join(map(str, cells[i, v]))}" for i, name in enumerate(new.source) for v in range(3)
    ]
    assert new.source == ["one", "two"]
    assert TreeMaps.stored_input(sink.arrays("test"), meta).source == ["0", "1"]
    for bad, message in (
        ({"unary": np.zeros((2, 4, 6))}, r"input: image 0: unary is \(2, 4, 6\), expected \(3 nodes"),
        ({"unary": np.zeros((3, 4, 6)), "relations": np.zeros((2, 2, 3, 4, 6))}, "image 0: relations is"),
    ):
        with pytest.raises(DataError, match=message):
            feature_map.encode([bad])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"places": np.full((5, 3, 2), 5)}, "image 0 has places up to"),
        ({"parent": np.array([-1, 2, 1])}, "expected -1 for node 0"),
        ({"loss_scale": None}, "has no array loss_scale"),
    ],
)
def test_errors__name_file_and_array(tmp_path, change, message):
    with pytest.raises(DataError, match=message):
        problems(opened(tmp_path, {name: array for name, array in (arrays() | change).items() if array is not None}))
    (tmp_path / "maps.h5").write_bytes(b"\x89HDF\r\n\x1a\n")
    with pytest.raises(DataError, match=r"maps\.h5: cannot be read as an \.npz file or a zarr group"):
        TreeMaps.read_new([str(tmp_path / "maps.h5")], {})
