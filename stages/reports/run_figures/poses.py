"""Poses along the path: a test photograph a row; by the score maps alone, at some lambdas, and the true pose."""

from __future__ import annotations

import matplotlib.patheffects as effects
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gapwise.stages.reports.paint import BLUE, GREEN, ORANGE, finish
from gapwise.stages.reports.poses import Pose, has_poses, posed
from gapwise.stages.reports.stored import StoredRun

SIZE = (11.0, 9.5)
SHOWN = 4
"""Most photographs."""


def applies(run: StoredRun) -> bool:
    """True for trees over photographs with known joints."""
    return has_poses(run)


def paint(figure: Figure, run: StoredRun) -> None:
    shown = posed(run, SHOWN)
    rows = figure.subplots(len(shown), len(shown[0].poses), squeeze=False)
    for axes_of, picture in zip(rows, shown, strict=True):
        for k, (axes, pose) in enumerate(zip(axes_of, picture.poses, strict=True)):
            axes.imshow(picture.rgb)
            draw(axes, pose, ORANGE if k == 0 else BLUE)
            right = "" if pose.right is None else f", {pose.right:.0%}"
            axes.set_title(pose.said + right, fontsize=8)
    finish(rows, [""] * len(shown))


def draw(axes: Axes, pose: Pose, colour: str) -> None:
    """The limbs of a pose; the true one is green."""
    for (x, y), (to_x, to_y) in pose.limbs:
        axes.plot(
            [x, to_x], [y, to_y], color=GREEN if pose.right is None else colour, linewidth=2.0, solid_capstyle="round",
            path_effects=[effects.withStroke(linewidth=3.0, foreground="white")],
        )  # fmt: skip
