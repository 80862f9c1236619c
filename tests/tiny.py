"""Tiny instances of every structure: small enough to enumerate all labellings and to solve as a dense QP."""

from __future__ import annotations

import itertools
from collections.abc import Callable

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


TINY: dict[str, Callable[[], Problem]] = {
    "multiclass": multiclass,
    "multiclass_cone": multiclass_cone,
}
"""Every test of the solver runs on every one of these; a new structure adds one line."""

LABELS = {"Multiclass": lambda problem, i: problem.cost.shape[0]}
"""Number of values one entry of a labelling can take, by class name (2 where not listed)."""


def all_labels(problem: Problem, i: int) -> list[np.ndarray]:
    """All labellings of block i, by enumeration."""
    length = int(problem.label_ptr[i + 1] - problem.label_ptr[i])
    values = LABELS.get(type(problem).__name__, lambda *_: 2)(problem, i)
    return [np.array(y, dtype=problem.truth.dtype) for y in itertools.product(range(values), repeat=length)]
