"""Which view serves a method's steps: chosen here, from sizes and options, and told by name."""

from __future__ import annotations

from typing import NamedTuple

from gapwise.stages.problems.protocol import Problem
from gapwise.stages.solver import margins
from gapwise.stages.solver.options import BlockOptions, CachedPassOptions, MultiplaneOptions
from gapwise.stages.solver.steps import PAIRWISE, step_rule

FEATURES, DISTANCES, MARGINS = "features", "distances", "margins"


class Views(NamedTuple):
    """Names of views: the files of this folder."""

    steps: str
    """of steps that may call the max-oracle"""
    cached: str
    """of steps between labellings that a block has"""


def view_of(problem: Problem, options: BlockOptions, atoms: int, *, keeps_margins: bool) -> Views:
    """The views of a method at a rebase point.

    Parameters
    ----------
    atoms
        Labellings of all blocks.
    keeps_margins
        Whether the method's steps are pairwise with a cache, and need no local vectors.
    """
    if keeps_margins and margins.worth_keeping(problem, atoms):
        return Views(MARGINS, MARGINS)
    if options.method == "fasole":
        return Views(DISTANCES, DISTANCES)
    if isinstance(options, MultiplaneOptions):
        permuted = options.sampler == "permutation" and options.multiplane.approximate_passes > 0
        return Views(DISTANCES if permuted else FEATURES, DISTANCES)
    if isinstance(options, CachedPassOptions):
        return Views(FEATURES, DISTANCES if step_rule(options.step).kinds == PAIRWISE else FEATURES)
    return Views(FEATURES, FEATURES)
