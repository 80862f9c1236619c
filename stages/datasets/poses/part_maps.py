"""Score maps of parts and of relation types from photographs, by a small neural network on gradient patches.

A photograph is described by histograms of oriented gradients (Dalal and Triggs, CVPR 2005; scikit-image) at each of
`SCALES`: pictures reduced by that factor, cells of `CELL` pixels, blocks of 2 x 2 cells. The patch at a place is a square
of 6 x 6 blocks around it, 48 and 96 pixels wide. The patches of a scale are reduced by whitened principal components,
found at random places, so that no pose enters them. Colours around the place and its position in the picture are added.
Two kinds of classifiers read this (Chen and Yuille, NIPS 2014, have a convolutional network in their stead):

* parts: U_v = log p(part v | patches) over all parts and background, by a network of one hidden layer (scikit-learn);
* types: for every arc and either end, R_t = log p(type t | patches at that end, which is known to be its part), by
  multinomial logistic regression.

Logarithms are cut off at -`FLOOR`. Each photograph is learned from in several `variants`: as it is, in the mirror, where
left and right change places, and both turned and resized at random. Half of the background is within `NEAR` cells of a
part: places that are mistaken for one.

Maps of a training image come from classifiers that have not seen it: images are divided into folds, and each fold's maps
are made by what is learned on the others. Test images use what is learned on all. Otherwise training maps would be surer
of themselves than test maps, and weights that trust them would be learned.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gapwise.stages.datasets.poses.skeleton import MIRRORED_JOINTS

CELL = 4
MOST = 32767
"""Cells of a grid that can be numbered."""
SCALES = (1, 2)
BLOCKS = 6
"""Blocks along a side of a patch."""
STEP = 2
"""Cells from one block to the next."""
MARGIN = BLOCKS * STEP // 2
ORIENTATIONS = 9
WIDTH = 4 * ORIENTATIONS
"""Numbers of a block."""
COLOURS, COLOUR_STEP = 5, 3
"""Places along a side of the square that colours are taken from, and cells from one to the next."""
SURROUNDINGS = 3 * COLOURS**2 + 5
"""Numbers for colour and place."""
FLOOR = 8.0
TURN, RESIZE = 20.0, 0.12
"""Standard deviations of a variant's rotation in degrees and of the logarithm of its size."""
NEAR, APART = 8, 3
"""Cells: background near a part is at most so far from it, and all background at least so far from every part."""
EPOCHS, DECAY, BATCH = 5, 1.0, 256
"""Of the network: passes over the data, alpha and batch size, as scikit-learn has them."""
TYPES_C = 0.003
"""Inverse strength of the types' regularization, as scikit-learn has it."""
CODES = 255
"""Relation maps are stored as uint8: 0 for 0, 255 for -`FLOOR`."""
RELATION_SCALE = -FLOOR / CODES


class Description(NamedTuple):
    """What patches of a picture are cut from; borders are repeated."""

    grid: tuple[int, int]
    """rows and columns"""
    blocks: tuple[np.ndarray, ...]
    """for each scale s, float32 (rows / s + 2 MARGIN, columns / s + 2 MARGIN, WIDTH)"""
    colours: np.ndarray
    """float32 (rows + 2 MARGIN, columns + 2 MARGIN, 3), Lab"""


class Reduction(NamedTuple):
    """Principal components of patches, by scale."""

    means: np.ndarray
    """float32 (scales, 36 WIDTH)"""
    components: np.ndarray
    """float32 (scales, 36 WIDTH, k), divided by the standard deviations"""


class PartModel(NamedTuple):
    """Classifiers of x, the reduced patches and what surrounds them (m, p)."""

    means: np.ndarray
    components: np.ndarray
    hidden: np.ndarray
    """float32 (p + 1, h): weights of the hidden layer, with the offsets as the last row"""
    parts: np.ndarray
    """float32 (h + 1, V + 1)"""
    types: np.ndarray
    """float32 (p + 1, 2 A T)"""


class Samples(NamedTuple):
    """Places of one variant of one image that classifiers learn from."""

    x: np.ndarray
    """float32 (m, p)"""
    part: np.ndarray
    """int64 (m,): the node, or the number of nodes for background"""
    nodes: np.ndarray
    """float64 (V, 2): x and y of all nodes, in cells"""


def grid_of(shape: Sequence[int]) -> tuple[int, int]:
    """Rows and columns of the grid over a picture of (height, width) pixels."""
    return -(-shape[0] // CELL), -(-shape[1] // CELL)


def variant(rgb: np.ndarray, joints: np.ndarray, number: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Picture and joints (14, 2) of variant `number`: 0 as it is, odd numbers mirrored, from 2 turned and resized."""
    from skimage.transform import AffineTransform, warp

    if number % 2:
        rgb, joints = rgb[:, ::-1], (np.array([rgb.shape[1] - 1, 0]) + np.array([-1, 1]) * joints)[MIRRORED_JOINTS]
    if number < 2:
        return np.ascontiguousarray(rgb), joints
    rng = np.random.default_rng((seed, number))
    turn, size = np.deg2rad(TURN * rng.normal()), np.exp(RESIZE * rng.normal())
    linear = size * np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    shape = tuple(max(round(size * k), 1) for k in rgb.shape[:2])
    moved = np.array(shape[::-1]) / 2 - linear @ (np.array(rgb.shape[1::-1]) / 2)
    matrix = np.vstack([np.column_stack([linear, moved]), (0, 0, 1)])
    turned = warp(rgb, AffineTransform(matrix).inverse, output_shape=shape, mode="edge", preserve_range=True)
    return np.rint(turned).astype(np.uint8), joints @ linear.T + moved


def described(rgb: np.ndarray) -> Description:
    """Blocks and colours around every cell of the grid."""
    from scipy.ndimage import uniform_filter
    from skimage.color import rgb2lab
    from skimage.feature import hog

    (rows, columns), low, high = grid_of(rgb.shape), MARGIN * CELL, (MARGIN + 1) * CELL
    levels = []
    for scale in SCALES:
        side = CELL * scale
        whole = _extended(rgb, -rows // scale * -side, -columns // scale * -side) / 255.0
        small = whole.reshape(whole.shape[0] // scale, scale, -1, scale, 3).mean(axis=(1, 3))
        blocks = hog(
            np.pad(small, ((low, high), (low, high), (0, 0)), mode="edge"), orientations=ORIENTATIONS,
            pixels_per_cell=(CELL, CELL), cells_per_block=(2, 2), feature_vector=False, channel_axis=-1,
        )  # fmt: skip
        levels.append(np.asarray(blocks, np.float32).reshape(*blocks.shape[:2], WIDTH))
    lab = rgb2lab(_extended(rgb, rows * CELL, columns * CELL)).reshape(rows, CELL, columns, CELL, 3).mean(axis=(1, 3))
    smooth = np.stack([uniform_filter(lab[..., k] / 30.0, 2) for k in range(3)], axis=-1) - (1.6, 0.0, 0.0)
    colours = np.pad(smooth, ((MARGIN, MARGIN), (MARGIN, MARGIN), (0, 0)), mode="edge")
    return Description((rows, columns), tuple(levels), colours.astype(np.float32))


def _extended(rgb: np.ndarray, height: int, width: int) -> np.ndarray:
    return np.pad(rgb, ((0, height - rgb.shape[0]), (0, width - rgb.shape[1]), (0, 0)), mode="edge")


def patches_at(picture: Description, cells: np.ndarray) -> np.ndarray:
    """float32 (scales, m, 36 WIDTH): the patches at cells `cells` (m, 2), row and column."""
    offsets, patches = STEP * np.arange(BLOCKS), []
    for scale, blocks in zip(SCALES, picture.blocks, strict=True):
        row, column = (cells // scale).T
        cut = blocks[row[:, None, None] + offsets[:, None], column[:, None, None] + offsets]
        patches.append(cut.reshape(len(cells), -1))
    return np.stack(patches)


def surroundings_of(picture: Description, cells: np.ndarray) -> np.ndarray:
    """float32 (m, SURROUNDINGS): colours around cells (m, 2), and their place in the picture with its products."""
    offsets = COLOUR_STEP * np.arange(COLOURS) + MARGIN - COLOUR_STEP * (COLOURS // 2)
    row, column = cells.T
    colours = picture.colours[row[:, None, None] + offsets[:, None], column[:, None, None] + offsets]
    v, u = ((cells + 0.5) / picture.grid - 0.5).T
    position = np.stack([3 * u, 3 * v, 6 * u * u, 6 * v * v, 6 * u * v], axis=1)
    return np.concatenate([colours.reshape(len(cells), -1), position], axis=1).astype(np.float32)


def reduce(patches: np.ndarray, components: int) -> Reduction:
    """Principal components of patches (scales, m, 36 WIDTH)."""
    means, projections = [], []
    for cut in patches:
        mean = cut.mean(axis=0, dtype=float)
        centred = (cut - mean).astype(np.float32)
        if len(cut) > cut.shape[1]:  # whichever matrix is smaller
            values, vectors = np.linalg.eigh(np.cov(centred.T))
        else:
            values, vectors = np.linalg.eigh(centred @ centred.T / max(len(cut) - 1, 1))
            vectors = centred.T @ vectors
            vectors /= np.maximum(np.linalg.norm(vectors, axis=0), 1e-12)
        most = slice(None, -min(components, values.size) - 1, -1)
        spread = np.sqrt(np.maximum(values[most], 1e-9 + 1e-6 * values[-1]))
        # the sign of an eigenvector is arbitrary: its largest entry is positive
        signs = np.sign(np.take_along_axis(vectors[:, most], np.abs(vectors[:, most]).argmax(axis=0)[None], axis=0))
        means.append(mean)
        projections.append(vectors[:, most] * (signs / spread))
    return Reduction(np.asarray(means, np.float32), np.asarray(projections, np.float32))


def anywhere(rgb: np.ndarray, count: int, seed: int) -> np.ndarray:
    """float32 (scales, count, 36 WIDTH): patches at random places, to find components from."""
    picture = described(rgb)
    return patches_at(picture, np.random.default_rng(seed).integers((0, 0), picture.grid, size=(count, 2)))


def draw(
    rgb: np.ndarray, nodes: np.ndarray, reduction: Reduction, seed: int, shifts: int = 2, background: int = 150
) -> Samples:
    """Every node, `shifts` neighbours of each, and `background` cells at least `APART` from every node.

    nodes : float (V, 2), x and y of every node, in cells; those outside the picture are left out.
    """
    rng, picture = np.random.default_rng(seed), described(rgb)
    cells = np.floor(nodes[:, ::-1]).astype(np.int64)
    moved = [cells] + [cells + rng.integers(-1, 2, size=cells.shape) for _ in range(shifts)]
    close = cells[rng.integers(len(cells), size=background)] + rng.integers(-NEAR, NEAR + 1, size=(background, 2))
    other = np.concatenate([close, rng.integers((0, 0), picture.grid, size=(2 * background, 2))])
    other = other[np.abs(other[:, None] - cells).max(axis=2).min(axis=1) >= APART]
    other = rng.permutation(other)[:background]
    chosen = np.concatenate([*moved, other])
    part = np.concatenate([np.tile(np.arange(len(cells)), 1 + shifts), np.full(len(other), len(cells))])
    inside = ((chosen >= 0) & (chosen < picture.grid)).all(axis=1)
    chosen, patches = chosen[inside], patches_at(picture, chosen[inside])
    x = [(cut - mean) @ directions for cut, mean, directions in zip(patches, *reduction, strict=True)]
    return Samples(np.concatenate([*x, surroundings_of(picture, chosen)], axis=1), part[inside], nodes)


def learn(
    samples: Sequence[Samples], types: np.ndarray, parent: np.ndarray, count: int, reduction: Reduction, hidden: int
) -> PartModel:
    """Classifiers of parts and of the `count` types of each arc, from variants with the types (samples, A)."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier

    x, part = np.concatenate([s.x for s in samples]), np.concatenate([s.part for s in samples])
    owner = np.repeat(np.arange(len(samples)), [len(s.part) for s in samples])
    nodes = parent.size
    network = MLPClassifier(
        (hidden,), alpha=DECAY, batch_size=min(BATCH, len(x)), max_iter=EPOCHS, random_state=0
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # so many epochs, and no more, are wanted
        network.fit(x, part)
    directions = []
    for arc in range(nodes - 1):
        for end in (parent[arc + 1], arc + 1):
            rows = np.flatnonzero(part == end)
            labels = types[owner[rows], arc]
            present = np.unique(labels)
            weights = np.zeros((x.shape[1] + 1, count))
            weights[-1] = -FLOOR
            if present.size == 1:
                weights[-1, present] = 0.0
            elif present.size:
                classifier = LogisticRegression(C=TYPES_C, max_iter=100, tol=1e-2).fit(x[rows], labels)
                both = np.column_stack([classifier.coef_, classifier.intercept_])
                # scikit-learn keeps one row for two classes
                weights[:, present] = (both if present.size > 2 else np.concatenate([0.0 * both, both])).T
            directions.append(weights)
    layers = [np.vstack(layer) for layer in zip(network.coefs_, network.intercepts_, strict=True)]
    layers[1] = _with_all(layers[1], network.classes_, nodes + 1)
    return PartModel(*reduction, *(a.astype(np.float32) for a in (*layers, np.concatenate(directions, axis=1))))


def _with_all(layer: np.ndarray, present: np.ndarray, classes: int) -> np.ndarray:
    """Columns for the classes that were never seen, too: they are unlikely everywhere."""
    whole = np.zeros((len(layer), classes))
    whole[-1] = -4.0 * FLOOR
    whole[:, present] = layer
    return whole


def maps_of(rgb: np.ndarray, model: PartModel, nodes: int, types: int) -> dict[str, np.ndarray]:
    """``unary`` (V H W,) float32, ``relations`` (A 2 T H W,) uint8 and ``grid`` (1, 2) of one photograph."""
    picture = described(rgb)
    rows, columns = picture.grid
    cells = np.stack(np.divmod(np.arange(rows * columns), columns), axis=1)
    reduced = []
    for scale, blocks, mean, components in zip(SCALES, picture.blocks, model.means, model.components, strict=True):
        high, wide = -(-rows // scale), -(-columns // scale)
        weights = components.reshape(BLOCKS, BLOCKS, WIDTH, -1)
        total = np.repeat(-(mean @ components)[None], high * wide, axis=0)
        for a in range(BLOCKS):
            for b in range(BLOCKS):
                part = blocks[a * STEP : a * STEP + high, b * STEP : b * STEP + wide]
                total += part.reshape(-1, WIDTH) @ weights[a, b]
        row, column = (cells // scale).T
        reduced.append(total[row * wide + column])
    x = np.concatenate([*reduced, surroundings_of(picture, cells)], axis=1)
    inner = np.maximum(x @ model.hidden[:-1] + model.hidden[-1], 0.0)
    parts = np.maximum(log_softmax(inner @ model.parts[:-1] + model.parts[-1]), -FLOOR)[:, :nodes]
    relations = log_softmax((x @ model.types[:-1] + model.types[-1]).reshape(len(x), -1, types)).reshape(len(x), -1)
    codes = np.rint(np.clip(relations / RELATION_SCALE, 0, CODES)).astype(np.uint8)
    return {
        "unary": np.ascontiguousarray(parts.T).reshape(-1),
        "relations": np.ascontiguousarray(codes.T).reshape(-1),
        "grid": np.array([[rows, columns]], np.int32),
    }


def log_softmax(scores: np.ndarray) -> np.ndarray:
    """log p over the last axis."""
    shifted = scores - scores.max(axis=-1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True)))
