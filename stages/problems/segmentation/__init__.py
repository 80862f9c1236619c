"""Binary segmentation of superpixels with a max-flow oracle."""

from stages.problems.segmentation.segmentation import Segmentation, build, confusion, derived, metrics

__all__ = ["Segmentation", "build", "confusion", "derived", "metrics"]
