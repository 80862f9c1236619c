"""Options that readers of pictures share: how pictures become features, and what is asked of the structure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from gapwise.records import Record
from gapwise.stages.datasets.common.options import NonNegative, Whole, one_of
from gapwise.stages.problems.losses import PICTURE_LOSSES

OWN_WEIGHT = 1.0
"""Of the Potts terms of features of a superpixel alone, where `dataset.potts` is null."""
Loss = Annotated[str, one_of(*PICTURE_LOSSES)]


@dataclass(frozen=True)
class FeatureOptions:
    """How pictures become features: the options of all picture readers."""

    superpixels: Whole = 147
    """Approximate number of superpixels per image."""
    colour_words: Whole = 128
    sift_words: Whole = 512
    colour_samples: Whole = 300
    """Pixels of each training image that the colour vocabulary is learned from."""
    sift_samples: Whole = 250
    """Descriptors of each training image that the SIFT vocabulary is learned from."""
    pairwise: bool = True
    """False: no edges, a model with only the same unary features, for comparison."""


@dataclass(frozen=True)
class ModelOptions:
    """What readers of horses can choose about the model; None: all columns, learned pairwise weights, balanced classes."""

    features: Annotated[str, one_of("s15")] | None = None
    potts: NonNegative | None = None
    loss: Loss | None = None

    @property
    def own(self) -> bool:
        """Whether rows describe the superpixel alone."""
        return self.features == "s15"

    def facts(self) -> Record:
        """Facts for the structure: the fixed weight and the loss, if any."""
        weight = OWN_WEIGHT if self.own and self.potts is None else self.potts
        facts: Record = {} if weight is None else {"potts": float(weight)}
        return facts if self.loss is None else {**facts, "loss": self.loss}


@dataclass(frozen=True)
class PottsOptions:
    """Options of the structure `potts`, which its problems find among the facts of the features."""

    potts: NonNegative | None = None
    """Fixed weight of all pairwise features, which allows no paths; None: learned, >= 0."""
    oracle: Annotated[str, one_of("trws", "expansion", "trws_expansion")] = "trws_expansion"
    sweeps: Whole = 150
    slack: NonNegative = 5e-4
    loss: Loss | None = None
    """None: per_image for more than two classes, else balanced."""

    def facts(self) -> Record:
        """Facts for the structure."""
        return {name: value for name, value in vars(self).items() if name != "loss" or value is not None}
