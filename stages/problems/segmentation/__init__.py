"""Binary segmentation of superpixels with a max-flow oracle."""

from gapwise.stages.problems.capabilities import Capabilities
from gapwise.stages.problems.segmentation.images import PIXELS
from gapwise.stages.problems.segmentation.segmentation import Segmentation, build, confusion, derived, metrics
from gapwise.stages.problems.void import silenced

__all__ = ["CAPABILITIES", "Segmentation", "build", "derived", "metrics"]

CAPABILITIES = Capabilities(
    margins=True,
    whole=("block_weight",),
    features=("unary", "pairwise"),
    mapped=("unary", "pairwise", "gram"),
    single=True,
    unit=PIXELS,
    confusion=confusion,
    for_training=silenced,
    rising=("pixel_accuracy", "foreground_iou", "foreground_iou_pooled"),
)
