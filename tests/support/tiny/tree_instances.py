"""Trees on small grids, with as many places as types: then every row of entries is a labelling, as enumeration needs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gapwise.stages.problems import build, structure
from gapwise.stages.problems.protocol import Problem
from tiny.blocks import ragged


def tree_arrays(
    seed: int, parent: Sequence[int], types: int, grids: Sequence[tuple[int, int]], codes: bool = True
) -> dict[str, np.ndarray]:
    """Arrays of random blocks on these grids; codes: relation maps as uint8."""
    rng = np.random.default_rng(seed)
    V, A = len(parent), len(parent) - 1
    share = rng.random(V) * (np.arange(V) != 2)  # node 2, where there is one, costs nothing
    shared = {
        "parent": np.array(parent),
        "anchors": rng.normal(size=(A, 2, types, 2)) * 1.5,
        "node_loss": share / share.sum(),
        "relation_scale": np.array([-0.02]),
    }
    blocks = []
    for rows, columns in grids:
        size = rows * columns
        stored = rng.integers(256, size=A * 2 * types * size).astype(np.uint8)
        block = {
            "grid": np.array([[rows, columns]], np.int32),
            "unary": rng.normal(size=V * size).astype(np.float32),
            "relations": stored if codes else (-0.02 * stored).astype(np.float32),
            "labels": np.append(rng.integers(size, size=V), rng.integers(types, size=2 * A)).astype(np.int16),
            "loss_scale": np.array([1.5]),
        }
        blocks.append(block | structure("tree").derived(**shared, **block))
    if not codes:
        del shared["relation_scale"]
    return ragged(blocks) | shared


def tree(seed: int = 4) -> Problem:
    """Two nodes, three types, and three places in a row or in a column."""
    return build("tree", tree_arrays(seed, [-1, 0], 3, [(1, 3), (3, 1), (1, 3)]), {"per_cell": 0.5})


INSTANCES = {"tree": tree}
LABELS = {"Tree": lambda problem: problem.labels}
