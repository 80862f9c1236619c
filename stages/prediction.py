"""What a model answers: labels of new input, and how much of the input the model knows."""

from __future__ import annotations

from dataclasses import dataclass

from gapwise.stages.datasets import Known
from gapwise.stages.datasets.inputs import Predicted


@dataclass(frozen=True)
class Prediction(Predicted):
    """Labels of the blocks of new input.

    Attributes
    ----------
    known : Known, optional
        How many attributes of the input the training data have, of how many; None where there are no attributes.
    integers : bool
        Whether `names` are numbers that an estimator had as integers; `named` gives them as such.
    """

    known: Known | None = None
    integers: bool = False

    def named(self, i: int) -> list[str] | list[int]:
        """Labels of block i by name, or as integers where labels have no names or were integers in training."""
        names = Predicted.named(self, i)
        return [int(name) for name in names] if self.integers else names
