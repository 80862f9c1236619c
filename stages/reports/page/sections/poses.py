"""Test photographs with skeletons: by the score maps alone, at some lambdas of the path, and the true ones."""

from __future__ import annotations

from markupsafe import Markup

from gapwise.stages.reports.page.html import joined, number, paragraph, scrolling
from gapwise.stages.reports.page.pixels import photograph
from gapwise.stages.reports.page.stored import ReportedRun
from gapwise.stages.reports.paint import BLUE, GREEN, ORANGE
from gapwise.stages.reports.poses import Pose, Posed, has_poses, posed

ORDER = 55
TITLE = "Poses along the path"
WIDTH = 130
"""Pixels of a picture on the page."""
GAP, LINE = 8, 18


def applies(run: ReportedRun) -> bool:
    """True for trees over photographs with known joints."""
    return run.has_features and has_poses(run)


def content(run: ReportedRun) -> Markup:
    said = paragraph(
        "Each row is a test photograph: the pose where every part's own score map is largest, poses at falling λ, where "
        "springs and weights are learned, and the true one. Below each: the share of joints within a fifth of the trunk."
    )
    return said + Markup('<div class="poses">{}</div>').format(joined(row(shown) for shown in posed(run)))


def row(shown: Posed) -> Markup:
    """One photograph with all its poses."""
    height, width = shown.rgb.shape[:2]
    scale, identity = WIDTH / width, f"posed-{shown.block}"
    high = scale * height
    symbol = Markup('<defs><image id="{}" href="{}" width="{:.0f}" height="{:.0f}"/></defs>').format(
        identity, photograph(shown.rgb), WIDTH, high
    )
    parts = [drawn(pose, k, identity, scale, high) for k, pose in enumerate(shown.poses)]
    name = f"Test picture {shown.block + 1}: " + ", ".join(
        pose.said + (f" {pose.right:.0%} of the joints right" if pose.right is not None else "") for pose in shown.poses
    )
    svg = Markup('<svg width="{:.0f}" height="{:.0f}" role="img" aria-label="{}">{}</svg>').format(
        (WIDTH + GAP) * len(parts), high + 2 * LINE, name, symbol + joined(parts)
    )
    return Markup("<figure>{}<figcaption>picture {}</figcaption></figure>").format(
        scrolling(f"picture {shown.block + 1}", svg), shown.block + 1
    )


def drawn(pose: Pose, column: int, identity: str, scale: float, high: float) -> Markup:
    """The photograph with one skeleton, and what it is."""
    colour = GREEN if pose.right is None else ORANGE if column == 0 else BLUE
    line = Markup('<line x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}"/>')
    lines = joined(line.format(*(scale * end).ravel().tolist()) for end in pose.limbs)
    right = "" if pose.right is None else f" · {number(pose.right, '.0%')}"
    return Markup(
        '<g transform="translate({} 0)"><use href="#{}"/><g stroke="{}" stroke-width="3" stroke-linecap="round">{}</g>'
        '<text x="0" y="{:.0f}">{}{}</text></g>'
    ).format((WIDTH + GAP) * column, identity, colour, lines, high + LINE - 3, pose.said, right)
