"""Segmentation with many labels and Potts terms: an approximate max-oracle with a bound."""

from gapwise.stages.problems.potts.potts import Potts, build, confusion, derived, metrics
from gapwise.stages.problems.void import silenced as for_training

__all__ = ["Potts", "build", "confusion", "derived", "for_training", "metrics"]
