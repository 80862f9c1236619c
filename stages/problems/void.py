"""Superpixels without a true label, as readers and structures treat them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

VOID = 255
"""Their label."""


def silenced(block: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """A block for training: feature rows of void superpixels and of their edges are 0. Without any, the block itself."""
    if not has_void(block["labels"]):
        return dict(block)
    void, edges = np.asarray(block["labels"]).reshape(-1) == VOID, np.asarray(block["edges"]).reshape(-1, 2)
    cut = void[edges].any(axis=1)
    unary = np.where(void[:, None], np.float32(0.0), block["unary"])
    return {**block, "unary": unary, "pairwise": np.where(cut[:, None], np.float32(0.0), block["pairwise"])}


def has_void(labels: np.ndarray) -> bool:
    """Whether a superpixel has no true label."""
    return bool((np.asarray(labels) == VOID).any())
