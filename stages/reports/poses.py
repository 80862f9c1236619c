"""Test photographs with poses: by the score maps alone, at some lambdas of the path, and the true ones."""

from __future__ import annotations

from typing import NamedTuple

import matplotlib.patheffects as effects
import numpy as np
from matplotlib.figure import Figure, FigureBase

from gapwise.stages.model.predict import predictions
from gapwise.stages.problems import build
from gapwise.stages.problems.tree.metrics import NEAR, best_alone_of, points_of
from gapwise.stages.problems.tree.tree import Tree
from gapwise.stages.reports.paint import BLUE, GREEN, ORANGE, Draw, Size
from gapwise.stages.reports.stored import StoredRun
from gapwise.storage.mixture import weights_at

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


def posed(run: StoredRun, count: int) -> list[Posed]:
    """The first photographs with their poses, by the run's own weights; [] where there are none with known joints."""
    arrays = run.test_blocks
    if not {"photo", "photo_hw", "points", "limb_ends"} <= set(arrays):
        return []
    lams, best = run.some_lambdas(LAMBDAS), run.measured.get("best_lambda")
    photographed = np.flatnonzero(np.diff(arrays["photo_hw_ptr"]) > 0)[:count]
    problem = build("tree", arrays, run.meta)
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


def figure(run: StoredRun) -> tuple[Draw, Size] | None:
    """Four photographs, one below the other; None if there are none."""
    shown = posed(run, 4)
    if not shown:
        return None

    def draw(figure: Figure) -> None:
        for part, picture in zip(figure.subfigures(len(shown), 1, squeeze=False)[:, 0], shown, strict=True):
            draw_row(picture, part)

    return draw, (11.0, 2.4 * len(shown))


def draw_row(shown: Posed, figure: FigureBase) -> None:
    """A photograph beside itself with each of its poses; the true one is green, that of the maps alone is orange."""
    for k, (axes, pose) in enumerate(zip(figure.subplots(1, len(shown.poses)), shown.poses, strict=True)):
        axes.imshow(shown.rgb)
        colour = GREEN if pose.right is None else ORANGE if k == 0 else BLUE
        for ends in pose.limbs:
            axes.plot(
                *ends.T, color=colour, linewidth=2.0, solid_capstyle="round",
                path_effects=[effects.withStroke(linewidth=3.0, foreground="white")],
            )  # fmt: skip
        axes.set_axis_off()
        axes.set_title(pose.said + ("" if pose.right is None else f", {pose.right:.0%}"), fontsize=8)
