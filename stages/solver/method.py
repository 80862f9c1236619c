"""A method: a point at one lambda, what comes next, and what is committed; and the one loop of all methods."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeAlias, TypeVar, cast

import numpy as np

from gapwise.records import Facts, Json
from gapwise.stages.problems.parallel import HERE, Spread
from gapwise.stages.problems.protocol import Problem
from gapwise.stages.solver.counts import Arrays, ArraySpec, Counts
from gapwise.stages.solver.dual_point import SPECS, DualPoint
from gapwise.stages.solver.ledger import Ledger, Row
from gapwise.stages.solver.objective import Certificate, Goal
from gapwise.stages.solver.options import MethodOptions, Status
from gapwise.stages.solver.running import Flags
from gapwise.stages.solver.supports import Pool, Supports

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Ended = tuple[Status, Certificate | None]
"""How a lambda ended; no certificate from a method without a feasible dual point."""

Boundary = Callable[["AnyMethod"], Status | None]
"""boundary(method): called wherever the state can be committed. Any status that it returns stops the solve there."""

Opts = TypeVar("Opts", bound=MethodOptions)


class Method(Generic[Opts]):
    """A block-coordinate method on a problem, at one lambda. A file of `methods` derives one and says `advance`.

    The other hooks are optional: `flags`, `prepare`, `start`, `point`, `rewrites_w`, `load`, `arrays`, `restore`, `facts`.

    Attributes
    ----------
    it : DualPoint
        The dual point by blocks, and what follows from it.
    own : dataclass, optional
        The method's own scalars, which are committed.
    stopped : bool
        Whether `boundary` ended the last `solve`.

    Examples
    --------
    Visits in the order of the data, and an exact pass after each round:

    >>> from gapwise.stages.solver.exact import exact_pass, judged
    >>> from gapwise.stages.solver.visits import run_steps
    >>> class InOrder(Method):
    ...     def advance(self, goal):
    ...         run_steps(self.it, self.it.flags(), np.arange(self.problem.n), self.problem.n)
    ...         point, _ = exact_pass(self.it)
    ...         self.ledger.record(point)
    ...         status = judged(self.it, point, goal)
    ...         return (status, point) if status else None
    >>> from gapwise import MulticlassSVM
    >>> from gapwise.stages.solver.options import BlockOptions
    >>> from gapwise.stages.solver.state import truth_pool
    >>> problem = MulticlassSVM().problem(np.eye(3), [0, 1, 2])
    >>> method = InOrder.begin(problem, BlockOptions("in_order"), truth_pool(problem), seed=0)
    >>> bool(method.primal().any())  # the true labellings have all weight, so w = 0
    False
    """

    specs: ClassVar[tuple[ArraySpec, ...]] = SPECS
    """The arrays that are committed. Those with the only dimension `iteration` are a trace of the method's own."""

    def __init__(self, it: DualPoint, options: Opts) -> None:
        self.it, self.options = it, options
        self.problem, self.ledger = it.problem, it.ledger
        self.own: DataclassInstance | None = None
        self.stopped = False
        self.prepare()

    # -- what a method says -------------------------------------------------------------------------------------------
    @classmethod
    def flags(cls, options: Opts) -> Flags:
        """How blocks are drawn, which moves they make, what is kept; this is of options that are `BlockOptions`."""
        return Flags.of(options)  # type: ignore[arg-type]

    @classmethod
    def of(cls, options: Opts) -> type[Method[Opts]]:
        """The class that serves these options: this one, or one derived from it."""
        return cls

    def prepare(self) -> None:
        """Make what the method holds besides the dual point."""

    def advance(self, goal: Goal) -> Ended | None:
        """From one rebase point to the next (None), or to the end of this lambda."""
        raise NotImplementedError(f"{type(self).__name__} has to define advance")

    def start(self) -> None:
        """Another lambda has begun."""

    @property
    def point(self) -> np.ndarray:
        """float64, (d,): the primal point that the next certificate will be computed for."""
        return self.it.state.w

    @property
    def rewrites_w(self) -> bool:
        """Whether certified weights may differ from those of the supports."""
        return False

    def load(self) -> None:
        """Compile or load every function that a solve calls; changes no result."""

    def arrays(self) -> dict[str, np.ndarray]:
        """What the method commits besides the dual point; under the names of `specs`."""
        return {}

    def restore(self, arrays: Arrays) -> None:
        """Take `arrays` from a commit, once `own` is restored; ValueError, naming the array, if one does not fit."""

    def facts(self) -> dict[str, Json]:
        """What path.zarr says of the solve besides its options."""
        return {}

    # -- the loop -----------------------------------------------------------------------------------------------------
    def solve(self, goal: Goal, boundary: Boundary) -> Ended:
        """Go from rebase point to rebase point until the goal is certified or a limit is reached.

        Parameters
        ----------
        goal : Goal
            The tolerance on the duality gap, and what may certify it.
        boundary : callable
            Called at every rebase point; if it returns a status, the call ends there and can be continued.

        Returns
        -------
        Status, Certificate
            The certificate is that of `primal()`; None if `boundary` stopped the solve or the method does not certify.
        """
        while True:
            with self.ledger.timed():
                self.it.rebase()
            stop = boundary(self)
            self.stopped = stop is not None
            if stop is not None:
                self.it.fresh = True  # a later call goes on as after a restore
                return stop, None
            with self.ledger.timed():
                ended = self.advance(goal)
            if ended:
                check_finite(ended)
                return ended

    def warm_up(self) -> None:
        """Compile or load every function that a solve calls, so that seconds exclude compilation; changes no result."""
        if not self.it.fresh:
            self.it.rebase()
        self.load()

    def start_lambda(self, lam: float, breakpoint: int, *, exact_due: bool = False) -> None:
        """Begin another lambda from the current point."""
        self.it.begin_lambda(lam, breakpoint, exact_due)
        self.start()

    def move_to(self, lam: float, breakpoint: int, warm_start: str) -> None:
        """Begin another lambda; `warm_start` (keep_primal, keep_dual, none) says what to keep."""
        self.it.move_to(lam, warm_start)
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

    def primal(self) -> np.ndarray:
        """float64, (d,): the solution at the current lambda."""
        return self.it.primal()

    def supports(self) -> Supports | None:
        """The dual point of the solution; None if the method has none."""
        return self.it.supports()

    def dual_value(self) -> float:
        """The current D(alpha); nan without a dual point."""
        return self.it.dual_value()

    def block_gaps(self) -> np.ndarray:
        """float64, (n,): the last known block gaps; inf where unknown, nan without a dual point."""
        return self.it.state.gap.copy()

    # -- its beginning, and committed state ---------------------------------------------------------------------------
    @classmethod
    def begin(cls, problem: Problem, options: Opts, pool: Pool, seed: int, *, spread: Spread = HERE) -> Self:
        """The method at the dual point of `pool`, at a rebase point; call `start_lambda` next.

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
        spread : Spread
            Where the oracles of exact passes are called; does not change the result.
        """
        kind, ledger = cls.of(options), Ledger(problem.n, options, spread=spread)
        point = DualPoint.begun(problem, kind.flags(options), pool, seed, ledger)
        return cast(Self, kind(point, options))

    @classmethod
    def restored(
        cls, problem: Problem, options: Opts, seed: int, arrays: Arrays, attrs: Facts, *,
        spread: Spread = HERE,
    ) -> Self:  # fmt: skip
        """The method at a committed point, which goes on as if it had never stopped.

        Parameters
        ----------
        problem, options, seed, spread
            As in `begin`.
        arrays : mapping of arrays
            What `specs` lists, as it was committed.
        attrs : mapping
            The committed scalars.

        Raises
        ------
        ValueError
            If an array does not fit the problem; names the array.
        """
        kind, ledger = cls.of(options), Ledger(problem.n, options, spread=spread)
        point = DualPoint.restored(problem, kind.flags(options), seed, arrays, attrs, ledger)
        method = kind(point, options)
        method._restore_own(attrs["own"])
        method.restore(arrays)
        return cast(Self, method)

    def packed(self) -> tuple[dict[str, np.ndarray], dict[str, Json]]:
        """Arrays of `specs`, and JSON-able attributes; copies, which a thread may write while the solve goes on."""
        arrays, attrs = self.it.packed()
        own = {name: np.array(array) for name, array in self.arrays().items()}
        return {**arrays, **own}, {**attrs, "own": self._packed_own()}

    def _packed_own(self) -> dict[str, Json]:
        return {} if self.own is None else asdict(self.own)

    def _restore_own(self, packed: Mapping[str, Json]) -> None:
        """Take the scalars from a commit; one that a commit of an earlier version lacks stays. TypeError for one that this
        method does not have."""
        known = self._packed_own()
        if not packed.keys() <= known.keys():
            raise TypeError(f"the state has scalars {sorted(packed)} of another method, expected {sorted(known)}")
        for name, value in packed.items():
            setattr(self.own, name, value)


def check_finite(ended: Ended) -> None:
    """Raise ArithmeticError if a lambda ends with a certificate that certifies nothing, because a number is not finite."""
    point = ended[1]
    if point is not None and not np.isfinite([point.gap, point.primal, point.dual]).all():
        raise ArithmeticError(
            f"solver: at lambda {point.lam:.6g} the primal objective is {point.primal:.3g} and the dual {point.dual:.3g}, "
            "expected finite numbers: features, losses or 1 / lambda are too large. Scale the features, or use a larger "
            "lambda."
        )


AnyMethod: TypeAlias = Method[Any]
"""A method whose options are not known."""
