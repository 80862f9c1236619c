"""Counts of right and wrong labels: shares of none, and confusion matrices."""

from __future__ import annotations

import numpy as np


def share(wrong: np.ndarray) -> float:
    """Share of what is wrong, bool of any shape; of nothing it is 0, because nothing is wrong there."""
    return float(np.mean(wrong)) if wrong.size else 0.0


def counted(truth: np.ndarray, predicted: np.ndarray, labels: int, weight: np.ndarray | None = None) -> np.ndarray:
    """float64 (labels, labels): entries, or the sum of their `weight`, by (truth, prediction); all arguments are flat."""
    cell = truth.astype(np.int64) * labels + predicted.astype(np.int64)
    return np.bincount(cell, weight, minlength=labels * labels).astype(float).reshape(labels, labels)
