"""Test photographs with what is predicted of their poses, as figure and report show them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gapwise.stages.model.predict import predictions
from gapwise.stages.problems import build
from gapwise.stages.problems.tree.metrics import NEAR, best_alone_of, points_of
from gapwise.stages.problems.tree.tree import Tree
from gapwise.stages.reports.stored import StoredRun
from gapwise.storage.files import read_json
from gapwise.storage.mixture import weights_at

SHOWN = 6
"""Most photographs."""
LAMBDAS = 4
"""Most lambdas."""


class Pose(NamedTuple):
    """A pose in a picture."""

    said: str
    """where it comes from"""
    limbs: np.ndarray
    """(L, 2, 2): x, y in pixels of both ends of every limb"""
    right: float | None
    """share of joints within a fifth of the trunk; None for the truth"""


class Posed(NamedTuple):
    """A test photograph."""

    block: int
    rgb: np.ndarray
    poses: list[Pose]
    """by the maps alone; at some lambdas, falling; and the true one"""


def has_poses(run: StoredRun) -> bool:
    """True for trees over photographs with known joints."""
    return {"photo", "photo_hw", "points", "limb_ends"} <= set(run.test_blocks) and bool(
        np.asarray(run.test_blocks["photo_hw"]).size
    )


def lambdas_of(run: StoredRun) -> tuple[list[float], float | None]:
    """At most LAMBDAS solved lambdas, falling, evenly spaced between the first and the last; and the best one among them."""
    file = run.run_dir / "metrics.json"
    best = (read_json(file) or {}).get("best_lambda") if file.is_file() else None
    lams = np.unique(run.arrays["lambda"])[::-1]
    if lams.size > LAMBDAS:
        lams = lams[np.linspace(0, lams.size - 1, LAMBDAS).round().astype(int)]
    if best is not None and best not in lams:
        inner = lams[1:-1] if lams.size > 2 else lams
        inner[int(np.argmin(np.abs(np.log(inner / best))))] = best
    return sorted({float(lam) for lam in lams}, reverse=True), best


def posed(run: StoredRun, count: int = SHOWN) -> list[Posed]:
    """The first photographs with their poses, by the run's own weights."""
    lams, best = lambdas_of(run)
    arrays = run.test_blocks
    photographed = np.flatnonzero(np.diff(arrays["photo_hw_ptr"]) > 0)[:count]
    problem = build("tree", arrays, run.features.meta)
    assert isinstance(problem, Tree)
    V = problem.parent.size
    weights = weights_at(run.run_dir / "path.zarr")
    predicted = [
        (f"λ = {lam:.3g}" + " (best)" * (lam == best), _places(problem, weights(lam), photographed)) for lam in lams
    ]
    predicted.insert(0, ("maps alone", np.array([best_alone_of(problem, int(i)) for i in photographed]).reshape(-1, V)))
    nodes, cell = np.asarray(arrays["point_nodes"]).reshape(-1), float(np.asarray(arrays["cell"]).reshape(-1)[0])
    points = np.asarray(arrays["points"], float).reshape(problem.n, nodes.size, 2)
    trunk, ends = np.asarray(arrays["trunk"], float).reshape(-1), np.asarray(arrays["limb_ends"], float)
    result = []
    for k, i in enumerate(photographed):
        height, width = (int(size) for size in np.asarray(arrays["photo_hw"][arrays["photo_hw_ptr"][i]]))
        rgb = np.asarray(arrays["photo"][arrays["photo_ptr"][i] : arrays["photo_ptr"][i + 1]]).reshape(height, width, 3)
        poses = []
        for said, cells in predicted:
            joints = points_of(problem.hw[i : i + 1], cells[k : k + 1], nodes, cell)[0]
            right = float(np.mean(np.linalg.norm(joints - points[i], axis=1) <= NEAR * trunk[i]))
            poses.append(Pose(said, ends @ joints, right))
        result.append(Posed(int(i), rgb, [*poses, Pose("truth", ends @ points[i], None)]))
    return result


def _places(problem: Tree, w: np.ndarray, blocks: np.ndarray) -> np.ndarray:
    """int64 (blocks, V): predicted places."""
    labels = predictions(problem, w, blocks)[0].reshape(len(blocks), -1)
    return labels[:, : problem.parent.size].astype(np.int64)
