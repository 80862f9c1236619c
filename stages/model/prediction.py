"""What a model answers: labels of new input, how sure it is of them, and how much of the input it knows."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from gapwise.stages.datasets import Known, Predicted
from gapwise.stages.model.calibration import Calibration
from gapwise.stages.model.confidence import NBest


@dataclass(frozen=True)
class Prediction(Predicted):
    """Labels of the blocks of new input.

    Attributes
    ----------
    known : Known, optional
        How many attributes of the input the training data have, of how many; None where there are no attributes.
    names : list
        The labels as they were in training: strings, numbers or booleans.
    margins : float64 array, (entries,), optional
        If asked for: of each label how much better the predicted labelling scores than the best with another label there.
    calibration : Calibration, optional
        Of the model, if it has one; `calibration.split` says what it was fitted on.
    n_best : NBest, optional
        If asked for: the best labellings of each block, with their scores.
    """

    names: list[Any] = field(default_factory=list)
    known: Known | None = None
    margins: np.ndarray | None = None
    calibration: Calibration | None = None
    n_best: NBest | None = None

    @property
    def probabilities(self) -> np.ndarray | None:
        """(entries,): the calibrated probability that each predicted label is right; None without margins or calibration."""
        return None if self.margins is None or self.calibration is None else self.calibration(self.margins)

    @property
    def gaps(self) -> np.ndarray | None:
        """(n,): how much better each block's labelling scores than its second best; None without margins."""
        if self.margins is None:
            return None
        return np.array([self.margins[a:b].min(initial=np.inf) for a, b in pairwise(self.label_ptr.tolist())])

    def named(self, i: int) -> list[Any]:
        """Labels of block i as they were in training, or as integers where they have no names."""
        return Predicted.named(self, i)
