"""What an engine tells while it solves, who listens (progress, stops, snapshots), and the sink that keeps its states."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from gapwise.records import Facts, Json
from gapwise.stages.problems.capabilities import UPPER_BOUNDED
from gapwise.stages.solver.block.sampling import nonuniformity
from gapwise.stages.solver.counts import ArraySpec
from gapwise.stages.solver.method import AnyMethod
from gapwise.stages.solver.options import Status
from gapwise.stages.solver.path.breakpoints import Breakpoint

if TYPE_CHECKING:
    from gapwise.stages.solver.engine import Engine


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


class Event(NamedTuple):
    """One message of an engine."""

    kind: Kind
    engine: Engine
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


class Parts(Protocol):
    """Where snapshots are kept: `storage.snapshots.SnapshotParts`."""

    @property
    def parts(self) -> list[dict[str, Json]]: ...

    def resume(self, parts: Sequence[Mapping[str, object]]) -> dict[str, np.ndarray]: ...
    def append(self, rows: Sequence[Mapping[str, object]]) -> None: ...


@dataclass(frozen=True)
class Spacing:
    """How far apart snapshots are."""

    every_passes: float = 0.0
    """Least number of effective passes between two snapshots; 0: none are taken."""
    every_share: float = 0.0
    """The same as a share of the passes so far at the current lambda, where that is more."""


class Snapshots:
    """An observer that copies w every few passes of a solve, so that gaps can be computed from the copies when it is over.

    A gap costs an exact pass; computed during a solve it would slow down what it measures. A snapshot costs a copy of w and
    the dual value of the current point, and its time is not counted. Snapshots are taken where the state can be committed,
    by counts only: the solve has the same bits with or without them. `solver.rebase_steps` limits how close they can be.
    """

    def __init__(self, store: Parts, spacing: Spacing) -> None:
        self.store, self.spacing = store, spacing
        self.rows: list[dict[str, float | np.ndarray]] = []
        self._last: tuple[int, int] | None = None

    def __call__(self, event: Event) -> Status | None:
        """Take a snapshot at a boundary, if one is due."""
        if event.kind is Kind.BOUNDARY:
            self.offer(event.engine.solver)
        return None

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        return sum(np.asarray(row["weights"]).nbytes for row in self.rows)

    def resume(self, parts: Sequence[Mapping[str, object]]) -> None:
        """Continue after the parts of a commit."""
        last = self.store.resume(parts)
        self._last = (int(last["breakpoint"][-1]), int(last["oracle_calls"][-1])) if last else None

    def offer(self, solver: AnyMethod) -> None:
        """Take a snapshot if one is due; call only where the state can be committed."""
        calls, counts = solver.oracle_calls, solver.counts
        if not self.spacing.every_passes:
            return
        apart = max(
            self.spacing.every_passes * solver.problem.n, self.spacing.every_share * (calls - counts.calls_before)
        )
        if self._last is not None and self._last[0] == counts.breakpoint and calls - self._last[1] < apart:
            return
        self._last = (counts.breakpoint, calls)
        self.rows.append(
            {
                "breakpoint": counts.breakpoint,
                "lambda": counts.lam,
                "passes": calls / solver.problem.n,
                "oracle_calls": calls,
                "steps": solver.steps,
                "seconds": counts.seconds,
                "stale_gap": float(np.sum(solver.block_gaps())),
                "dual": solver.dual_value(),
                "nonuniformity": nonuniformity(solver.block_gaps()),
                "weights": solver.point.copy(),
            }
        )

    def commit(self) -> list[dict[str, Json]]:
        """Write the snapshots in memory; returns what the next commit has to record."""
        if self.rows:
            self.store.append(self.rows)
            self.rows.clear()
        return self.store.parts


def progress(engine: Engine) -> dict[str, float | str]:
    """The present lambda, breakpoint, passes, gap, its certainty and tolerance, whether both are shares of the
    dual objective (the gap is then nan where that is unknown or not positive), oracle_calls, seconds.

    `certified` as well, where the path may be stopped anywhere: the eps that holds at every lambda so far.
    """
    solver, counts, rule, goal = engine.solver, engine.solver.counts, engine.rule.open_end(), engine.rule.goal()
    gap = float(np.sum(solver.block_gaps())) + (counts.slack if engine.certainty == UPPER_BOUNDED else 0.0)
    if goal.relative:
        dual = solver.ledger.last_dual(counts.breakpoint)
        gap = gap / dual if dual > 0.0 else math.nan
    return {
        "lambda": counts.lam,
        "breakpoint": counts.breakpoint,
        "passes": solver.ledger.passes_here,
        "gap": gap,
        "certainty": engine.certainty,
        "tolerance": goal.tolerance if solver.options.certifies else math.nan,
        "relative": goal.relative,
        "oracle_calls": solver.oracle_calls,
        "seconds": counts.seconds,
        **({"certified": rule.reached} if rule else {}),
    }


def limit_of(engine: Engine) -> Status | None:
    """TIME_LIMIT where the seconds are over; how an open-ended path ends that has reached its eps; else None."""
    rule = engine.rule.open_end()
    if rule and (ended := rule.ended):
        return ended
    return Status.TIME_LIMIT if engine.solver.counts.seconds >= engine.solver.options.max_seconds else None
