"""The one loop of all methods at one lambda: rebase, offer the state, advance."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np

from gapwise.records import Facts, Json
from gapwise.stages.problems.parallel import HERE, Spread
from gapwise.stages.problems.protocol import Problem
from gapwise.stages.solver.counts import Counts
from gapwise.stages.solver.ledger import Ledger, Row
from gapwise.stages.solver.objective import Mixture
from gapwise.stages.solver.options import MethodOptions, Status
from gapwise.stages.solver.packed import ArraySpec
from gapwise.stages.solver.schedule import Arrays, Ended, Goal, Iterate, Schedule
from gapwise.stages.solver.supports import Pool, Supports

Boundary = Callable[["Solver"], Status | None]
"""boundary(solver): called wherever the state can be committed. Any status that it returns stops the solve there."""


@dataclass
class Solver:
    """A method on a problem: an iterate, the schedule that moves it, and the ledger of what was done."""

    problem: Problem
    options: MethodOptions
    recipe: AnyRecipe
    iterate: Iterate
    schedule: Schedule
    ledger: Ledger
    stopped: bool = False
    """Whether `boundary` ended the last `solve`."""

    # -- the loop -----------------------------------------------------------------------------------------------------
    def solve(
        self,
        tolerance: float,
        boundary: Boundary,
        *,
        relative: bool = False,
        exact: bool = True,
        mixture: Mixture | None = None,
    ) -> Ended:
        """Go from rebase point to rebase point until the tolerance is certified or a limit is reached.

        Parameters
        ----------
        tolerance : float
            On the duality gap, or on gap / dual if `relative`.
        boundary : callable
            Called at every rebase point; if it returns a status, the call ends there and can be continued.
        exact : bool
            False (heuristic paths): the stale gap sum decides, and no exact pass is made.
        mixture : Mixture, optional
            A primal point that certifies the lambda once the dual value is high enough.

        Returns
        -------
        Status, Certificate
            The certificate is that of `primal()`; None if `boundary` stopped the solve or the method does not certify.
        """
        goal = Goal(tolerance, relative, exact, mixture)
        while True:
            with self.ledger.timed():
                self.rebase()
            stop = boundary(self)
            self.stopped = stop is not None
            if stop is not None:
                self.iterate.fresh = True  # a later call goes on as after a restore
                return stop, None
            with self.ledger.timed():
                ended = self.schedule.advance(goal)
            if ended:
                check_finite(ended)
                return ended

    def rebase(self) -> None:
        """Go to a rebase point."""
        self.iterate.rebase()

    def warm_up(self) -> None:
        """Compile or load every function that a solve calls, so that seconds exclude compilation; changes no result."""
        if not self.iterate.fresh:
            self.rebase()
        self.schedule.warm_up()

    def start_lambda(self, lam: float, breakpoint: int, *, exact_due: bool = False) -> None:
        """Begin another lambda from the current point."""
        self.iterate.begin_lambda(lam, breakpoint, exact_due)
        self.schedule.start()

    def move_to(self, lam: float, breakpoint: int, warm_start: str) -> None:
        """Begin another lambda; `warm_start` (keep_primal, keep_dual, none) says what to keep."""
        self.iterate.move_to(lam, warm_start)
        self.start_lambda(lam, breakpoint)

    # -- what is known ------------------------------------------------------------------------------------------------
    @property
    def counts(self) -> Counts:
        """The scalars of the solve."""
        return self.ledger.counts

    @property
    def trace(self) -> list[Row]:
        """A row for each exact pass."""
        return self.ledger.trace

    @property
    def oracle_calls(self) -> int:
        """All max-oracle calls so far, those of the path's start included."""
        return self.ledger.oracle_calls

    @property
    def steps(self) -> int:
        """Steps so far."""
        return self.ledger.steps

    @property
    def point(self) -> np.ndarray:
        """float64, (d,): the primal point that the next certificate will be computed for."""
        return self.iterate.w if self.schedule.point is None else self.schedule.point()

    def primal(self) -> np.ndarray:
        """float64, (d,): the solution at the current lambda."""
        return self.iterate.primal()

    def supports(self) -> Supports | None:
        """The dual point of the solution; None if the method has none."""
        return self.iterate.supports()

    def dual_value(self) -> float:
        """The current D(alpha); nan without a dual point."""
        return self.iterate.dual_value()

    # -- committed state ----------------------------------------------------------------------------------------------
    def packed(self) -> tuple[dict[str, np.ndarray], dict[str, Json]]:
        """Arrays of `Recipe.specs`, and JSON-able attributes; copies, which a thread may write while the solve goes on."""
        arrays, attrs = self.iterate.packed()
        own = {name: np.array(array) for name, array in self.schedule.arrays().items()}
        return {**arrays, **own}, {**attrs, "own": self.schedule.packed_counts()}


def check_finite(ended: Ended) -> None:
    """Raise ArithmeticError if a lambda ends with a certificate that certifies nothing, because a number is not finite."""
    point = ended[1]
    if point is not None and not np.isfinite([point.gap, point.primal, point.dual]).all():
        raise ArithmeticError(
            f"solver: at lambda {point.lam:.6g} the primal objective is {point.primal:.3g} and the dual {point.dual:.3g}, "
            "expected finite numbers: features, losses or 1 / lambda are too large. Scale the features, or use a larger "
            "lambda."
        )


It = TypeVar("It", bound=Iterate)
Opts = TypeVar("Opts", bound=MethodOptions)


@dataclass(frozen=True)
class Recipe(Generic[It, Opts]):
    """A method, as its file defines it.

    Examples
    --------
    Visits in the order of the data, and an exact pass after each round. `block_method` has the rest of the recipe.

    >>> from gapwise.stages.solver.block_method import block_method
    >>> from gapwise.stages.solver.exact import exact_pass, judged
    >>> from gapwise.stages.solver.visits import Visits
    >>> def in_order(it, options, own_primal):
    ...     visits, order = Visits(it), np.arange(it.problem.n)
    ...
    ...     def advance(goal):
    ...         visits.run(visits.flags(), order, order.size)
    ...         point, _ = exact_pass(it)
    ...         it.ledger.record(point)
    ...         status = judged(it, point, goal)
    ...         return (status, point) if status else None
    ...
    ...     return Schedule(advance, warm_up=visits.warm_up)
    >>> METHOD = block_method(in_order)
    >>> from gapwise import MulticlassSVM
    >>> from gapwise.stages.solver.options import BlockOptions
    >>> from gapwise.stages.solver.state import truth_pool
    >>> problem = MulticlassSVM().problem(np.eye(3), [0, 1, 2])
    >>> solver = METHOD.begin(problem, BlockOptions("in_order"), truth_pool(problem), seed=0)
    >>> bool(solver.primal().any())  # the true labellings have all weight, so w = 0
    False
    """

    schedule: Callable[[It, Opts, bool], Schedule]
    """(iterate, options, own_primal) -> what comes next"""
    iterate: Callable[[Problem, Opts, Pool, int, Ledger], It]
    """(problem, options, pool, seed, ledger) -> the iterate at the dual point of the pool"""
    restore: Callable[[Problem, Opts, int, Arrays, Facts, Ledger], It]
    """(problem, options, seed, arrays, attributes, ledger) -> the iterate of a commit"""
    specs: tuple[ArraySpec, ...]
    """The arrays that are committed. Those with the only dimension `iteration` are a trace of the method's own."""
    counts: type[Counts] = Counts
    """The scalars that the iterate commits."""

    def begin(
        self, problem: Problem, options: Opts, pool: Pool, seed: int, *, own_primal: bool = True,
        spread: Spread = HERE,
    ) -> Solver:  # fmt: skip
        """The method at the dual point of `pool`; call `start_lambda` next.

        Parameters
        ----------
        problem : Problem
            n blocks, d weights.
        options : MethodOptions
            Options of the type that the method's file defines.
        pool : Pool
            The labellings of each block with their weights.
        seed : int
            Of the random generator that draws blocks.
        own_primal : bool
            Whether certified weights may differ from the weights that the dual point gives.
        spread : Spread
            Where the oracles of exact passes are called; does not change the result.

        Returns
        -------
        Solver
            At a rebase point, before its first lambda.
        """
        ledger = self._ledger(problem, options, spread)
        iterate = self.iterate(problem, options, pool, seed, ledger)
        return Solver(problem, options, self, iterate, self.schedule(iterate, options, own_primal), ledger)

    def restored(
        self, problem: Problem, options: Opts, seed: int, arrays: Arrays, attrs: Facts, *,
        own_primal: bool = True, spread: Spread = HERE,
    ) -> Solver:  # fmt: skip
        """The method at a committed point.

        Parameters
        ----------
        problem, options, seed, own_primal, spread
            As in `begin`.
        arrays : mapping of arrays
            What `specs` lists, as it was committed.
        attrs : mapping
            The committed scalars.

        Returns
        -------
        Solver
            Goes on as if it had never stopped.

        Raises
        ------
        ValueError
            If an array does not fit the problem; names the array.
        """
        ledger = self._ledger(problem, options, spread)
        iterate = self.restore(problem, options, seed, arrays, attrs, ledger)
        schedule = self.schedule(iterate, options, own_primal)
        own = attrs["own"]
        assert isinstance(own, dict)
        schedule.restore_counts(own)
        schedule.restore(arrays)
        return Solver(problem, options, self, iterate, schedule, ledger)

    def _ledger(self, problem: Problem, options: MethodOptions, spread: Spread) -> Ledger:
        return Ledger(problem.n, options, self.counts(), np.zeros(2, np.int64), spread=spread)


AnyRecipe: TypeAlias = Recipe[Any, Any]
"""A recipe whose iterate and options are not known; whoever calls it gives it the options of its own file."""
