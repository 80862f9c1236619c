"""The features of S15's HorseSeg experiment: 649 numbers of a superpixel itself, and Potts terms of weight 1.

S15 names the number 649 and the weight; its columns are not part of the release, so they are read off the numbers here. The
rows of O16 (`features`) have 1,969: a constant, and histograms of 16 positions, 128 colour words and 512 SIFT words of the
superpixel, of its neighbours and of second-order neighbours. 649 is 1 + 8 + 128 + 512: words of the superpixel alone, a
constant, and 8 numbers of position. For these 8 we take the shares of the superpixel's pixels in each quarter of the
picture's height, and of its width, which are the sums of the 4 x 4 position histogram over columns and over rows. As in the
other groups their square roots are taken, so that each group has L2 norm 1. Without pairwise features every edge has the
same Potts term; `dataset.potts` changes its weight.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from gapwise.records import Record
from gapwise.stages.datasets.common.options import NonNegative, one_of
from gapwise.stages.datasets.vision.features import GRID, RINGS
from gapwise.stages.problems.losses import PICTURE_LOSSES

WEIGHT = 1.0
"""Of the Potts terms, where `dataset.potts` is null."""


@dataclass(frozen=True)
class ModelOptions:
    """What readers of horses can choose about the model; None: all columns, learned pairwise weights, balanced classes."""

    features: Annotated[str, one_of("s15")] | None = None
    potts: NonNegative | None = None
    loss: Annotated[str, one_of(*PICTURE_LOSSES)] | None = None

    @property
    def own(self) -> bool:
        """Whether rows describe the superpixel alone."""
        return self.features == "s15"

    def facts(self) -> Record:
        """Facts for the structure: the fixed weight and the loss, if any."""
        weight = WEIGHT if self.own and self.potts is None else self.potts
        facts: Record = {} if weight is None else {"potts": float(weight)}
        return facts if self.loss is None else {**facts, "loss": self.loss}


ALL = ModelOptions()
"""All columns, learned weights."""


def own_columns(unary: np.ndarray, widths: Sequence[int]) -> np.ndarray:
    """The columns of the superpixel alone, float32 (S, 1 + 2 GRID + C + V), of rows (S, 1 + 3 sum(widths)).

    Order: a constant, the quarters of the height from the top, those of the width from the left, colour words, SIFT words.
    `widths` are the bins of one position, colour and SIFT histogram.
    """
    starts = 1 + RINGS * np.concatenate([[0], np.cumsum(widths)[:-1]])
    position, colour, sift = (unary[:, a : a + width] for a, width in zip(starts, widths, strict=True))
    shares = np.square(position, dtype=np.float64).reshape(-1, GRID, GRID)
    down, across = np.sqrt(shares.sum(axis=2)), np.sqrt(shares.sum(axis=1))
    return np.concatenate([unary[:, :1], down, across, colour, sift], axis=1).astype(np.float32)


def own_width(widths: Sequence[int]) -> int:
    """Number of columns of `own_columns`: 649 with 128 colour and 512 SIFT words."""
    return 1 + 2 * GRID + widths[1] + widths[2]


def own_block(unary: np.ndarray, edges: np.ndarray, widths: Sequence[int]) -> dict[str, np.ndarray]:
    """Features of a block: `own_columns`, and 1 for each edge, which `dataset.potts` is the weight of."""
    return {"unary": own_columns(unary, widths), "pairwise": np.ones((len(edges), 1), np.float32)}


def own_names(widths: Sequence[int]) -> Record:
    """Names of the columns."""
    unary = ["constant:1", f"height:{GRID}", f"width:{GRID}", f"colour:{widths[1]}", f"sift:{widths[2]}"]
    return {"unary": unary, "pairwise": "1 constant"}
