"""Score maps of people for `dataset=lsp dataset.maps=FILE`, from the heat-maps of a pose network, BlazePose.

    pip install ai-edge-litert pillow h5py             # in an environment of its own; Gapwise is not needed here
    pip download --no-deps --python-version 3.11 --only-binary=:all: mediapipe==0.10.21
    unzip -j mediapipe-0.10.21-*.whl mediapipe/modules/pose_landmark/pose_landmark_full.tflite
    python tests/examples/pose_maps.py pose_landmark_full.tflite ARCHIVE.tar -o maps.h5
    python -m pipeline +experiment=regpath_lsp dataset.root=... dataset.maps=maps.h5

Pictures come from a .tar archive, a folder, or files. The network expects an upright person that fills the square that it is
shown. So every picture is shown turned by k/8 of a full turn, and each time once more as the first answer says where the
person is (two of its landmarks: middle of the hips, and a point above; Bazarevsky et al., *BlazePose*, 2020). The three
squares count whose heat-maps have the highest peaks. With h the network's probability of a joint at a cell, and p its
landmark, a node's map is

    log( (1/3) sum over squares [ h + SHARE exp(-|l - p|^2 / (2 s^2)) ] + FLOOR ),        s = WIDTH times the trunk's length.

Neck, head top and the points between two joints have no heat-map: their p follows from landmarks, and h = 0. Another network
needs another `network` and other JOINTS; the arrays of the file are described in stages/datasets/poses/given_maps.py."""

from __future__ import annotations

import argparse
import io
import sys
import tarfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

CELL, SIDE, HEAT = 4, 256, 64
"""Pixels of a cell; of the network's picture; and of its heat-maps."""
TURNS, KEPT, MARGIN = 8, 3, 1.1
SHARE, WIDTH, FLOOR = 0.1, 0.15, 0.03
NECK, HEAD = 0.3, 0.75
"""The way from the middle of the shoulders to that of the ears, and beyond it to the top of the head, in such ways."""
JOINTS = {
    "right ankle": 28, "right knee": 26, "right hip": 24, "left hip": 23, "left knee": 25, "left ankle": 27,
    "right wrist": 16, "right elbow": 14, "right shoulder": 12, "left shoulder": 11, "left elbow": 13, "left wrist": 15,
}  # fmt: skip
"""The network's number of each joint."""
BETWEEN = {
    "upper arm": ("shoulder", "elbow"), "forearm": ("elbow", "wrist"), "chest": ("shoulder", "shoulder", "hip"),
    "waist": ("shoulder", "hip", "hip"), "thigh": ("hip", "knee"), "shank": ("knee", "ankle"),
}  # fmt: skip
EARS, HIPS, ABOVE = (7, 8), 33, 34

Network = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
"""From a picture, float32 (SIDE, SIDE, 3) in 0..1, to landmarks (39, 2), x and y in pixels, and logits (HEAT, HEAT, 39)."""


class Square(NamedTuple):
    """A square that the network was shown."""

    peak: float
    """mean over the joints of the largest logit"""
    affine: np.ndarray
    """(2, 3): from its pixels to those of the picture"""
    landmarks: np.ndarray
    """(39, 2): x, y in the picture"""
    heat: np.ndarray
    """(HEAT, HEAT, 39): logits"""


def network(model: str) -> Network:
    """BlazePose from its .tflite file."""
    from ai_edge_litert.interpreter import Interpreter

    interpreter: Any = Interpreter(model, num_threads=1)
    interpreter.allocate_tensors()
    given = interpreter.get_input_details()[0]["index"]
    outputs = {tuple(output["shape"]): output["index"] for output in interpreter.get_output_details()}

    def answer(picture: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        interpreter.set_tensor(given, picture[None])
        interpreter.invoke()
        landmarks = interpreter.get_tensor(outputs[1, 195]).reshape(39, 5)
        return landmarks[:, :2], interpreter.get_tensor(outputs[1, HEAT, HEAT, 39])[0]

    return answer


def shown(answer: Network, picture: Image.Image, centre: np.ndarray, side: float, angle: float) -> Square:
    """What the network says of the square of `side` pixels around `centre`, turned by `angle`."""
    turn = side / SIDE * np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    affine = np.column_stack([turn, centre - turn @ [SIDE / 2, SIDE / 2]])
    cut = picture.transform((SIDE, SIDE), Image.Transform.AFFINE, affine.ravel().tolist(), Image.Resampling.BILINEAR)
    landmarks, heat = answer(np.asarray(cut, np.float32) / 255)
    peak = float(heat.reshape(-1, heat.shape[-1]).max(axis=0)[list(JOINTS.values())].mean())
    return Square(peak, affine, landmarks @ turn.T + affine[:, 2], heat)


def best_squares(answer: Network, picture: Image.Image) -> list[Square]:
    """The KEPT squares with the highest peaks."""
    squares = []
    for turn in range(TURNS):
        first = shown(answer, picture, np.array(picture.size) / 2, MARGIN * max(picture.size), 2 * np.pi * turn / TURNS)
        hips, up = first.landmarks[HIPS], first.landmarks[ABOVE] - first.landmarks[HIPS]
        side = max(2.5 * float(np.hypot(*up)), 30.0)
        squares += [first, shown(answer, picture, hips, side, float(np.arctan2(up[0], -up[1])))]
    return sorted(squares, key=lambda square: -square.peak)[:KEPT]


def nodes_of(landmarks: np.ndarray) -> dict[str, np.ndarray]:
    """x and y of every node."""
    points = {name: landmarks[number] for name, number in JOINTS.items()}
    shoulders = (points["right shoulder"] + points["left shoulder"]) / 2
    ears = landmarks[list(EARS)].mean(axis=0)
    points |= {"neck": shoulders + NECK * (ears - shoulders), "head top": ears + HEAD * (ears - shoulders)}
    for side in ("right", "left"):
        points |= {
            f"{side} {name}": np.mean([points[f"{side} {joint}"] for joint in joints], axis=0)
            for name, joints in BETWEEN.items()
        }
    return points


NODES = tuple(nodes_of(np.zeros((39, 2))))


def probability(square: Square, number: int, cells: np.ndarray) -> np.ndarray:
    """That of joint `number` at `cells` (n, 2), x and y in the picture; bilinear, 0 outside the square."""
    inside = np.linalg.solve(square.affine[:, :2], (cells - square.affine[:, 2]).T) * (HEAT / SIDE) - 0.5
    low = np.floor(inside).astype(int)
    heat = np.pad(1 / (1 + np.exp(-square.heat[..., number].astype(float))), 1)
    total = np.zeros(len(cells))
    for right in (0, 1):
        for down in (0, 1):
            x, y = low[0] + right, low[1] + down
            weight = (1 - np.abs(inside[0] - x)) * (1 - np.abs(inside[1] - y))
            total += weight * heat[np.clip(y + 1, 0, HEAT + 1), np.clip(x + 1, 0, HEAT + 1)]
    return total


def maps_of(squares: list[Square], width: int, height: int) -> np.ndarray:
    """float16 (26, rows, columns): the maps of all NODES of a picture."""
    rows, columns = -(-height // CELL), -(-width // CELL)
    places = np.stack(np.meshgrid(np.arange(columns), np.arange(rows)), axis=-1).reshape(-1, 2)
    cells = CELL * places + (CELL - 1) / 2
    total = np.full((len(NODES), len(cells)), FLOOR)
    for square in squares:
        node = nodes_of(square.landmarks)
        trunk = (
            np.linalg.norm(node["right shoulder"] + node["left shoulder"] - node["right hip"] - node["left hip"]) / 2
        )
        spread = max(WIDTH * float(trunk), 5.0)
        for k, name in enumerate(NODES):
            away = ((cells - node[name]) ** 2).sum(axis=1)
            likelihood = SHARE * np.exp(-away / (2 * spread**2))
            if name in JOINTS:
                likelihood += probability(square, JOINTS[name], cells)
            total[k] += likelihood / len(squares)
    return np.log(total).reshape(-1, rows, columns).astype(np.float16)


def pictures(sources: Iterable[Path]) -> Iterator[tuple[str, Image.Image]]:
    """Names and pictures of archives, folders and files."""
    for source in sources:
        if source.suffix == ".tar":
            with tarfile.open(source) as tar:
                for member in tar.getmembers():
                    if member.isfile() and (file := tar.extractfile(member)):
                        yield Path(member.name).stem, Image.open(io.BytesIO(file.read())).convert("RGB")
        else:
            for path in sorted(source.iterdir()) if source.is_dir() else [source]:
                yield path.stem, Image.open(path).convert("RGB")


def write(path: Path, maps: dict[str, np.ndarray]) -> None:
    """The maps of pictures by name, padded to the largest grid."""
    import h5py

    size = np.array([m.shape[1:] for m in maps.values()])
    with h5py.File(path, "w") as file:
        shape = (len(maps), len(NODES), *size.max(axis=0).tolist())
        unary = file.create_dataset("unary", shape, np.float16, chunks=(1, *shape[1:]), compression="gzip")
        for k, (scores, (rows, columns)) in enumerate(zip(maps.values(), size.tolist(), strict=True)):
            unary[k, :, :rows, :columns] = scores
        file["size"], file["names"], file["nodes"] = size, list(maps), list(NODES)


def main() -> None:
    parser = argparse.ArgumentParser(description="Score maps of people in pictures.")
    parser.add_argument("model", help="pose_landmark_full.tflite")
    parser.add_argument("pictures", nargs="+", type=Path, help="a .tar archive, a folder, or files")
    parser.add_argument("-o", "--out", type=Path, default=Path("maps.h5"))
    options = parser.parse_args()
    answer, maps = network(options.model), {}
    for name, picture in pictures(options.pictures):
        maps[name] = maps_of(best_squares(answer, picture), *picture.size)
        if len(maps) % 50 == 0:
            print(f"{len(maps)} pictures", file=sys.stderr)
    write(options.out, maps)


if __name__ == "__main__":
    main()
