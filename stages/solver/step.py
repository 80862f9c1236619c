"""The names under which other modules import `stages.solver.box`; the step itself is `stages.solver.block.step`."""

from gapwise.stages.solver.box import clip, clip_into

__all__ = ["clip", "clip_into"]
