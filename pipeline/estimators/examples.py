"""The examples of a fit in this process, as an `Oracle` that the structure `python_oracle` calls."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gapwise.pipeline.estimators.data import Samples
from gapwise.pipeline.estimators.structured_model import StructuredModel
from gapwise.stages.problems.answers import signed
from gapwise.stages.problems.oracle import Oracle


class Lent(NamedTuple):
    """A user's model and one part of the data, for as long as a fit lasts."""

    model: StructuredModel
    x: Samples
    y: Samples


LENT: dict[int, dict[str, Lent]] = {}
"""By the number of the fit, then by split; objects of `Examples` outlive the fit and hold only the number."""


class Examples(Oracle):
    """The adapter from `StructuredModel`, which describes one example (x, y), to `Oracle`, which the solver calls."""

    def __init__(self, split: str, number: int) -> None:
        self.number, self.split = number, split
        model = self._lent.model
        self.d, self.labels = model.d, model.labels
        self.lower, self.upper = np.asarray(model.lower), np.asarray(model.upper)
        self.approximate = bool(model.approximate)

    @property
    def _lent(self) -> Lent:
        return LENT[self.number][self.split]

    @classmethod
    def files(cls, **arguments: object) -> Sequence[str | Path]:
        """None: the data are in memory."""
        return ()

    def __len__(self) -> int:
        return len(self._lent.x)

    def truth(self, i: int) -> np.ndarray:
        return signed(self._lent.y[i])

    def features(self, i: int, y: np.ndarray) -> npt.ArrayLike:
        lent = self._lent
        return lent.model.features(lent.x[i], y)

    def loss(self, i: int, y: np.ndarray) -> float:
        lent = self._lent
        return lent.model.loss(signed(lent.y[i]), y)

    def max_oracle(self, i: int, theta: np.ndarray) -> npt.ArrayLike:
        lent = self._lent
        return lent.model.max_oracle(lent.x[i], signed(lent.y[i]), theta)

    def decode(self, i: int, theta: np.ndarray) -> npt.ArrayLike:
        lent = self._lent
        return lent.model.decode(lent.x[i], theta)

    def least_loss(self, i: int) -> float:
        lent = self._lent
        return lent.model.least_loss(lent.x[i], signed(lent.y[i]))

    def coordinates(self, i: int) -> npt.ArrayLike | None:
        lent = self._lent
        return lent.model.coordinates(lent.x[i])
