"""Measures of predicted poses: percentage of correct parts (PCP) and of detected joints (PDJ)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from gapwise.stages.problems.losses import share

if TYPE_CHECKING:
    from gapwise.stages.problems.tree.tree import Tree

NEAR = 0.2
"""PDJ: a joint is detected within this share of the trunk's length of the truth."""


def metrics(problem: Tree, arrays: Mapping[str, np.ndarray], predictions: np.ndarray) -> dict[str, float]:
    """PCP and PDJ of flat `predictions`, and of placing every node where its own unary map is largest (``..._unary``).

    They need the arrays ``points`` (m * 2,), x and y of a block's true points, and ``trunk`` (1,), its length, in the
    unit in which a cell is ``cell`` (1,) long; and, for all blocks, ``point_nodes`` (m,), the nodes that predict the
    points, and ``limb_ends`` (L, 2, m), either end of every limb as a mean of points. PCP is strict: both ends of a limb
    lie within half the limb's length of the truth. Without points: the share of misplaced nodes among those of a share.
    """
    n, V = problem.n, problem.parent.size
    positions = np.asarray(predictions).reshape(n, -1)[:, :V]
    if "points" not in arrays:
        wrong = (positions != problem.truth.reshape(n, -1)[:, :V])[:, problem.node_loss > 0]
        return {"misplaced_nodes": share(wrong)}
    result = pose_measures(problem, arrays, positions)
    alone = pose_measures(problem, arrays, best_alone(problem))
    return result | {f"{name}_unary": value for name, value in alone.items()}


def best_alone(problem: Tree) -> np.ndarray:
    """int64 (n, V): the places where the unary maps are largest."""
    return np.array([best_alone_of(problem, i) for i in range(problem.n)])


def best_alone_of(problem: Tree, i: int) -> np.ndarray:
    """int64 (V,): `best_alone` of block i."""
    unary = problem.unary[problem.unary_ptr[i] : problem.unary_ptr[i + 1]]
    return np.asarray(unary.reshape(problem.parent.size, -1).argmax(axis=1))


def points_of(grid: np.ndarray, positions: np.ndarray, nodes: np.ndarray, cell: float) -> np.ndarray:
    """(n, m, 2): x and y of the centres of the cells where `nodes` (m,) are, for grids (n, 2) and positions (n, V)."""
    chosen, columns = np.asarray(positions, np.int64)[:, nodes], np.asarray(grid)[:, 1:2]
    return np.stack([chosen % columns, chosen // columns], axis=-1) * cell + (cell - 1.0) / 2.0


def pose_measures(problem: Tree, arrays: Mapping[str, np.ndarray], positions: np.ndarray) -> dict[str, float]:
    """PCP and PDJ of positions (n, V)."""
    nodes, cell = np.asarray(arrays["point_nodes"]).reshape(-1), float(np.asarray(arrays["cell"]).reshape(-1)[0])
    ends, trunk = np.asarray(arrays["limb_ends"], float), np.asarray(arrays["trunk"], float).reshape(-1)
    truth = np.asarray(arrays["points"], float).reshape(problem.n, nodes.size, 2)
    predicted = points_of(problem.hw, positions, nodes, cell)
    near = np.linalg.norm(predicted - truth, axis=-1) <= NEAR * trunk[:, None]
    true_ends, predicted_ends = (np.einsum("lem,nmk->nlek", ends, points) for points in (truth, predicted))
    length = np.linalg.norm(true_ends[:, :, 0] - true_ends[:, :, 1], axis=-1)
    right = (np.linalg.norm(predicted_ends - true_ends, axis=-1) <= 0.5 * length[:, :, None]).all(axis=-1)
    return {"pcp": float(right.mean()), "pdj": float(near.mean())}
