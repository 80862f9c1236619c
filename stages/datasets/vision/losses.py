"""`dataset.loss` of pictures."""

from __future__ import annotations

from gapwise.stages.datasets import OptionError
from gapwise.stages.problems.loss_names import PICTURE_LOSSES


def refuse_loss(loss: object, usual: str) -> None:
    """Raise OptionError, which lists the choices, unless `loss` is one, or None for the `usual` one."""
    if loss not in (None, *PICTURE_LOSSES):
        raise OptionError(f"dataset.loss: expected {', '.join(PICTURE_LOSSES)}, or null for {usual}, got {loss!r}")
