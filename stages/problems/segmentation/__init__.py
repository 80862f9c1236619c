"""Binary segmentation of superpixels with a max-flow oracle; its pairwise weights are learned, or one that is fixed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from gapwise.records import Facts
from gapwise.stages.problems.block_weight import NAME
from gapwise.stages.problems.capabilities import Capabilities
from gapwise.stages.problems.segmentation import segmentation
from gapwise.stages.problems.segmentation.fixed import FixedSegmentation, with_fixed_weight
from gapwise.stages.problems.segmentation.images import PIXELS
from gapwise.stages.problems.segmentation.segmentation import Segmentation, confusion, derived, metrics
from gapwise.stages.problems.void import silenced

if TYPE_CHECKING:
    import numpy as np

__all__ = ["CAPABILITIES", "FixedSegmentation", "Segmentation", "build", "derived", "metrics"]

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


def build(arrays: Mapping[str, np.ndarray], meta: Facts) -> Segmentation | FixedSegmentation:
    """`segmentation.build`; with `meta["potts"]` that is the fixed weight of all pairwise features (`fixed`)."""
    problem = segmentation.build(arrays, meta)
    weight = meta.get("potts")
    if weight is not None and NAME in arrays:
        raise ValueError(f"segmentation: {NAME} needs learned weights of edges; leave it out, or dataset.potts")
    return problem if weight is None else with_fixed_weight(problem, float(weight))
