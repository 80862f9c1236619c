"""What lambda is chosen by: the mean loss of held-out blocks, or a measure of the field that evaluate computes.

A structure's record lists its measures, and of which more is better (`Capabilities.rising`, `Capabilities.falling`). A data
set has some of them: chunk F1 takes labels such as B-NP. The loss has a standard error over blocks; a measure of all blocks
together has one over folds only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gapwise.stages.choice.rules import LOSS
from gapwise.stages.problems import capabilities, structure

if TYPE_CHECKING:  # imports numba, which a complete run does not need
    from gapwise.stages.problems.protocol import Problem


class Criterion(NamedTuple):
    """What the chosen lambda has the best value of."""

    name: str = LOSS
    """LOSS, or the name of a measure"""
    rising: bool = False
    """whether more is better"""

    @property
    def is_loss(self) -> bool:
        """Whether it is the loss, which every data set has."""
        return self.name == LOSS

    @property
    def words(self) -> str:
        """For a person."""
        return self.name.replace("_", " ")

    def losses(self, values: np.ndarray) -> np.ndarray:
        """What is least where the criterion is best."""
        return -values if self.rising else values


def measures(name: str) -> dict[str, bool]:
    """The measures of a structure of which one knows whether more is better, and whether it is."""
    part = capabilities(name)
    return {**dict.fromkeys(part.falling, False), **dict.fromkeys(part.rising, True)}


def criterion_of(key: str, name: str, structure_name: str) -> Criterion:
    """The criterion of this name; ValueError, which begins with `key` and lists the names, if the structure has none."""
    if name == LOSS:  # without the structure, which imports numba
        return Criterion()
    known = {LOSS: False, **measures(structure_name)}
    if name not in known:
        raise ValueError(f"{key}: expected one of {', '.join(known)} for the structure {structure_name}, got {name!r}")
    return Criterion(name, known[name])


def refuse_unmeasured(
    key: str, criterion: Criterion, problem: Problem, arrays: Mapping[str, np.ndarray], name: str
) -> None:
    """Raise ValueError, which lists those there are, if evaluate does not compute the criterion on these blocks."""
    if criterion.is_loss:
        return
    measured = structure(name).metrics(problem, arrays, problem.truth)
    if criterion.name not in measured:
        there = ", ".join([LOSS, *(measure for measure in measures(name) if measure in measured)])
        raise ValueError(f"{key}: expected one of {there}, which these data have, got {criterion.name!r}")
