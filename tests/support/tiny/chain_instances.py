"""Chains: with binary attributes, with a few of many attributes that have values, and with tokens as rows of a matrix."""

from __future__ import annotations

import numpy as np

from gapwise.stages.problems import build
from gapwise.stages.problems.chain.costs import broken
from gapwise.stages.problems.chain.features import with_biases
from gapwise.stages.problems.protocol import Problem

FORBIDDEN = np.array([[0, 0, 1], [0, 0, 0], [0, 0, 0], [0, 0, 1], [0, 1, 0]], np.uint8)
"""O, B, I: no I after O or first; and no B last, so that an end is forbidden, too."""


def chain(seed: int = 2, lengths=(3, 1, 4, 2), width: int = 4, classes: int = 3, valued: bool = False,
          arrays_too=(), **facts) -> Problem:  # fmt: skip
    """Sequences over `width` random binary attributes (each with probability 1/2), or few of many, valued.

    `arrays_too` and `facts` say more to `build`; truths then keep to ``forbidden`` if it is among the arrays.
    """
    more = dict(arrays_too)
    rng = np.random.default_rng(seed)
    arrays: dict[str, list] = {"labels": [], "ids": [], "counts": [], "values": []}
    for length in lengths:
        labels = rng.integers(classes, size=length)
        while "forbidden" in more and (broken(more["forbidden"], labels, np.array([0, length])) >= 0).any():
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
    counts = np.bincount(flat["labels"], minlength=classes).tolist()
    sizes = {"classes": classes, "attributes": width + 3, "label_counts": counts, "n_train": len(lengths)}
    return build("chain", {**flat, **more}, {**sizes, **facts})


def chain_sparse() -> Problem:
    """Two labels, few of many attributes, with values."""
    return chain(5, lengths=(2, 4, 1, 3, 4), width=9, classes=2, valued=True)


def chain_costs() -> Problem:
    """Weights of examples, and a cost matrix in which one error costs nothing, counted per token."""
    cost = np.array([[0.0, 1.9, 0.57], [1.13, 0.0, 0.0], [0.31, 2.7, 0.0]])
    return chain(3, arrays_too={"cost": cost, "block_weight": np.array([0.5, 2.0, 1.0, 0.5])}, loss="per_token")


def chain_constrained() -> Problem:
    """Constraints on transitions, starts and ends, and balanced label weights."""
    return chain(4, lengths=(3, 2, 4, 2), arrays_too={"forbidden": FORBIDDEN}, balanced=True)


def dense_arrays(seed: int = 6, lengths=(3, 1, 4, 2), width: int = 9, classes: int = 3) -> dict[str, np.ndarray]:
    """Tokens as rows of normal numbers, in blocks of which the rows of the last come first."""
    rng, ptr = np.random.default_rng(seed), np.cumsum([0, *lengths])
    labels = rng.integers(classes, size=ptr[-1])
    values = rng.normal(size=(ptr[-1], width)) + 0.5 * np.eye(classes, width)[labels]
    last = lengths[-1]
    first = np.append(ptr[:-2] + last, 0)
    return {
        "labels": labels,
        "labels_ptr": ptr,
        "values": np.roll(values, last, axis=0).astype(np.float32),
        "first": first,
    }


def chain_dense(**more) -> Problem:
    """Rows of nine columns, so that eight are taken together and one is left."""
    return build("chain", {**dense_arrays(), **more}, {"classes": 3, "attributes": 12})


INSTANCES = {
    "chain": chain, "chain_sparse": chain_sparse, "chain_costs": chain_costs, "chain_constrained": chain_constrained,
    "chain_dense": chain_dense,
}  # fmt: skip
LABELS = {"Chain": lambda problem: problem.labels}
LABELLINGS = {"Chain": lambda problem, i, y: not problem.forbidden(np.array([i]), y, np.array([0, y.size])).any()}
