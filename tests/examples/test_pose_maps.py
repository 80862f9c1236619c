"""The maps of the pose example, with a network that is shown a drawing and finds its parts by colour."""

from __future__ import annotations

import runpy
import tarfile
from pathlib import Path

import numpy as np
from PIL import Image

from gapwise.stages.datasets.poses.given_maps import GivenMaps
from gapwise.stages.datasets.poses.skeleton import JOINTS, NODES
from gapwise.stages.datasets.poses.skeleton import nodes_of as nodes_of_joints

EXAMPLE = runpy.run_path(str(Path(__file__).parent / "pose_maps.py"))
SIDE, HEAT = EXAMPLE["SIDE"], EXAMPLE["HEAT"]
UPRIGHT = np.random.default_rng(0).uniform(0.3, 0.7, (39, 2))
UPRIGHT[[33, 34]] = (0.5, 0.6), (0.5, 0.2)


def finder(picture: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Places of a person that stands around the red spot with the green one above; sure only if that is so."""
    rows, columns = np.mgrid[:SIDE, :SIDE]
    red, green = (
        np.array([(columns * weight).sum(), (rows * weight).sum()]) / max(weight.sum(), 1e-9)
        for weight in (np.maximum(picture[..., k] - 0.5, 0.0) for k in (0, 1))
    )
    up = green - red
    basis = np.column_stack([[-up[1], up[0]], -up])  # right and down of the person
    landmarks = red + (UPRIGHT - UPRIGHT[33]) @ basis.T / 0.4
    sure = -up[1] / max(np.hypot(*up), 1e-9)
    heat = np.full((HEAT, HEAT, 39), -20.0, np.float32)
    at = np.clip(landmarks * HEAT / SIDE, 0, HEAT - 1).astype(int)
    heat[at[:, 1], at[:, 0], np.arange(39)] = 3.0 * sure
    return landmarks, heat


def test_nodes__are_those_of_the_skeleton():
    assert sorted(EXAMPLE["NODES"]) == sorted(NODES)
    landmarks = np.random.default_rng(1).random((39, 2))
    nodes = EXAMPLE["nodes_of"](landmarks)
    np.testing.assert_allclose(
        np.array([nodes[name] for name in NODES]), nodes_of_joints(np.array([nodes[name] for name in JOINTS]))
    )


def test_maps__are_highest_where_a_turned_person_has_the_joint(tmp_path):
    """The person lies on the side: only a turned square shows it upright."""
    picture = np.zeros((120, 160, 3), np.uint8)
    hips, up = np.array([60.0, 70.0]), np.array([30.0, 8.0])
    for colour, (x, y) in enumerate((hips, hips + up)):
        picture[int(y) - 2 : int(y) + 3, int(x) - 2 : int(x) + 3, colour] = 255
    image = Image.fromarray(picture)
    squares = EXAMPLE["best_squares"](finder, image)
    assert len(squares) == EXAMPLE["KEPT"]
    assert squares[0].peak > 2.98  # of 3.0 where the person is upright; 2.9 at the nearest of the first turns
    maps = EXAMPLE["maps_of"](squares, 160, 120)
    assert maps.shape == (26, 30, 40)
    basis = np.column_stack([[-up[1], up[0]], -up])
    true = hips + (UPRIGHT - UPRIGHT[33]) @ basis.T / 0.4
    nodes = EXAMPLE["nodes_of"](true)
    for k, name in enumerate(EXAMPLE["NODES"]):
        row, column = np.unravel_index(maps[k].astype(float).argmax(), maps[k].shape)
        assert np.hypot(*(4 * np.array([column, row]) + 1.5 - nodes[name])) < 8.0, name
    EXAMPLE["write"](tmp_path / "maps.h5", {"one": maps, "two": maps[:, :20, :35]})
    given = GivenMaps(tmp_path / "maps.h5")
    np.testing.assert_array_equal(
        given.unary("two", (20, 35))[NODES.index("left knee")], maps[_number("left knee"), :20, :35]
    )


def _number(name: str) -> int:
    return int(EXAMPLE["NODES"].index(name))


def test_pictures__come_from_archives_folders_and_files(tmp_path):
    Image.new("RGB", (5, 4)).save(tmp_path / "a.png")
    with tarfile.open(tmp_path / "b.tar", "w") as tar:
        tar.add(tmp_path / "a.png", arcname="inner/c.png")
    (tmp_path / "d").mkdir()
    Image.new("RGB", (5, 4)).save(tmp_path / "d" / "e.png")
    pictures = EXAMPLE["pictures"]([tmp_path / "a.png", tmp_path / "b.tar", tmp_path / "d"])
    assert [(name, picture.size) for name, picture in pictures] == [("a", (5, 4)), ("c", (5, 4)), ("e", (5, 4))]
