"""Confusion matrices: how much of each true label is predicted as which label."""

from __future__ import annotations

import numpy as np


def counted(truth: np.ndarray, predicted: np.ndarray, labels: int, weight: np.ndarray | None = None) -> np.ndarray:
    """float64 (labels, labels): entries, or the sum of their `weight`, by (truth, prediction); all arguments are flat."""
    cell = truth.astype(np.int64) * labels + predicted.astype(np.int64)
    return np.bincount(cell, weight, minlength=labels * labels).astype(float).reshape(labels, labels)
