"""Test photographs with skeletons: by the score maps alone, at some lambdas of the path, and the true ones."""

from __future__ import annotations

from markupsafe import Markup

from gapwise.stages.reports.page.engine import fill
from gapwise.stages.reports.page.html import number
from gapwise.stages.reports.page.pixels import photograph
from gapwise.stages.reports.page.stored import ReportedRun
from gapwise.stages.reports.paint import BLUE, GREEN, ORANGE
from gapwise.stages.reports.poses import Pose, Posed, has_poses, posed
from gapwise.stages.reports.vega import Row

ORDER = 55
TITLE = "Poses along the path"
WIDTH = 130
"""Pixels of a picture on the page."""
GAP, LINE = 8, 18


def applies(run: ReportedRun) -> bool:
    """True for trees over photographs with known joints."""
    return run.has_features and has_poses(run)


def content(run: ReportedRun) -> Markup:
    return fill("poses", rows=[row(shown) for shown in posed(run)])


def row(shown: Posed) -> Row:
    """One photograph with all its poses."""
    height, width = shown.rgb.shape[:2]
    scale = WIDTH / width
    high = scale * height
    name = f"Test picture {shown.block + 1}: " + ", ".join(
        pose.said + (f" {pose.right:.0%} of the joints right" if pose.right is not None else "") for pose in shown.poses
    )
    return {
        "number": shown.block + 1, "id": f"posed-{shown.block}", "name": name, "photo": photograph(shown.rgb),
        "width": (WIDTH + GAP) * len(shown.poses), "height": f"{high + 2 * LINE:.0f}", "line": f"{high + LINE - 3:.0f}",
        "photo_width": WIDTH, "photo_height": f"{high:.0f}",
        "poses": [drawn(pose, k, scale) for k, pose in enumerate(shown.poses)],
    }  # fmt: skip


def drawn(pose: Pose, column: int, scale: float) -> Row:
    """One skeleton, and what it is."""
    colour = GREEN if pose.right is None else ORANGE if column == 0 else BLUE
    right = "" if pose.right is None else f" · {number(pose.right, '.0%')}"
    limbs = [[f"{value:.1f}" for value in (scale * ends).ravel().tolist()] for ends in pose.limbs]
    return {"x": (WIDTH + GAP) * column, "colour": colour, "limbs": limbs, "said": f"{pose.said}{right}"}
