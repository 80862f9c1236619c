"""What path, commits and pipeline know about an optimiser at one lambda; the registry is `stages.solver.methods`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

if TYPE_CHECKING:
    import numpy as np

    from gapwise.stages.parallel import Spread
    from gapwise.stages.problems.marginals import Scores
    from gapwise.stages.problems.protocol import Problem
    from gapwise.stages.solver.objective import Certificate
    from gapwise.stages.solver.options import Status
    from gapwise.stages.solver.supports import Pool, Supports

ArraySpec = tuple[str, tuple[str, ...], str, str]
"""A committed array: name, dimensions, dtype ("label": the structure's label type), meaning."""

Boundary = Callable[[Any], "Status | None"]
"""boundary(method): called wherever the state can be committed. Returns INTERRUPTED or TIME_LIMIT to stop there."""


class Method(Protocol):
    """An optimiser at one lambda: it solves, reports what it found, and packs its state.

    Attributes
    ----------
    specs : tuple of ArraySpec
        The arrays that `packed` returns. Those with the only dimension `iteration` are a trace of the method's own: the end
        of the solve leaves them in trace.zarr.
    certifies : bool
        Whether it holds a feasible dual point. If not, `solve` returns no certificate, path rules refuse the method, and
        verify, summary and figures say that nothing is certified.
    at : Counts
        The scalars of the solve: lambda, breakpoint, seconds, oracle calls.
    trace : list of rows as `counts.TRACE`
    hinges : (n,) array
        Hinges of the blocks at the last exact pass; only of a method that certifies.
    untouched : bool
        True while an exact pass is under way, which changes nothing until it ends: if it fails, the state can be committed.
    may_stop : bool
        Set at each boundary: whether work between two boundaries may end with the error of `Spread.check`.
    revisits : bool
        Set by `path.walk.walk`: whether the path goes up and down, as one whose epsilon falls does, so that what served a
        lambda once may serve it again.
    rewrites_w : bool
        Whether certified weights may differ from those of the supports.
    """

    specs: ClassVar[tuple[ArraySpec, ...]]
    certifies: ClassVar[bool]

    problem: Problem
    options: Any
    at: Any
    trace: list[tuple[float, ...]]
    hinges: np.ndarray
    untouched: bool
    may_stop: bool
    revisits: bool

    @classmethod
    def begin(
        cls, problem: Problem, options: Any, pool: Pool, seed: int, *, own_primal: bool = True, spread: Spread = ...
    ) -> Self:
        """The method at the dual point of `pool`; call `start_lambda` next. `own_primal`: certified weights may differ
        from those of the dual point."""

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

    def primal(self) -> np.ndarray:
        """float64, (d,): the solution at the current lambda."""

    def supports(self) -> Supports | Scores | None:
        """The dual point of the solution: labellings with weights, or the scores that give all labellings a weight.

        None if the method has no dual point. Paths need labellings: `combinations` refuses them otherwise.
        """

    def block_gaps(self) -> np.ndarray:
        """float64, (n,): the last known block gaps; nan where the method has none."""

    def mean_hinge(self) -> float:
        """R: the mean hinge at `primal()`; only called for a method that does not certify."""

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

    @property
    def rewrites_w(self) -> bool: ...

    def dual_weights(self) -> np.ndarray:
        """float64, (d,): w(alpha) of the current dual point; only called on paths, where `rewrites_w` is True."""

    def start_lambda(self, lam: float, breakpoint: int, *, exact_due: bool = False) -> None:
        """Begin another lambda from the current point."""

    def move_to(self, lam: float, breakpoint: int, warm_start: str) -> None:
        """Begin another lambda; `warm_start` (keep_primal, keep_dual, none) says what to keep."""

    def packed(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Arrays of `specs`, and JSON-able attributes; copies, which a thread may write while the solve goes on."""

    @classmethod
    def restored(
        cls,
        problem: Problem,
        options: Any,
        seed: int,
        arrays: Mapping[str, np.ndarray],
        attrs: Mapping[str, Any],
        *,
        own_primal: bool = True,
        spread: Spread = ...,
    ) -> Self:
        """The method at a committed point."""
