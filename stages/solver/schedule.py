"""What a method is: an iterate that it moves, and a schedule that says what comes next (a file of `methods`).

A method inherits nothing. Its file defines `METHOD`, a `solver.Recipe`, from which a `solver.Solver` gets both
parts; most recipes are made by `block_method.block_method`. Everything that a schedule does not say is left to the iterate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from gapwise.records import Json
from gapwise.stages.solver.ledger import Ledger
from gapwise.stages.solver.objective import Certificate, Mixture
from gapwise.stages.solver.options import Status
from gapwise.stages.solver.supports import Supports

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Arrays = Mapping[str, np.ndarray]
"""Committed arrays by name."""


class Goal(NamedTuple):
    """What a lambda is solved to."""

    tolerance: float
    """On the duality gap, or on gap / dual if `relative`."""
    relative: bool = False
    exact: bool = True
    """False (heuristic paths): the stale gap sum decides, and no exact pass is made."""
    mixture: Mixture | None = None
    """A primal point that may certify the lambda as well, for methods whose w need not be w(alpha)."""

    def bound(self, dual: float) -> float:
        """The gap to reach, given the dual value."""
        return self.tolerance * (max(dual, 0.0) if self.relative else 1.0)


Ended = tuple[Status, Certificate | None]
"""How a lambda ended; no certificate from a method without a feasible dual point."""


class Iterate(Protocol):
    """A point that a method moves, and what follows from it; `iterate.Iterate` is that of block methods."""

    ledger: Ledger
    hinges: np.ndarray
    """float64, (n,): hinges of the blocks at the last exact pass"""
    fresh: bool
    """True right after a restore or a stop: the point is at a rebase point already"""

    @property
    def w(self) -> np.ndarray:
        """float64, (d,): the present primal point."""

    @property
    def views(self) -> tuple[str, str]:
        """Views (`block.views`) of the steps that may call the oracle and of the others; ("", "") without such steps."""

    @property
    def known_gap(self) -> float:
        """The gap as far as it is known; inf or nan if it is not."""

    def rebase(self) -> None:
        """Recompute what is derived from what is committed, in a fixed order; the state can be committed then."""

    def begin_lambda(self, lam: float, breakpoint: int, exact_due: bool) -> None:
        """Begin another lambda at the present point."""

    def move_to(self, lam: float, warm_start: str) -> None:
        """Go to the point at which another lambda begins."""

    def primal(self) -> np.ndarray:
        """float64, (d,): the w of the last certificate, or the present one."""

    def mean_hinge(self) -> float:
        """R at the last exact pass."""

    def supports(self) -> Supports | None:
        """The dual point: labellings with weights; None: there is none."""

    def block_gaps(self) -> np.ndarray:
        """float64, (n,): the last known block gaps; nan where there are none."""

    def dual_value(self) -> float:
        """D(alpha) at present; nan without a dual point."""

    def dual_weights(self) -> np.ndarray:
        """float64, (d,): w(alpha); only called on paths."""

    def packed(self) -> tuple[dict[str, np.ndarray], dict[str, Json]]:
        """Committed arrays and JSON-able attributes, copies; called at a rebase point."""


def nothing() -> None:
    """A hook that does nothing."""


def no_arrays() -> dict[str, np.ndarray]:
    """The arrays of a schedule that commits none."""
    return {}


def no_facts() -> dict[str, Json]:
    """The facts of a schedule that has none."""
    return {}


def ignore(arrays: Arrays) -> None:
    """Restores a schedule that commits no arrays."""


@dataclass
class Schedule:
    """What comes next in a solve at one lambda: the functions by which a method decides. All but `advance` are optional."""

    advance: Callable[[Goal], Ended | None]
    """From one rebase point to the next (None), or to the end of this lambda."""
    start: Callable[[], None] = nothing
    """Another lambda has begun."""
    point: Callable[[], np.ndarray] | None = None
    """(d,): the primal point that the next certificate will be computed for; None: the iterate's w."""
    rewrites_w: bool = False
    """Whether certified weights may differ from those of the supports."""
    warm_up: Callable[[], None] = nothing
    """Compile or load every function that a solve calls; changes no result."""
    counts: DataclassInstance | None = None
    """A dataclass of the method's own scalars, which are committed; None: it has none."""
    arrays: Callable[[], dict[str, np.ndarray]] = no_arrays
    """What the method commits besides the iterate; under the names of `Recipe.specs`."""
    restore: Callable[[Arrays], None] = ignore
    """Take `arrays` from a commit, once `counts` are restored; ValueError, naming the array, if one does not fit."""

    facts: Callable[[], dict[str, Json]] = no_facts
    """What path.zarr says of the solve besides its options."""

    def packed_counts(self) -> dict[str, Json]:
        """The method's own scalars."""
        return {} if self.counts is None else asdict(self.counts)

    def restore_counts(self, packed: Mapping[str, Json]) -> None:
        """Take the scalars from a commit; one that a commit of an earlier version lacks stays. TypeError for one that this
        method does not have."""
        known = self.packed_counts()
        if not packed.keys() <= known.keys():
            raise TypeError(f"the state has scalars {sorted(packed)} of another method, expected {sorted(known)}")
        for name, value in packed.items():
            setattr(self.counts, name, value)
