"""Features of superpixels and of pairs of neighbours (O16 appendix, HorseSeg): histograms of positions, colour words and
SIFT words of a superpixel, its neighbours and its second-order neighbours, and chi-square similarities of neighbours'
histograms. Words and descriptors have 8 bits per entry, so distances are exact integers, and the nearest word does not
depend on the number of threads or the order of sums."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gapwise.stages.datasets import DataError
from gapwise.stages.datasets.vision.superpixels import to_lab

if TYPE_CHECKING:
    import cv2

GRID = 4
"""Positions are counted on a GRID x GRID raster of the picture."""

SIFT_STEP = 4
"""Pixels between dense SIFT keypoints."""

SIFT_SIZES = (2.5, 5.0)
"""Diameters of the keypoints (pixels): descriptor windows of about 15 and 30 pixels."""

ETAS = 2.0 ** np.arange(-5, 6)
"""exp(-eta chi^2) for each of these."""

ROWS = 1024
"""Rows that `nearest` compares with all words at a time: their products stay in the processor's cache."""

PAIRS = 16
"""Pairs whose chi^2 are computed at a time: their rows stay in the processor's cache."""

SMALLEST = np.nextafter(0.0, 1.0)
"""Divides 0 into 0."""

RINGS = 3
"""Histograms over: own pixels, neighbours, second-order neighbours."""


class Words(NamedTuple):
    """The two vocabularies."""

    colour: np.ndarray
    """uint8 (C, 3), centres in 8-bit CIELAB."""
    sift: np.ndarray
    """uint8 (V, 128), centres of SIFT descriptors."""

    @property
    def widths(self) -> tuple[int, int, int]:
        """Bins of one position, colour and SIFT histogram."""
        return GRID * GRID, len(self.colour), len(self.sift)


def keypoints(height: int, width: int) -> list[tuple[float, float, float]]:
    """(x, y, diameter) of the keypoints of a picture, in the order of their descriptors."""
    rows, columns = np.arange(SIFT_STEP // 2, height, SIFT_STEP), np.arange(SIFT_STEP // 2, width, SIFT_STEP)
    return [(float(x), float(y), size) for size in SIFT_SIZES for y in rows for x in columns]


def dense_sift(rgb: np.ndarray, chosen: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """SIFT descriptors on a regular raster, upright, at two scales.

    Parameters
    ----------
    rgb : uint8 (H, W, 3).   chosen : int (P,), which of the `keypoints`; all by default. A descriptor does not depend on
    which others are computed.

    Returns
    -------
    position : int64 (P,), flat pixel index of each keypoint.   descriptor : uint8 (P, 128).
    """
    import cv2

    cv2.setNumThreads(1)
    grey = cv2.cvtColor(np.ascontiguousarray(rgb), cv2.COLOR_RGB2GRAY)
    raster, position = _raster(*grey.shape)
    if chosen is not None:
        raster, position = tuple(raster[k] for k in chosen), position[chosen]
    points, descriptor = cv2.SIFT.create().compute(grey, raster)
    if len(points) != len(raster):  # OpenCV left some out
        position = np.array([round(p.pt[1]) * grey.shape[1] + round(p.pt[0]) for p in points], dtype=np.int64)
    return position, descriptor.astype(np.uint8)


@lru_cache(maxsize=8)
def _raster(height: int, width: int) -> tuple[tuple[cv2.KeyPoint, ...], np.ndarray]:
    """The `keypoints` as OpenCV takes them, which reads them only, and the flat pixel index of each: int64 (P,)."""
    import cv2

    points = keypoints(height, width)
    position = np.array([round(y) * width + round(x) for x, y, _ in points], dtype=np.int64)
    return tuple(cv2.KeyPoint(x, y, size, 0.0) for x, y, size in points), position


def nearest(values: np.ndarray, words: np.ndarray) -> np.ndarray:
    """Index of the nearest word (the first of equals) for each row of `values`: uint8 (P, k), uint8 (W, k) -> int64
    (P,). All products and sums are integers below 2^24, hence exact in f32."""
    rows, centres = values.astype(np.float32), words.astype(np.float32)
    half = 0.5 * (centres * centres).sum(axis=1)
    words_of, products = np.empty(len(rows), dtype=np.int64), np.empty((ROWS, len(centres)), dtype=np.float32)
    for start in range(0, len(rows), ROWS):
        part = rows[start : start + ROWS]
        scores = np.matmul(part, centres.T, out=products[: len(part)])
        scores -= half
        np.argmax(scores, axis=1, out=words_of[start : start + ROWS])
    return words_of


def learn_words(samples: np.ndarray, count: int, *, seed: int, option: str) -> np.ndarray:
    """k-means centres of the sampled 8-bit rows, rounded to 8 bits: uint8 (N, k) -> uint8 (count, k).

    Raises
    ------
    DataError : fewer samples than words.
    """
    from sklearn.cluster import MiniBatchKMeans
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    if len(samples) < count:
        raise DataError(
            f"dataset.{option}={count}: the training images give only {len(samples)} samples; ask for fewer words "
            "or use more training images"
        )
    with threadpool_limits(limits=1):  # sums of several threads would differ in the last bit
        means = MiniBatchKMeans(
            n_clusters=count, init="k-means++", random_state=seed, n_init=1, batch_size=4096, max_iter=20,
            max_no_improvement=10, compute_labels=False,
        )  # fmt: skip
        means.fit(samples.astype(np.float32))
    centres = np.clip(np.rint(means.cluster_centers_), 0, 255).astype(np.uint8)
    return centres[np.lexsort(centres.T[::-1])]


def rings(regions: int, edges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which regions are neighbours, and which are exactly two steps away: two float64 (S, S) of zeros and ones."""
    first = np.zeros((regions, regions))
    first[edges[:, 0], edges[:, 1]] = first[edges[:, 1], edges[:, 0]] = 1.0
    second = ((first @ first > 0) & (first == 0)).astype(np.float64)
    np.fill_diagonal(second, 0.0)
    return first, second


def unary_features(
    rgb: np.ndarray,
    regions: np.ndarray,
    edges: np.ndarray,
    words: Words,
) -> np.ndarray:
    """Feature rows of the superpixels: a constant, then 3 position, 3 colour-word and 3 SIFT-word histograms, each over the
    own pixels, the neighbours' and the second-order neighbours'. Every histogram is the square root of shares, so
    it has L2 norm 1 (0 if there is nothing to count).

    Parameters
    ----------
    rgb : uint8 (H, W, 3).   regions : (H, W) ids 0..S-1.   edges : (E, 2).   words : the vocabularies.

    Returns
    -------
    float32 (S, 1 + 3 (16 + C + V)): 1,969 columns with 128 colour words and 512 SIFT words.
    """
    height, width = regions.shape
    owner = regions.ravel().astype(np.int64)
    size = int(owner.max()) + 1
    cell_row = np.arange(height) * GRID // height
    cell_column = np.arange(width) * GRID // width
    cell = (cell_row[:, None] * GRID + cell_column[None, :]).ravel()
    colour = nearest(to_lab(rgb).reshape(-1, 3), words.colour)
    position, descriptor = dense_sift(rgb)
    word = nearest(descriptor, words.sift)
    first, second = rings(size, edges)
    columns = [np.ones((size, 1))]
    for of, value, bins in zip((owner, owner, owner[position]), (cell, colour, word), words.widths, strict=True):
        own = np.bincount(of * bins + value, minlength=size * bins).reshape(size, bins).astype(np.float64)
        for counts in (own, first @ own, second @ own):  # whole numbers: exact in any order
            total = counts.sum(axis=1, keepdims=True)
            columns.append(np.sqrt(counts / np.maximum(total, 1.0)))
    return np.concatenate(columns, axis=1).astype(np.float32)


def pairwise_features(unary: np.ndarray, edges: np.ndarray, widths: Sequence[int]) -> np.ndarray:
    """A constant and exp(-eta chi^2) of each of the nine histograms of two neighbours, for the eleven eta of `ETAS`.

    Parameters
    ----------
    unary : (S, 1 + 3 sum(widths)), rows as `unary_features` makes them; squared here to histograms that sum to 1.
    edges : (E, 2).   widths : bins of one position, colour and SIFT histogram.

    Returns
    -------
    float32 (E, 100), all in [0, 1]; histogram by histogram, eta rising. chi^2 = sum (a - b)^2 / (a + b) / 2.
    """
    histogram = np.square(unary, dtype=np.float64)
    ends = np.cumsum([1, *np.repeat(widths, RINGS)])
    distance = np.empty((len(edges), ends.size - 1))
    for start in range(0, len(edges), PAIRS):
        first, second = edges[start : start + PAIRS].T
        a, b = histogram[first], histogram[second]
        both = a + b
        terms = np.square(np.subtract(a, b, out=a), out=a)  # 0 where both are
        np.maximum(both, SMALLEST, out=both)
        np.divide(terms, both, out=terms)
        for number, (begin, end) in enumerate(itertools.pairwise(ends)):
            np.add.reduce(terms[:, begin:end], axis=1, out=distance[start : start + PAIRS, number])
    similar = np.exp(-0.5 * distance[:, :, None] * ETAS).reshape(len(edges), distance.shape[1] * ETAS.size)
    return np.concatenate([np.ones((len(edges), 1)), similar], axis=1).astype(np.float32)


def own_columns(unary: np.ndarray, widths: Sequence[int]) -> np.ndarray:
    """The features of S15's HorseSeg experiment: 649 numbers of a superpixel itself.

    S15 names the number 649; its columns are not part of the release, so they are read off the numbers here. The rows of O16
    have 1,969: a constant, and histograms of 16 positions, 128 colour words and 512 SIFT words of the superpixel, of its
    neighbours and of second-order neighbours. 649 is 1 + 8 + 128 + 512: a constant, 8 numbers of position, and the words of
    the superpixel alone. For these 8 we take the shares of the superpixel's pixels in each quarter of the picture's height,
    and of its width, which are the sums of the 4 x 4 position histogram over columns and over rows. As in the other groups
    their square roots are taken, so that each group has L2 norm 1.

    Parameters
    ----------
    unary : (S, 1 + 3 sum(widths)).   widths : bins of one position, colour and SIFT histogram.

    Returns
    -------
    float32 (S, 1 + 2 GRID + C + V): a constant, the quarters of the height from the top, those of the width from the left,
    colour words, SIFT words.
    """
    starts = 1 + RINGS * np.concatenate([[0], np.cumsum(widths)[:-1]])
    position, colour, sift = (unary[:, a : a + width] for a, width in zip(starts, widths, strict=True))
    shares = np.square(position, dtype=np.float64).reshape(-1, GRID, GRID)
    down, across = np.sqrt(shares.sum(axis=2)), np.sqrt(shares.sum(axis=1))
    return np.concatenate([unary[:, :1], down, across, colour, sift], axis=1).astype(np.float32)


def features_of(unary: np.ndarray, edges: np.ndarray, widths: Sequence[int], own: bool) -> dict[str, np.ndarray]:
    """``unary`` and ``pairwise`` of a block: all rows; or `own_columns`, and 1 for each edge, times `dataset.potts`."""
    if own:
        return {"unary": own_columns(unary, widths), "pairwise": np.ones((len(edges), 1), np.float32)}
    return {"unary": unary, "pairwise": pairwise_features(unary, edges, widths)}


def sizes_of(widths: Sequence[int], own: bool) -> dict[str, int]:
    """Numbers of columns of `features_of`: 1,969 and 100, or 649 and 1, with 128 colour and 512 SIFT words."""
    if own:
        return {"d_unary": 1 + 2 * GRID + widths[1] + widths[2], "d_pairwise": 1}
    return {"d_unary": 1 + RINGS * sum(widths), "d_pairwise": 1 + RINGS * len(widths) * ETAS.size}
