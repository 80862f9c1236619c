"""Predict: decoded labels of blocks at given weights, spread like all work on blocks."""

from __future__ import annotations

import numpy as np
from numba import njit

from gapwise.stages.problems.compiled import driver
from gapwise.stages.problems.kernel_cache import Kernel
from gapwise.stages.problems.parallel import HERE, Spread
from gapwise.stages.problems.protocol import JIT, Problem, frozen
from gapwise.stages.problems.simd import one_type


@driver
def predict_driver(fingerprint: str) -> Kernel:
    """`predict(P, w, blocks, given, labels, losses)`: decoded labels of `blocks`, flat, and their task losses; if they are
    `given`, the losses of these."""

    @njit(cache=True, **JIT)
    def predict(P, w, blocks, given, labels, losses):
        fingerprint  # noqa: B018
        w = one_type(w)
        scratch = P.scratch()
        end = 0
        for k in range(blocks.size):
            i = blocks[k]
            start, end = end, end + P.label_ptr[i + 1] - P.label_ptr[i]
            y = labels[start:end]
            if not given:
                theta = np.empty(P.local_ptr[i + 1] - P.local_ptr[i])
                P.scores(i, w, theta)
                P.decode(i, theta, y, scratch)
            losses[k] = P.loss(i, y)

    return predict


def predictions(problem: Problem, w: np.ndarray, blocks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Decoded labels of `blocks`, flat, and their task losses at weights w (d,)."""
    size = int(np.sum(problem.label_ptr[blocks + 1] - problem.label_ptr[blocks]))
    labels, losses = np.empty(size, problem.truth.dtype), np.empty(blocks.size)
    predict_driver(problem)(problem, frozen(w), blocks, False, labels, losses)
    return labels, losses


def losses_of(problem: Problem, labels: np.ndarray) -> np.ndarray:
    """(n,): task losses of given labels, flat."""
    w, losses = frozen(np.zeros(problem.d)), np.empty(problem.n)
    predict_driver(problem)(problem, w, np.arange(problem.n), True, np.array(labels), losses)
    return losses


def predict(
    problem: Problem, w: np.ndarray, spread: Spread = HERE, split: str = "train"
) -> tuple[np.ndarray, np.ndarray]:
    """Decoded labels (flat, like truth) and task losses (n,) of all blocks of a split at weights w (d,)."""
    parts = spread.blocks(predictions, problem, w, range(problem.n), split)
    return np.concatenate([labels for labels, _ in parts]), np.concatenate([losses for _, losses in parts])
