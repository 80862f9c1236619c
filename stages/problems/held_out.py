"""Which training blocks a validation split holds out: a function of a block's number and the options alone.

Blocks are drawn within short stretches of consecutive ones, one a stretch and fold, so the shares are exact from the first
stretch on and nobody has to know the number of blocks beforehand. Blocks are drawn one by one: rows that belong together,
such as several pages of one document, may come to both sides. Whoever has such data names validation data of his own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

VALIDATION = "validation"
"""The split that lambda is chosen on."""


@dataclass(frozen=True)
class HeldOut:
    """A rule that holds out a share of all blocks, or a single fold of several.

    Parameters
    ----------
    share : Fraction
        Of the blocks, in (0, 1).
    fold : int, optional
        Which of the 1 / share folds; None: there are no folds.
    seed : int
        Draws the blocks.
    """

    share: Fraction
    fold: int | None = None
    seed: int = 0

    @classmethod
    def of(cls, options: object) -> HeldOut | None:
        """The rule that `dataset.validation` describes in its normal form, `{share, seed}` or `{folds, fold, seed}`; None
        for anything else: no validation, or a reader's own."""
        if not isinstance(options, Mapping):
            return None
        seed = int(options.get("seed", 0))
        if "folds" in options:
            return cls(Fraction(1, int(options["folds"])), int(options["fold"]), seed)
        return cls(Fraction(str(options["share"])), None, seed)

    def __call__(self, block: int) -> bool:
        """Whether training block number `block` belongs to the validation split."""
        stretch = math.floor(block * self.share)
        first, end = math.ceil(stretch / self.share), math.ceil((stretch + 1) / self.share)
        drawn = _drawn(self.seed, stretch, end - first)
        return bool(drawn[0 if self.fold is None else self.fold] == block - first)

    def among(self, blocks: int) -> np.ndarray:
        """Which of the first `blocks` are held out: bool (blocks,)."""
        return np.fromiter((self(block) for block in range(blocks)), bool, blocks)


@lru_cache(maxsize=16)
def _drawn(seed: int, stretch: int, size: int) -> np.ndarray:
    """The positions 0 .. size - 1 of a stretch in random order; fold k holds out entry k."""
    return np.random.default_rng([seed, stretch]).permutation(size)
