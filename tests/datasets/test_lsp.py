"""Leeds Sports Pose: the skeleton, the archive, splits, maps of training images, new pictures, and errors."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import numba
import numpy as np
import pytest
from memory_sink import problems
from PIL import Image

from gapwise.stages.datasets import DataError, FeatureMap, OptionError, open_dataset, specimen
from gapwise.stages.datasets.inputs import Predicted
from gapwise.stages.datasets.lsp import ANNOTATION, ARCHIVE, SPLIT_SEED, show, stored_input
from gapwise.stages.datasets.poses.part_maps import described, grid_of, patches_at, variant
from gapwise.stages.datasets.poses.skeleton import JOINT_NODES, JOINTS, NODES, PARENT, nodes_of, trunk_length
from gapwise.stages.datasets.poses.types import cluster, nearest
from gapwise.stages.problems import build
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


def test_types__are_clusters_of_displacements():
    rng = np.random.default_rng(1)
    parent = np.array([-1, 0])
    child = np.repeat([[10.0, 0.0], [-10.0, 5.0]], 5, axis=0) + 0.1 * rng.normal(size=(10, 2))
    nodes = np.stack([np.zeros((10, 2)), child], axis=1)
    anchors = cluster(nodes, parent, 2, seed=0)
    np.testing.assert_allclose(anchors[0, 0], [[-10.0, 5.0], [10.0, 0.0]], atol=0.2)
    np.testing.assert_allclose(anchors[:, 1], -anchors[:, 0])
    assert nearest(nodes, parent, anchors)[:, 0].tolist() == [1] * 5 + [0] * 5


def test_patches__are_around_their_cell():
    """A bright square makes gradients in the patches near it and none elsewhere."""
    rgb = np.zeros((80, 120, 3), np.uint8)
    rgb[40:48, 80:88] = 255
    assert grid_of(rgb.shape) == (20, 30)
    for near, far in patches_at(described(rgb), np.array([[11, 21], [3, 3]])):
        assert not far.any()
        blocks = np.abs(near).reshape(6, 6, -1).sum(axis=2)
        assert blocks[2:4, 2:4].sum() > 0.5 * blocks.sum()


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


def test_variants__move_joints_with_the_picture():
    """A bright square at one joint stays under it; in the mirror it is at the joint of the other side."""
    rgb, joints = np.zeros((60, 80, 3), np.uint8), np.random.default_rng(0).uniform((10, 10), (70, 50), (14, 2))
    left, right = JOINTS.index("left knee"), JOINTS.index("right knee")
    joints[left] = 50.0, 40.0
    rgb[38:43, 48:53] = 255
    for number in range(4):
        turned, moved = variant(rgb, joints, number, seed=0)
        rows, columns = np.nonzero(turned[..., 0] > 128)
        expected = moved[right if number % 2 else left]
        np.testing.assert_allclose((columns.mean(), rows.mean()), expected, atol=1.0)
        assert np.isclose(trunk_length(moved), trunk_length(joints)) == (number < 2)


def test_features__of_new_pictures_are_those_of_the_test_split(archive, features):
    _, _, sink, meta = features
    with tarfile.open(archive / ARCHIVE) as tar:
        jpegs = [tar.extractfile(f"{name}.jpg").read() for name in meta["images"]["test"]]
    made = FeatureMap(meta | {"dataset": "lsp", "structure": "tree"}, sink.whole[""]).encode(jpegs)
    for name in ("unary", "relations", "grid"):
        assert np.array_equal(made.arrays[name], sink.arrays("test")[name])


def test_predictions__are_shown_as_joints_in_pixels(features):
    _, test, sink, meta = features
    arrays = sink.arrays("test")
    shown = show(stored_input(arrays, meta), Predicted(test.truth, test.label_ptr, arrays=arrays))
    header, *rows = [line.split(",") for line in shown.text.splitlines()]
    assert header == ["picture", "joint", "x", "y"]
    assert [row[0] for row in rows[::14]] == meta["images"]["test"]
    assert [row[1] for row in rows[:14]] == list(JOINTS)
    points = np.array([row[2:] for row in rows], float).reshape(2, 14, 2)
    assert np.abs(points - arrays["points"].reshape(2, 14, 2)).max() <= 2.5


def test_specimen__has_the_types_of_what_is_featurized(archive, features):
    encoded = specimen(SMALL | {"root": str(archive)})
    assert numba.typeof(build(encoded.structure, encoded.arrays, encoded.meta)) == numba.typeof(features[0])


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"size": "huge"}, OptionError, "dataset.size: expected one of small, full"),
        ({"types": 0}, OptionError, "dataset.types: expected a whole number >= 1"),
        ({"folds": 1}, OptionError, "dataset.folds: expected a whole number >= 2"),
        ({"loss_scale": -1.0}, OptionError, "dataset.loss_scale: expected a number > 0"),
        ({"tipes": 3}, OptionError, "dataset.tipes: no such option of this data set; there are: root, maps, size"),
        ({"root": "/nowhere"}, DataError, "does not hold lspet_1000_images.tar"),
        ({"n_test": 4}, DataError, "4 training and 4 test images are wanted"),
        ({"types": 5}, DataError, "dataset.n_train: 4 training images are too few for dataset.types=5, which"),
        ({"folds": 5}, DataError, "dataset.folds=5: more than the 4 training images"),
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
