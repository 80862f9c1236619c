"""Names of losses, which readers, estimators and structures share."""

from __future__ import annotations

PER_SEQUENCE, PER_TOKEN = LOSSES = ("per_sequence", "per_token")
"""Losses of sequences: what the costs of a sequence's tokens are divided by (`chain.losses`). The first is the papers'."""
BALANCED = "balanced"
"""Label weights inverse to how often a label occurs: in training, or for pictures in each of them."""
PER_IMAGE = "per_image"
PICTURE_LOSSES = (BALANCED, PER_IMAGE)
"""Losses of pictures (`segmentation.images.costs_by`): the first is that of two classes, the second that of more."""
