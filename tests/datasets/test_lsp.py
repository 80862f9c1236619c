"""Leeds Sports Pose: the skeleton, the archive, splits, maps of training images, units of features, and errors."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import numpy as np
import pytest
from memory_sink import problems
from PIL import Image

from gapwise.stages.datasets import DataError, OptionError, open_dataset
from gapwise.stages.datasets.lsp import ANNOTATION, ARCHIVE, SPLIT_SEED, MapSpread, deformation_units
from gapwise.stages.datasets.poses.skeleton import JOINT_NODES, JOINTS, NODES, PARENT, nodes_of, trunk_length
from gapwise.stages.problems.tree.metrics import metrics

SMALL = {"name": "lsp", "n_train": 4, "n_test": 2, "types": 2, "folds": 2, "components": 4, "hidden": 4, "variants": 3}


@pytest.fixture(scope="module")
def archive(tmp_path_factory) -> Path:
    """Seven pictures of noise, 50 pixels wide and 62 high, with joints anywhere."""
    folder, rng = tmp_path_factory.mktemp("lsp"), np.random.default_rng(0)
    with tarfile.open(folder / ARCHIVE, "w") as tar:
        for number in range(7):
            out = io.BytesIO()
            Image.fromarray(rng.integers(256, size=(62, 50, 3), dtype=np.uint8)).save(out, "JPEG")
            entry = tarfile.TarInfo(f"im{number:05d}.jpg")
            entry.size = len(out.getvalue())
            tar.addfile(entry, io.BytesIO(out.getvalue()))
    joints = (rng.random((7, 14, 2)) * (49.9, 61.9)).astype(np.float32)
    np.savez(folder / ANNOTATION, image_no=np.arange(7), joints=joints, hw=np.tile([62, 50], (7, 1)))
    return folder


@pytest.fixture(scope="module")
def features(archive):
    return problems(open_dataset("lsp", SMALL | {"root": str(archive)}))


def test_skeleton__is_a_tree_of_26_nodes_over_14_joints():
    assert len(NODES) == len(set(NODES)) == 26
    assert (PARENT[1:] < np.arange(1, 26)).all()
    assert [NODES[k] for k in JOINT_NODES] == list(JOINTS)
    joints = np.random.default_rng(0).random((3, 14, 2))
    nodes = nodes_of(joints)
    np.testing.assert_allclose(nodes[:, JOINT_NODES], joints)
    middle = (joints[:, JOINTS.index("left knee")] + joints[:, JOINTS.index("left ankle")]) / 2
    np.testing.assert_allclose(nodes[:, NODES.index("left shank")], middle)
    assert trunk_length(joints).shape == (3,)


def test_features__make_a_tree_whose_truth_is_right(features):
    train, test, sink, _ = features
    assert (train.n, test.n, train.parent.size, train.anchors.shape) == (4, 2, 26, (25, 2, 2, 2))
    assert train.d == 26 + 2 * 25 * (2 * 4 + 1)
    assert train.hw.tolist() == [[16, 13]] * 4
    assert train.node_loss[JOINT_NODES].tolist() == [1 / 14] * 14
    for problem, split in ((train, "train"), (test, "test")):
        measures = metrics(problem, sink.arrays(split), problem.truth)
        assert measures["pdj"] > 0.9
        assert measures["pcp"] > 0.7  # limbs may be shorter than a cell
        assert all(
            problem.loss(i, problem.truth[problem.label_ptr[i] : problem.label_ptr[i + 1]]) == 0 for i in range(2)
        )
    assert (sink.arrays("test")["photo_hw"] == (62, 50)).all()
    assert "photo" not in sink.arrays("train")
    assert (sink.arrays("train")["unary"] <= 0).all()


def test_maps__of_a_training_image_do_not_depend_on_its_pose(archive, tmp_path):
    """Its fold's classifiers have not seen it; those of the other fold have."""
    options = SMALL | {"n_test": 1, "types": 1, "components": 2, "hidden": 2, "variants": 1}
    with np.load(archive / ANNOTATION) as file:
        annotation = dict(file)
    first = np.flatnonzero(annotation["image_no"] == int(np.random.default_rng(SPLIT_SEED).permutation(7)[0]))
    annotation["joints"][first] = annotation["joints"][first][:, ::-1]
    np.savez(tmp_path / ANNOTATION, **annotation)
    (tmp_path / ARCHIVE).symlink_to(archive / ARCHIVE)
    unary = []
    for root in (archive, tmp_path):
        train, _, sink, _ = problems(open_dataset("lsp", options | {"root": str(root)}))
        unary.append(np.split(sink.arrays("train")["unary"], train.n))
    assert np.array_equal(unary[0][0], unary[1][0])
    assert np.array_equal(unary[0][2], unary[1][2])  # of the same fold: it has not seen the first image either
    assert not np.array_equal(unary[0][1], unary[1][1])


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"size": "huge"}, OptionError, "dataset.size: expected one of small, full"),
        ({"n_test": 4}, DataError, "4 training and 4 test images are wanted"),
        ({"types": 5}, DataError, "dataset.n_train: 4 training images are too few for dataset.types=5, which"),
    ],
)
def test_errors__name_the_option(archive, options, error, message):
    with pytest.raises(error, match=message):
        problems(open_dataset("lsp", SMALL | {"root": str(archive)} | options))


def test_errors__name_the_file(archive, tmp_path):
    (tmp_path / ARCHIVE).write_bytes((archive / ARCHIVE).read_bytes()[:2000])
    (tmp_path / ANNOTATION).write_bytes((archive / ANNOTATION).read_bytes())
    with pytest.raises(DataError, match=ARCHIVE):
        problems(open_dataset("lsp", SMALL | {"root": str(tmp_path)}))
    np.savez(tmp_path / ANNOTATION, image_no=np.arange(7), joints=np.zeros((7, 13, 2)))
    with pytest.raises(DataError, match=r"joints is \(7, 13, 2\)"):
        problems(open_dataset("lsp", SMALL | {"root": str(tmp_path)}))


def test_deformation_units__divide_by_the_spread_of_displacements():
    for radius, types in ((1, 1), (5, 13)):
        per_cell, per_square = deformation_units(radius, types)
        k = per_cell * np.arange(-radius, radius + 1)
        np.testing.assert_allclose(np.std(k), np.sqrt(types))
        np.testing.assert_allclose(np.std(per_square * k**2), np.sqrt(types))


def test_map_spread__is_measured_around_the_true_places():
    """Maps that vary along columns only near the truth of one image: a ramp in one, constant in the other."""
    rows, columns, parent = 9, 11, np.array([-1, 0])
    ramp = np.broadcast_to(np.arange(columns, dtype=np.float32), (rows, columns))
    far = np.zeros((rows, columns), np.float32)
    far[:, 10] = 100.0
    relations = np.zeros((1, 2, 2, rows, columns), np.uint8)
    relations[:, :, 1] = 6
    block = {
        "grid": np.array([[rows, columns]]),
        "unary": np.stack([ramp, far]).reshape(-1),
        "relations": relations.reshape(-1),
        "labels": np.array([4 * columns + 5, 4 * columns + 3, 0, 0]),
    }
    spread = MapSpread(2, 2, parent, 2)
    spread.add(block)
    unary, codes = spread.values()
    np.testing.assert_allclose(unary, np.sqrt(np.var(np.arange(5)) / 2))
    assert codes == 3.0
