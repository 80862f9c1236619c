"""Losses whose unit is a mean over the training blocks, such as the labelled pixels of a picture.

The structure's record (`Capabilities.unit`) says of what. Whoever makes training blocks adds the mean to their facts, where
`build` reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from gapwise.records import Facts, Record

if TYPE_CHECKING:
    import numpy as np


class LossUnit(NamedTuple):
    """What one loss of a structure is counted in."""

    loss: str
    """the loss, as the fact ``loss`` names it"""
    fact: str
    """the fact that holds the mean"""
    total: Callable[[Facts], float]
    """total(arrays): the sum over one training block, or over several in a row"""

    def added(self, facts: Record, total: float, blocks: int) -> Record:
        """The facts, with the mean if the loss is this one."""
        return {**facts, self.fact: total / blocks} if facts.get("loss") == self.loss and blocks else facts


def with_unit(unit: LossUnit | None, facts: Record, arrays: Mapping[str, np.ndarray]) -> Record:
    """The facts of the training blocks in `arrays`, with the mean that their loss needs, if it needs any."""
    return facts if unit is None else unit.added(facts, unit.total(arrays), arrays["labels_ptr"].size - 1)
