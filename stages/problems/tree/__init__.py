"""Trees of parts on grids, with a max-sum oracle by distance transforms; human poses are the first use."""

from __future__ import annotations

import numpy as np

from gapwise.stages.problems.capabilities import Capabilities
from gapwise.stages.problems.tree.metrics import metrics
from gapwise.stages.problems.tree.tree import Tree, build, check_block, checked_tree, scale_of

CAPABILITIES = Capabilities(
    learns="place the parts of a tree in pictures",
    losses={"": "the squared distance of each part from its true place, at most 1, averaged over the parts"},
    features=("unary", "relations"),
    single=True,
    rising=("pcp", "pdj"),
    falling=("misplaced_nodes",),
)

__all__ = ["CAPABILITIES", "Tree", "build", "derived", "metrics"]


def derived(**block: np.ndarray) -> dict[str, np.ndarray]:
    """Nothing; checks a block, which must include the shared arrays."""
    parent, anchors, _ = checked_tree(block)
    maps = {name: np.asarray(block[name]) for name in ("unary", "relations")}
    scale_of(block)
    labels, types = np.asarray(block["labels"]), anchors.shape[2]
    rows, columns = np.asarray(block["grid"]).reshape(-1)
    sizes = {"unary": parent.size, "relations": 2 * (parent.size - 1) * types}
    for name, count in sizes.items():
        if maps[name].size != count * rows * columns:
            raise ValueError(f"tree: {name} has {maps[name].size} entries, expected {count} maps of {rows} x {columns}")
    if labels.size != parent.size + 2 * (parent.size - 1):
        raise ValueError(f"tree: labels has {labels.size} entries, expected {parent.size} places and two types an arc")
    check_block(labels, block["grid"], parent.size, types, maps, "tree")
    return {}
