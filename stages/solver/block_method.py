"""What the file of a block-coordinate method needs to define it: `block_method` makes its `Recipe`."""

from __future__ import annotations

from collections.abc import Callable

from gapwise.records import Facts
from gapwise.stages.problems.protocol import Problem
from gapwise.stages.solver.counts import BlockCounts
from gapwise.stages.solver.iterate import SPECS, Iterate, begun, restored
from gapwise.stages.solver.ledger import Ledger
from gapwise.stages.solver.listing import listing
from gapwise.stages.solver.packed import ArraySpec
from gapwise.stages.solver.schedule import Arrays, Schedule
from gapwise.stages.solver.setup import Setup
from gapwise.stages.solver.solver import Opts, Recipe
from gapwise.stages.solver.supports import Pool


def block_method(
    schedule: Callable[[Iterate, Opts, bool], Schedule],
    setup: Callable[[Opts], Setup] = Setup.of,  # type: ignore[assignment]  # of options that are `BlockOptions`
    specs: tuple[ArraySpec, ...] = (),
) -> Recipe[Iterate, Opts]:
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

    def begin(problem: Problem, options: Opts, pool: Pool, seed: int, ledger: Ledger) -> Iterate:
        return begun(problem, listing(problem, setup(options)), pool, seed, ledger)

    def restore(problem: Problem, options: Opts, seed: int, arrays: Arrays, attrs: Facts, ledger: Ledger) -> Iterate:
        return restored(problem, listing(problem, setup(options)), seed, arrays, attrs, ledger)

    return Recipe(schedule, begin, restore, (*SPECS, *specs), BlockCounts)
