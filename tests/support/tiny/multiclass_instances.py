"""Multiclass: plain, with bounds, and over sparse rows."""

from __future__ import annotations

import numpy as np

from gapwise.stages.problems import build
from gapwise.stages.problems.protocol import Problem


def multiclass(seed: int = 0, n: int = 7, width: int = 4, classes: int = 3, **meta) -> Problem:
    rng = np.random.default_rng(seed)
    labels = rng.integers(classes, size=n)
    x = rng.normal(size=(n, width)) + np.eye(classes, width)[labels]
    return build("multiclass", {"x": x, "labels": labels}, {"classes": classes, **meta})


def multiclass_cone(seed: int = 1) -> Problem:
    """Half of the weights constrained to be >= 0, a quarter <= 0."""
    d = 12
    lower, upper = np.full(d, -np.inf), np.full(d, np.inf)
    lower[:6], upper[9:] = 0.0, 0.0
    return multiclass(seed, lower=lower, upper=upper)


def multiclass_sparse(seed: int = 3, n: int = 6, width: int = 5, classes: int = 3, **meta) -> Problem:
    """Two or three of five features in a row, and one row without any."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(classes, size=n)
    x = (rng.normal(size=(n, width)) + 2.0 * np.eye(classes, width)[labels]) * (rng.random((n, width)) < 0.5)
    x[1] = 0.0
    return build("multiclass", csr(x) | {"labels": labels}, {"classes": classes, "width": width, **meta})


def csr(x: np.ndarray) -> dict[str, np.ndarray]:
    """The rows of x (n, D) as sparse ones are stored."""
    row, ids = np.nonzero(x)
    counts = np.bincount(row, minlength=len(x))
    return {"ids": ids.astype(np.int32), "values": x[row, ids], "row_ptr": np.cumsum([0, *counts])}


INSTANCES = {"multiclass": multiclass, "multiclass_cone": multiclass_cone, "multiclass_sparse": multiclass_sparse}
LABELS = {"Multiclass": lambda problem: problem.labels}
