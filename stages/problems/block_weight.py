"""Weights of blocks (training examples), which every structure with the array ``block_weight`` (n,) > 0 knows.

A weight s_i multiplies the hinge of block i. Its loss and its features are s_i times those of the data, so the local
coordinates, the max-oracle and all certificates are those of any other block. With weights of mean 1 the objective is
(lambda / 2) ||w||^2 plus the weighted mean of the hinges. Predictions do not depend on weights; losses of blocks do.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gapwise.stages.problems.protocol import frozen

NAME = "block_weight"


def block_weights(structure: str, arrays: Mapping[str, np.ndarray], n: int) -> np.ndarray:
    """float64 (n,): the weights among the arrays, 1 without any; ValueError unless all are finite and > 0."""
    weight = np.asarray(arrays.get(NAME, np.ones(n)), np.float64)
    if weight.shape != (n,) or not ((weight > 0) & (weight < np.inf)).all():
        raise ValueError(f"{structure}: {NAME} must hold {n} numbers > 0; leave out blocks of weight 0")
    return frozen(weight)
