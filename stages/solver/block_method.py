"""What the file of a block-coordinate method needs to define it: `block_method` makes its `Recipe`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gapwise.stages.problems.protocol import Problem
from gapwise.stages.solver.counts import BlockCounts
from gapwise.stages.solver.iterate import SPECS, Iterate, restored
from gapwise.stages.solver.ledger import Ledger
from gapwise.stages.solver.method import ArraySpec
from gapwise.stages.solver.schedule import Arrays, Capabilities, Schedule
from gapwise.stages.solver.setup import Setup
from gapwise.stages.solver.solver import Recipe
from gapwise.stages.solver.supports import Pool


def block_method(
    schedule: Callable[[Iterate, Any, bool], Schedule],
    setup: Callable[[Any], Setup] = Setup.of,
    specs: tuple[ArraySpec, ...] = (),
    capabilities: Capabilities = Capabilities(any_metric=True),  # noqa: B008  it is frozen
) -> Recipe:
    """The recipe of a method that moves an `Iterate`.

    Parameters
    ----------
    schedule : callable
        (iterate, options, own_primal) -> what comes next.
    setup : callable
        (options) -> how blocks are drawn, which moves they make, what is kept.
    specs : tuple of ArraySpec
        The arrays that the schedule commits besides those of the iterate.
    """

    def begin(problem: Problem, options: Any, pool: Pool, seed: int, ledger: Ledger) -> Iterate:
        return Iterate.begin(problem, setup(options), pool, seed, ledger)

    def restore(
        problem: Problem, options: Any, seed: int, arrays: Arrays, attrs: Mapping[str, Any], ledger: Ledger
    ) -> Iterate:
        return restored(problem, setup(options), seed, arrays, attrs, ledger)

    return Recipe(schedule, begin, restore, (*SPECS, *specs), BlockCounts, capabilities)
