"""Potts segmentation, whose oracle is approximate: not among TINY, whose oracles are exact, except on trees."""

from __future__ import annotations

import itertools

import numpy as np

from gapwise.stages.problems import build, structure
from gapwise.stages.problems.losses import VOID
from gapwise.stages.problems.protocol import Problem
from tiny.blocks import ragged


def potts_blocks(
    seed: int = 3, n: int = 4, classes: int = 3, d_unary: int = 3, d_pairwise: int = 2, tree: bool = False,
    void: bool = False, most: int = 6,
) -> list[dict[str, np.ndarray]]:  # fmt: skip
    """Images of 1 to `most` superpixels on random graphs or trees; with `void`, the last superpixel of some is void."""
    rng = np.random.default_rng(seed)
    blocks = []
    for i in range(n):
        size = 1 + (i + 3) % most
        if tree:
            pairs = [(int(rng.integers(q)), q) for q in range(1, size)]
        else:
            pairs = [pair for pair in itertools.combinations(range(size), 2) if rng.random() < 0.7]
        edges = np.array(sorted(pairs), np.int32).reshape(-1, 2)
        labels = rng.integers(classes, size=size).astype(np.uint8)
        unary = rng.normal(size=(size, d_unary)) + 0.7 * np.eye(classes, d_unary)[labels]
        area = rng.integers(20, 60, size=size)
        counts = area[:, None] * np.where(np.eye(classes)[labels], 0.75, 0.25 / (classes - 1))
        if void and i % 2 == 0 and size > 1:
            labels[-1], counts[-1] = VOID, 0.0
        block = {
            "unary": unary.astype(np.float32),
            "pairwise": rng.random((len(edges), d_pairwise)).astype(np.float32),
            "edges": edges,
            "labels": labels,
            "area": area.astype(float),
            "counts": counts.astype(np.float32),
        }
        blocks.append(block | structure("potts").derived(**block))
    return blocks


def potts(*, meta: dict | None = None, **choices) -> Problem:
    """The problem of `potts_blocks(**choices)`; `meta`: other options of the structure."""
    return build("potts", ragged(potts_blocks(**choices)), {"classes": choices.get("classes", 3), **(meta or {})})


def potts_tree() -> Problem:
    """Trees, on which message passing is exact."""
    return potts(tree=True, meta={"slack": 0.0})
