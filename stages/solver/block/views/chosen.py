"""Which views serve a method's steps: chosen here, from sizes and the method's choices, and told by name."""

from __future__ import annotations

from typing import NamedTuple

from gapwise.stages.problems.protocol import Problem
from gapwise.stages.solver import margins
from gapwise.stages.solver.setup import FEATURES, MARGINS, Setup


class Views(NamedTuple):
    """Names of views, which are the files of this folder."""

    steps: str
    """of steps that may call the max-oracle"""
    cached: str
    """of steps between labellings that a block has"""


def views_of(problem: Problem, setup: Setup, atoms: int) -> Views:
    """The views at a rebase point with so many labellings in all blocks: margin vectors if they may serve and save time."""
    if setup.margins and margins.worth_keeping(problem, atoms):
        return Views(MARGINS, MARGINS)
    return Views(FEATURES, setup.cached_view)
