"""What an engine tells while it solves, and who listens: progress, stops, limits; and the sink that keeps its states."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from enum import Enum, auto
from typing import NamedTuple, Protocol

import numpy as np

from gapwise.records import Facts
from gapwise.stages.problems.certainty import UPPER_BOUNDED
from gapwise.stages.solver.method import AnyMethod
from gapwise.stages.solver.options import Status
from gapwise.stages.solver.packed import ArraySpec
from gapwise.stages.solver.path.breakpoints import Breakpoint
from gapwise.stages.solver.path.rule import PathRule


class Kind(Enum):
    """What happened."""

    BOUNDARY = auto()
    """The method is at a rebase point: its state may be committed, and the walk may end here."""
    CERTIFIED = auto()
    """A lambda is done."""
    LIMIT = auto()
    """An observer or a limit ended the walk at a boundary, from where it can go on."""
    END = auto()
    """The walk is at its end."""


class Packed(NamedTuple):
    """A state that can be committed, and gone on from."""

    specs: tuple[ArraySpec, ...]
    arrays: dict[str, np.ndarray]
    """copies, so that a thread may write them while the solve goes on"""
    attrs: dict[str, object]
    """JSON-able"""
    trace: np.ndarray
    """float64, (rows, columns): the trace so far (`ledger.trace_of`)"""


class Walking(Protocol):
    """What an observer sees of an engine."""

    solver: AnyMethod
    rule: PathRule

    @property
    def certainty(self) -> str:
        """What the gaps of this path are (`problems.certainty`)."""

    def pack(self) -> Packed:
        """The present state; only at a boundary."""


class Event(NamedTuple):
    """One message of an engine."""

    kind: Kind
    engine: Walking
    breakpoint: Breakpoint | None = None
    """of CERTIFIED"""
    status: Status | None = None
    """of LIMIT and END"""


Observer = Callable[[Event], "Status | None"]
"""observer(event): called often, must be cheap. A status returned at a BOUNDARY ends the walk there."""

Report = Callable[[Facts], None]
"""report(progress): what `progress` returns."""


class Sink(Protocol):
    """Keeps the states and breakpoints of a walk: `storage.sink`.

    What it writes, and when, changes no bit of the result. What was committed when `commit` returned is not lost. Every
    method may raise OSError where the storage fails.

    Examples
    --------
    A sink that commits each offer to memory, which ``engine.walk(sink=Newest())`` would take:

    >>> class Newest:
    ...     def __init__(self):
    ...         self.state, self.solved = None, []
    ...
    ...     def offer(self, pack, breakpoints):
    ...         self.commit(pack, breakpoints)
    ...         return True
    ...
    ...     def commit(self, pack=None, breakpoints=()):
    ...         self.state = self.state if pack is None else pack()
    ...         self.solved += breakpoints
    ...
    ...     def end(self, breakpoints):
    ...         self.solved += breakpoints
    >>> sink = Newest()
    >>> sink.offer(lambda: Packed((), {"w": np.ones(2)}, {}, np.empty((0, 0))), [])
    True
    >>> sink.commit()  # the last offer is committed already
    >>> sink.state.arrays["w"].tolist()
    [1.0, 1.0]

    Notes
    -----
    Arguments of the methods:

    pack : callable
        pack() -> the present `Packed` state; slow, so a sink calls it only for a state that it keeps.
    breakpoints : sequence of Breakpoint
        The breakpoints since the last offer.
    """

    def offer(self, pack: Callable[[], Packed], breakpoints: Sequence[Breakpoint]) -> bool:
        """A state that may be committed, and the breakpoints since the last offer.

        Returns whether this state is committed or held in memory, so that work may be abandoned before the next offer.
        """

    def commit(self, pack: Callable[[], Packed] | None = None, breakpoints: Sequence[Breakpoint] = ()) -> None:
        """Commit the state of `pack`, or the last offer that is held; returns when that is done."""

    def end(self, breakpoints: Sequence[Breakpoint]) -> None:
        """Take the breakpoints since the last offer, at the end of a walk; returns when nothing is being written."""


class Progress:
    """An observer that reports the present gap and its tolerance at each boundary."""

    def __init__(self, report: Report) -> None:
        self.report = report

    def __call__(self, event: Event) -> Status | None:
        if event.kind is Kind.BOUNDARY:
            self.report(progress(event.engine))
        return None


class Stop:
    """An observer that ends the walk with INTERRUPTED at the first boundary where `stop()` is True."""

    def __init__(self, stop: Callable[[], bool]) -> None:
        self.stop = stop

    def __call__(self, event: Event) -> Status | None:
        return Status.INTERRUPTED if event.kind is Kind.BOUNDARY and self.stop() else None


def progress(engine: Walking) -> dict[str, float | str]:
    """The present lambda, breakpoint, passes, gap, its certainty and tolerance, whether both are shares of the
    dual objective (the gap is then nan where that is unknown or not positive), oracle_calls, seconds.

    `certified` as well, where the path may be stopped anywhere: the eps that holds at every lambda so far.
    """
    solver, counts, rule, asked = engine.solver, engine.solver.counts, engine.rule.open_end(), engine.rule.tolerance()
    gap = float(np.sum(solver.block_gaps())) + (counts.slack if engine.certainty == UPPER_BOUNDED else 0.0)
    if asked.relative:
        dual = solver.ledger.last_dual(counts.breakpoint)
        gap = gap / dual if dual > 0.0 else math.nan
    return {
        "lambda": counts.lam,
        "breakpoint": counts.breakpoint,
        "passes": solver.ledger.passes_here,
        "gap": gap,
        "certainty": engine.certainty,
        "tolerance": asked.gap if solver.options.certifies else math.nan,
        "relative": asked.relative,
        "oracle_calls": solver.oracle_calls,
        "seconds": counts.seconds,
        **({"certified": rule.reached} if rule else {}),
    }


def limit_of(engine: Walking) -> Status | None:
    """TIME_LIMIT where the seconds are over; how an open-ended path ends that has reached its eps; else None."""
    rule = engine.rule.open_end()
    if rule and (ended := rule.ended):
        return ended
    return Status.TIME_LIMIT if engine.solver.counts.seconds >= engine.solver.options.max_seconds else None
