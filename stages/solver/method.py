"""What path, commits and pipeline know about an optimiser at one lambda; `solver.Solver` is one with any method."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TypeAlias, Union

if TYPE_CHECKING:
    import numpy as np

    from gapwise.stages.problems.marginals import Scores
    from gapwise.stages.problems.protocol import Problem
    from gapwise.stages.solver.capabilities import MethodCapabilities
    from gapwise.stages.solver.counts import Counts
    from gapwise.stages.solver.objective import Certificate
    from gapwise.stages.solver.options import MethodOptions, Status
    from gapwise.stages.solver.supports import Supports

ArraySpec = tuple[str, tuple[str, ...], str, str]
"""A committed array: name, dimensions, dtype ("label": the structure's label type), meaning."""

Json: TypeAlias = Union[bool, int, float, str, "list[Json]", "dict[str, Json]", None]
"""What JSON holds."""

Boundary = Callable[["Method"], "Status | None"]
"""boundary(method): called wherever the state can be committed. Returns INTERRUPTED or TIME_LIMIT to stop there."""


class Method(Protocol):
    """An optimiser at one lambda: it solves, reports what it found, and packs its state.

    Attributes
    ----------
    at : Counts
        The scalars of the solve: lambda, breakpoint, seconds, oracle calls.
    trace : list of rows as `counts.TRACE`
    may_stop : bool
        Set at each boundary: whether work between two boundaries may end with the error of `Spread.check`.
    revisits : bool
        Set by `path.walk.walk`: whether the path goes up and down, as one whose epsilon falls does, so that what served a
        lambda once may serve it again.
    """

    problem: Problem
    options: MethodOptions
    may_stop: bool
    revisits: bool

    @property
    def capabilities(self) -> MethodCapabilities:
        """What the method can do."""

    @property
    def certifies(self) -> bool:
        """Whether it holds a feasible dual point: `capabilities.certifies`."""

    @property
    def specs(self) -> tuple[ArraySpec, ...]:
        """The arrays that `packed` returns; those with the only dimension `iteration` are left in trace.zarr at the end."""

    @property
    def at(self) -> Counts: ...

    @property
    def trace(self) -> list[tuple[float, ...]]: ...

    def solve(
        self, tolerance: float, boundary: Boundary, *, relative: bool = False, exact: bool = True
    ) -> tuple[Status, Certificate | None]:
        """Solve at the current lambda to `tolerance`.

        Parameters
        ----------
        tolerance : float
            On the duality gap, or on gap / dual if `relative`.
        boundary : callable
            Called wherever the state can be committed; if it returns a status, the call ends there and can be continued.
        exact : bool
            False (heuristic paths): the stale gap sum decides, and no exact pass is made.

        Returns
        -------
        Status, Certificate
            The certificate is that of `primal()`; None if `boundary` stopped the solve or the method does not certify.
        """

    def warm_up(self) -> None:
        """Compile or load every function that a solve calls, so that seconds exclude compilation; changes no result."""

    def start_lambda(self, lam: float, breakpoint: int, *, exact_due: bool = False) -> None:
        """Begin another lambda from the current point."""

    def move_to(self, lam: float, breakpoint: int, warm_start: str) -> None:
        """Begin another lambda; `warm_start` (keep_primal, keep_dual, none) says what to keep."""

    # -- the solution -------------------------------------------------------------------------------------------------
    def primal(self) -> np.ndarray:
        """float64, (d,): the solution at the current lambda."""

    def supports(self) -> Supports | Scores | None:
        """The dual point of the solution: labellings with weights, or the scores that give all labellings a weight.

        None if the method has no dual point. Paths need labellings: `combinations` refuses them otherwise.
        """

    def block_gaps(self) -> np.ndarray:
        """float64, (n,): the last known block gaps; nan where the method has none."""

    def mean_hinge(self) -> float:
        """R: the mean hinge at `primal()`."""

    @property
    def hinges(self) -> np.ndarray:
        """float64, (n,): hinges of the blocks at the last exact pass; only of a method that certifies."""

    @property
    def views(self) -> tuple[str, str]:
        """Views of the steps that may call the oracle, and of those that do not; ("", "") of methods without such steps."""

    @property
    def rewrites_w(self) -> bool:
        """Whether certified weights may differ from those of the supports."""

    def dual_weights(self) -> np.ndarray:
        """float64, (d,): w(alpha) of the current dual point; only called on paths, where `rewrites_w` is True."""

    # -- on the way ---------------------------------------------------------------------------------------------------
    @property
    def point(self) -> np.ndarray:
        """float64, (d,): the primal point that the next certificate will be computed for."""

    def dual_value(self) -> float:
        """The current D(alpha); nan without a dual point."""

    @property
    def known_gap(self) -> float:
        """The gap as far as it is known; inf or nan if it is not."""

    @property
    def oracle_calls(self) -> int:
        """All max-oracle calls so far, those of the path's start included."""

    @property
    def steps(self) -> int:
        """Steps so far."""

    @property
    def passes_here(self) -> float:
        """Effective passes (oracle calls / n) at the current lambda."""

    # -- committed state ----------------------------------------------------------------------------------------------
    @property
    def untouched(self) -> bool:
        """True while an exact pass is under way, which changes nothing until it ends: if it fails, commit the state."""

    def packed(self) -> tuple[dict[str, np.ndarray], dict[str, Json]]:
        """Arrays of `specs`, and JSON-able attributes; copies, which a thread may write while the solve goes on."""
