"""A made-up HorseSeg release of any size, in the publisher's layout:

    python tests/benchmarks/synthetic_horseseg.py FOLDER [--images 25438] [--seed 0]

Each image has 135 to 160 superpixels and about 400 pairs of neighbours. Maps, pairs and rows agree as in a real release:
the rows of an image are histograms of its superpixels' pixels, their neighbours and second-order neighbours. What is made
up is the words of those pixels: each image draws words of a few kinds of horse and of background, one superpixel in eight
looks like the other class, and horses are connected shapes. There are `MAPS` different maps; images that share one differ in
labels and words. There are no photographs or masks, so it is read with ``dataset.pictures=false``.

Memory does not depend on the number of images. The files take about 0.3 MB an image.
"""

from __future__ import annotations

import argparse
import io
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import h5py
import numpy as np
from PIL import Image
from scipy.spatial import cKDTree

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from hdseg_release import put_image

from gapwise.stages.datasets import hdseg
from gapwise.stages.datasets.vision.features import GRID, rings
from gapwise.stages.datasets.vision.superpixels import adjacency

MAPS = 96
"""Number of different superpixel maps."""
HEIGHT, WIDTH = 240, 360
FEWEST, MOST = 135, 160
"""Superpixels of an image."""
KINDS, EXAMPLES = 24, 256
"""Kinds of horse, and of background; superpixels of each kind to draw from."""
COLOUR_PIXELS, SIFT_POINTS = 260, 45
"""Words that one drawn superpixel counts; an image adds two of them up for each of its own."""
STRANGE = 0.12
"""Share of superpixels that look like the other class."""


class Map(NamedTuple):
    """A superpixel map and what follows from it."""

    png: bytes
    centre: np.ndarray
    """float64, (S, 2): row and column as shares of height and width"""
    edges: np.ndarray
    """int32, (E, 2)"""
    rings: tuple[np.ndarray, np.ndarray]
    """float32, (S, S): neighbours, second-order neighbours"""
    position: np.ndarray
    """float32, (S, 48): the three position histograms"""


def shares(counts: np.ndarray) -> np.ndarray:
    """Square roots of the shares of whole numbers in their rows, so that rows have L2 norm 1, or 0."""
    roots: np.ndarray = np.sqrt(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1.0))
    return roots.astype(np.float32)


def make_map(rng: np.random.Generator) -> Map:
    """Cells of pixels that are nearest to the same point of a jittered raster."""
    size = int(rng.integers(FEWEST, MOST + 1))
    columns = int(np.ceil(np.sqrt(size * WIDTH / HEIGHT)))
    rows = int(np.ceil(size / columns))
    raster = np.stack(np.divmod(np.arange(rows * columns), columns), axis=1)
    raster = raster[np.sort(rng.choice(len(raster), size, replace=False))]
    points = (raster + 0.5 + rng.uniform(-0.3, 0.3, raster.shape)) * (HEIGHT / rows, WIDTH / columns)
    pixels = np.stack(np.divmod(np.arange(HEIGHT * WIDTH), WIDTH), axis=1)
    owner = cKDTree(points).query(pixels)[1]
    regions = owner.reshape(HEIGHT, WIDTH).astype(np.uint8)
    png = io.BytesIO()
    Image.fromarray(regions).save(png, format="PNG")
    edges = adjacency(regions)
    near = tuple(ring.astype(np.float32) for ring in rings(size, edges))
    cell = pixels[:, 0] * GRID // HEIGHT * GRID + pixels[:, 1] * GRID // WIDTH
    own = np.bincount(owner * GRID * GRID + cell, minlength=size * GRID * GRID).reshape(size, -1).astype(np.float32)
    position = np.concatenate([shares(own), *(shares(ring @ own) for ring in near)], axis=1)
    return Map(png.getvalue(), points / (HEIGHT, WIDTH), edges, near, position)


class Look:
    """Words of superpixels: `KINDS` kinds of background, then as many of horse."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.counts = []
        """float32, (2 KINDS EXAMPLES, words): one array of colour words, one of SIFT words"""
        for words, total in ((hdseg.WIDTHS[1], COLOUR_PIXELS), (hdseg.WIDTHS[2], SIFT_POINTS)):
            of_class = rng.gamma(0.3, size=(2, words))
            kinds = np.repeat(of_class, KINDS, axis=0) * 0.5 + rng.gamma(0.2, size=(2 * KINDS, words))
            drawn = np.repeat(kinds / kinds.sum(axis=1, keepdims=True), EXAMPLES, axis=0)
            drawn = rng.gamma(4.0 * words * drawn + 1e-3)  # superpixels of a kind differ
            self.counts.append(rng.poisson(total * drawn / drawn.sum(axis=1, keepdims=True)).astype(np.float32))

    def draw(self, rng: np.random.Generator, labels: np.ndarray) -> list[np.ndarray]:
        """Counts of words of the superpixels of one image: two arrays (S, words)."""
        kinds = rng.integers(KINDS, size=(2, 2))  # two kinds of either class
        seen = labels ^ (rng.random(labels.size) < STRANGE)
        kind = seen * KINDS + kinds[seen, rng.integers(2, size=labels.size)]
        first, second = kind * EXAMPLES + rng.integers(EXAMPLES, size=(2, labels.size))
        return [counts[first] + counts[second] for counts in self.counts]


def draw_labels(rng: np.random.Generator, centre: np.ndarray) -> np.ndarray:
    """Labels (S,) of one horse: superpixels in an ellipse or in a smaller one that overlaps it."""
    middle = rng.uniform(0.3, 0.7, 2)
    inside = np.zeros(len(centre), bool)
    for part, radius in ((middle, rng.uniform(0.15, 0.35, 2)), (middle + rng.uniform(-0.2, 0.2, 2), np.full(2, 0.15))):
        inside |= (np.square((centre - part) / radius).sum(axis=1)) < 1.0
    return inside.astype(np.int64)


def draw_rows(words: list[np.ndarray], map_: Map) -> np.ndarray:
    """The unary rows (S, 1969), float32, of superpixels with these words."""
    parts = [np.ones((len(map_.centre), 1), np.float32), map_.position]
    for own in words:
        parts += [shares(own), *(shares(ring @ own) for ring in map_.rings)]
    return np.concatenate(parts, axis=1)


def make_release(
    root: Path, images: int, test: int = hdseg.TEST_IMAGES, seed: int = 0, report: Callable[[str], None] = print
) -> None:
    """Write the release into the folder `root`; its first images do not depend on how many there are."""
    common = np.random.default_rng(seed)
    maps, look = [make_map(common) for _ in range(MAPS)], Look(common)
    for which, (split, count) in enumerate({"train": images, "test": test}.items()):
        began = time.perf_counter()
        path, folder = root / hdseg.FILES[split], root / hdseg.MAPS[split]
        folder.mkdir(parents=True, exist_ok=True)
        with h5py.File(path, "w", libver="latest") as file:
            for number in range(count):
                rng = np.random.default_rng([seed, which, number])
                map_ = maps[int(rng.integers(MAPS))]
                labels = draw_labels(rng, map_.centre)
                rows = draw_rows(look.draw(rng, labels), map_)
                storage = {"chunks": rows.shape, "compression": "gzip", "compression_opts": 1}
                put_image(file, number, rows, map_.edges, labels, **storage)
                (folder / f"{number:06d}.png").write_bytes(map_.png)
                if (number + 1) % 1000 == 0:
                    report(f"{split}: {number + 1} of {count}, {time.perf_counter() - began:.0f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--images", type=int, default=hdseg.SIZES["large"], help="training images")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    make_release(asked.folder, asked.images, seed=asked.seed, report=lambda text: print(text, flush=True))


if __name__ == "__main__":
    main()
