"""Names of losses, which readers, estimators and structures share."""

from __future__ import annotations

PER_SEQUENCE, PER_TOKEN = LOSSES = ("per_sequence", "per_token")
"""Losses of sequences: what the costs of a sequence's tokens are divided by (`chain.losses`). The first is the papers'."""
BALANCED = "balanced"
"""Label weights inverse to how often a label occurs: in training, or for pictures in each of them."""
PER_IMAGE, PER_PIXEL = "per_image", "per_pixel"
PICTURE_LOSSES = (BALANCED, PER_IMAGE, PER_PIXEL)
"""Losses of pictures (`segmentation.images.costs_by`): the first is the usual loss of two classes, the second of more."""
