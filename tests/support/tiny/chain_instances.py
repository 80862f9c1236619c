"""Chains: with binary attributes, and with a few of many attributes that have values."""

from __future__ import annotations

import numpy as np

from gapwise.stages.problems import build
from gapwise.stages.problems.chain.features import with_biases
from gapwise.stages.problems.protocol import Problem


def chain(seed: int = 2, lengths=(3, 1, 4, 2), width: int = 4, classes: int = 3, valued: bool = False) -> Problem:
    """Sequences over `width` random binary attributes (each with probability 1/2), or few of many, valued."""
    rng = np.random.default_rng(seed)
    arrays: dict[str, list] = {"labels": [], "ids": [], "counts": [], "values": []}
    for length in lengths:
        labels = rng.integers(classes, size=length)
        rows = [np.flatnonzero(rng.random(width) < (0.2 if valued else 0.5)) for _ in labels]
        rows = [np.union1d(row, [label]) for row, label in zip(rows, labels, strict=True)]
        counts = np.array([row.size for row in rows])
        block = with_biases(np.concatenate(rows), counts, np.array([0, length]), width + 3)
        values = rng.normal(size=block["ids"].size) if valued else np.empty(0)
        for name, array in {**block, "labels": labels, "values": values}.items():
            arrays[name].append(array)
    flat = {name: np.concatenate(parts) for name, parts in arrays.items()}
    flat["labels_ptr"] = np.cumsum([0, *lengths])
    return build("chain", flat, {"classes": classes, "attributes": width + 3})


def chain_sparse() -> Problem:
    """Two labels, few of many attributes, with values."""
    return chain(5, lengths=(2, 4, 1, 3, 4), width=9, classes=2, valued=True)


INSTANCES = {"chain": chain, "chain_sparse": chain_sparse}
LABELS = {"Chain": lambda problem: problem.labels}
