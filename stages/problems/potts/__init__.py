"""Segmentation with many labels and Potts terms: an approximate max-oracle with a bound."""

from gapwise.stages.problems.capabilities import Capabilities
from gapwise.stages.problems.potts.potts import Potts, build, confusion, derived, metrics
from gapwise.stages.problems.segmentation.images import PIXELS
from gapwise.stages.problems.void import silenced

__all__ = ["CAPABILITIES", "Potts", "build", "derived", "metrics"]

CAPABILITIES = Capabilities(
    features=("unary", "pairwise"),
    mapped=("unary", "pairwise", "gram"),
    single=True,
    counts=("classes",),
    unit=PIXELS,
    confusion=confusion,
    for_training=silenced,
    rising=("pixel_accuracy", "class_accuracy"),
)
