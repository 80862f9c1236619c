"""Multiclass: plain, and with bounds."""

from __future__ import annotations

import numpy as np

from stages.problems import build
from stages.problems.protocol import Problem


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


INSTANCES = {"multiclass": multiclass, "multiclass_cone": multiclass_cone}
LABELS = {"Multiclass": lambda problem: problem.cost.shape[0]}
