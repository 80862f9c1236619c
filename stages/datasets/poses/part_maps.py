"""Score maps of parts and of relation types from photographs, by linear classifiers of gradient patches.

A photograph is described by histograms of oriented gradients (Dalal and Triggs, CVPR 2005; scikit-image): cells of `CELL`
pixels, blocks of 2 x 2 cells. The patch at a cell is a square of 6 x 6 blocks around it, 48 pixels wide, reduced by
principal components; its colour and its place in the picture are added, with their products. Two kinds of classifiers,
multinomial logistic regressions, read this (Chen and Yuille, NIPS 2014, have a convolutional network in their stead):

* parts: U_v = log p(part v | patch) over all parts and background;
* types: for every arc and either end, R_t = log p(type t | patch at that end, which is known to be its part).

Logarithms are cut off at -`FLOOR`. Maps of a training image come from classifiers that have not seen it: images are divided
into folds, and each fold's maps are made by what is learned on the others. Test images use what is learned on all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

VERSION = 1
"""Of the maps; a change of them is a change of the key."""

CELL = 4
BLOCKS = 6
"""Blocks along a side of a patch."""
STEP = 2
"""Cells from one block to the next."""
MARGIN = BLOCKS * STEP // 2
ORIENTATIONS = 9
WIDTH = 4 * ORIENTATIONS
"""Numbers of a block."""
SURROUNDINGS = 14
"""Numbers for place and colour."""
FLOOR = 8.0
PARTS_C, TYPES_C = 0.01, 0.003
"""Inverse strengths of regularization, as scikit-learn has them."""
CODES = 255
"""Relation maps are stored as uint8: 0 for 0, 255 for -`FLOOR`."""
RELATION_SCALE = -FLOOR / CODES


class PartModel(NamedTuple):
    """Linear classifiers of patches; scores are patch @ directions + surroundings @ more + offsets."""

    directions: np.ndarray
    """float32 (36 WIDTH, K): parts, background, then T types of each arc and end"""
    more: np.ndarray
    """float32 (SURROUNDINGS, K)"""
    offsets: np.ndarray
    """float32 (K,)"""


class Samples(NamedTuple):
    """Patches of one image that classifiers learn from."""

    patches: np.ndarray
    """float32 (m, 36 WIDTH)"""
    surroundings: np.ndarray
    """float32 (m, SURROUNDINGS)"""
    part: np.ndarray
    """int64 (m,): the node, or the number of nodes for background"""


def grid_of(shape: Sequence[int]) -> tuple[int, int]:
    """Rows and columns of the grid over a picture of (height, width) pixels."""
    return -(-shape[0] // CELL), -(-shape[1] // CELL)


def described(rgb: np.ndarray) -> np.ndarray:
    """float32 (rows + 2 MARGIN, columns + 2 MARGIN, WIDTH): blocks around every cell of the grid; borders are repeated."""
    from skimage.feature import hog

    rows, columns = grid_of(rgb.shape)
    low, high = MARGIN * CELL, (MARGIN + 1) * CELL
    padded = np.pad(
        rgb,
        ((low, high + rows * CELL - rgb.shape[0]), (low, high + columns * CELL - rgb.shape[1]), (0, 0)),
        mode="edge",
    )
    blocks = hog(
        padded, orientations=ORIENTATIONS, pixels_per_cell=(CELL, CELL), cells_per_block=(2, 2), feature_vector=False,
        channel_axis=-1,
    )  # fmt: skip
    return np.asarray(blocks, np.float32).reshape(*blocks.shape[:2], WIDTH)


def patches_at(blocks: np.ndarray, places: np.ndarray) -> np.ndarray:
    """float32 (m, 36 WIDTH): the patches at cells `places` (m, 2), row and column."""
    offsets = STEP * np.arange(BLOCKS)
    rows = places[:, 0, None, None] + offsets[:, None]
    columns = places[:, 1, None, None] + offsets
    return np.asarray(blocks[rows, columns].reshape(len(places), -1))


def surroundings_of(rgb: np.ndarray, places: np.ndarray) -> np.ndarray:
    """float32 (m, SURROUNDINGS): place in the picture and mean Lab colour of 9 x 9 pixels at cells (m, 2), and products."""
    from scipy.ndimage import uniform_filter
    from skimage.color import rgb2lab

    lab = rgb2lab(rgb)
    smooth = np.stack([uniform_filter(lab[..., k], 9) for k in range(3)], axis=-1)
    middle = np.minimum(places * CELL + CELL // 2, np.array(rgb.shape[:2]) - 1)
    u, v = ((places * CELL + CELL / 2) / rgb.shape[:2] - 0.5).T
    a, b, c = (smooth[middle[:, 0], middle[:, 1]] / 30.0 - (1.6, 0.0, 0.0)).T
    columns = (3 * u, 3 * v, 6 * u * u, 6 * v * v, 6 * u * v, a, b, c, a * a, b * b, c * c, a * b, a * c, b * c)
    return np.stack(columns, axis=1).astype(np.float32)


def draw(rgb: np.ndarray, places: np.ndarray, seed: int, shifts: int = 2, background: int = 120) -> Samples:
    """Patches of every node, `shifts` neighbours of each, and of `background` cells at least four from every node.

    places : int (V, 2), row and column of every node.
    """
    rng, blocks = np.random.default_rng(seed), described(rgb)
    rows, columns = grid_of(rgb.shape)
    moved = [places] + [places + rng.integers(-1, 2, size=places.shape) for _ in range(shifts)]
    anywhere = np.stack([rng.integers(rows, size=3 * background), rng.integers(columns, size=3 * background)], axis=1)
    far = np.abs(anywhere[:, None] - places).max(axis=2).min(axis=1) >= 4
    chosen = np.concatenate([*moved, anywhere[far][:background]])
    chosen = np.clip(chosen, 0, (rows - 1, columns - 1))
    part = np.concatenate(
        [np.tile(np.arange(len(places)), 1 + shifts), np.full(min(background, far.sum()), len(places))]
    )
    return Samples(patches_at(blocks, chosen), surroundings_of(rgb, chosen), part)


def learn(samples: Sequence[Samples], types: np.ndarray, parent: np.ndarray, count: int, components: int) -> PartModel:
    """Classifiers of parts and of the `count` types of each arc, from images with the types (images, A)."""
    from sklearn.decomposition import PCA
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    patches = np.concatenate([s.patches for s in samples])
    part = np.concatenate([s.part for s in samples])
    image = np.repeat(np.arange(len(samples)), [len(s.part) for s in samples])
    solver = "covariance_eigh" if len(patches) > patches.shape[1] else "full"  # whichever matrix is smaller
    reduce = PCA(min(components, *patches.shape), svd_solver=solver).fit(patches)
    scale = StandardScaler().fit(reduce.transform(patches))
    surroundings = np.concatenate([s.surroundings for s in samples])
    x = np.concatenate([scale.transform(reduce.transform(patches)), surroundings], axis=1)
    own = reduce.n_components_

    directions, offsets = [], []

    def classify(rows: np.ndarray, labels: np.ndarray, classes: int, strength: float) -> None:
        present = np.unique(labels)
        coefficients, intercepts = np.zeros((classes, x.shape[1])), np.full(classes, -FLOOR)
        if present.size == 1:
            intercepts[present] = 0.0
        else:
            found = LogisticRegression(C=strength, max_iter=300, tol=1e-3).fit(x[rows], labels)
            if present.size == 2:  # scikit-learn keeps one row for two classes
                coefficients[present[1]], intercepts[present] = found.coef_[0], (0.0, found.intercept_[0])
            else:
                coefficients[present], intercepts[present] = found.coef_, found.intercept_
        directions.append(coefficients)
        offsets.append(intercepts)

    nodes = parent.size
    classify(np.arange(len(x)), part, nodes + 1, PARTS_C)
    for arc in range(nodes - 1):
        for end in (parent[arc + 1], arc + 1):
            rows = np.flatnonzero(part == end)
            classify(rows, types[image[rows], arc], count, TYPES_C)
    all_directions = np.concatenate(directions)
    of_patch = all_directions[:, :own]
    joined = of_patch @ (reduce.components_ / scale.scale_[:, None])
    constant = np.concatenate(offsets) - joined @ reduce.mean_ - of_patch @ (scale.mean_ / scale.scale_)
    return PartModel(*(part.astype(np.float32) for part in (joined.T, all_directions[:, own:].T, constant)))


def maps_of(rgb: np.ndarray, model: PartModel, nodes: int, types: int) -> dict[str, np.ndarray]:
    """``unary`` (V H W,) float32, ``relations`` (A 2 T H W,) uint8 and ``grid`` (1, 2) of one photograph."""
    blocks, (rows, columns) = described(rgb), grid_of(rgb.shape)
    places = np.stack(np.divmod(np.arange(rows * columns), columns), axis=1)
    scores = surroundings_of(rgb, places) @ model.more + model.offsets
    weights = model.directions.reshape(BLOCKS, BLOCKS, WIDTH, -1)
    for a in range(BLOCKS):
        for b in range(BLOCKS):
            part = blocks[a * STEP : a * STEP + rows, b * STEP : b * STEP + columns]
            scores += part.reshape(-1, WIDTH) @ weights[a, b]
    parts = np.maximum(log_softmax(scores[:, : nodes + 1]), -FLOOR)[:, :nodes]
    relations = log_softmax(scores[:, nodes + 1 :].reshape(len(scores), -1, types)).reshape(len(scores), -1)
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


def stored(model: PartModel) -> dict[str, np.ndarray]:
    """The model as arrays of a feature store."""
    return {f"part_{name}": array for name, array in model._asdict().items()}


def restored(shared: Mapping[str, Any]) -> PartModel:
    """Inverse of `stored`."""
    return PartModel(*(np.asarray(shared[f"part_{name}"]) for name in PartModel._fields))
