"""One process's share of a solve: what it has finished since the last commit, and when it commits again.

Which points are committed changes no result: each holds everything that the solve goes on from.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from gapwise.stages.problems.certainty import UPPER_BOUNDED
from gapwise.stages.solver.counts import TRACE
from gapwise.stages.solver.method import Method
from gapwise.stages.solver.options import Status
from gapwise.stages.solver.path.breakpoints import Breakpoint
from gapwise.stages.solver.path.rule import PathRule, PathStart
from gapwise.stages.solver.snapshots import Snapshots
from gapwise.stages.trace import trace_of
from gapwise.storage.behind import CommitsBehind
from gapwise.storage.format import FORMAT_VERSION
from gapwise.storage.layout import ArraySpec
from gapwise.storage.results import stack

MAX_BUFFERED_BYTES = 64 << 20
"""Bytes of finished breakpoints in memory that trigger a commit."""

MAX_WAITING_BYTES = 1 << 30
"""The same where a commit is in flight: the solve then waits for it."""

KEPT_SECONDS = 0.25
"""Where the way from one rebase point to the next takes longer, a stop does not wait for the next."""

Report = Callable[[Mapping[str, Any]], None]
"""report(progress): the current lambda, breakpoint, passes, gap, tolerance, oracle_calls; called often, must be cheap."""


class Packed(NamedTuple):
    """A state that can be committed."""

    specs: list[ArraySpec]
    arrays: dict[str, np.ndarray]
    attrs: dict[str, Any]
    trace: np.ndarray
    finished: int
    """breakpoints finished since the last commit"""


@dataclass
class Attempt:
    """One process's share of a solve: what it finished since the last commit, and when to commit again."""

    rule: PathRule
    start: PathStart | None
    commits: CommitsBehind
    snapshots: Snapshots
    stop: Callable[[], bool]
    every_seconds: float
    max_seconds: float
    report: Report
    observe: Callable[[np.ndarray], None]
    certainty: str
    """What the gaps of this path are."""
    finished: list[Breakpoint] = field(default_factory=list)
    last_commit: float = field(default_factory=time.monotonic)
    last_boundary: float | None = None
    stopped: bool = False
    """Whether `boundary` has ended the solve."""
    kept: Packed | None = None
    """The state at the last boundary, if it is not committed and the next one may be far."""

    def boundary(self, solver: Method) -> Status | None:
        """Called where the state can be committed: reports, and takes a snapshot, commits or stops if due."""
        status = self._boundary(solver)
        self.stopped = status is not None
        return status

    def _boundary(self, solver: Method) -> Status | None:
        free, now = self.commits.free, time.monotonic()
        at, rule = solver.at, self.rule.open_end()
        self.report(
            {
                "lambda": at.lam,
                "breakpoint": at.breakpoint,
                "passes": solver.passes_here,
                "gap": solver.known_gap + (at.slack if self.certainty == UPPER_BOUNDED else 0.0),
                "certainty": self.certainty,
                "tolerance": self.rule.tolerance().gap if solver.certifies else math.nan,
                "oracle_calls": solver.oracle_calls,
                "seconds": at.seconds,
                **({"certified": rule.reached} if rule else {}),
            }
        )
        self.snapshots.offer(solver)
        if self.stop():
            return Status.INTERRUPTED
        if rule and (ended := rule.ended):
            return ended
        if at.seconds >= self.max_seconds:
            return Status.TIME_LIMIT
        buffered = sum(b.nbytes for b in self.finished) + self.snapshots.nbytes
        waited = now - self.last_commit
        due = not 0.0 <= waited < self.every_seconds  # also commit if the clock was set back
        far = self.last_boundary is None or not 0.0 <= now - self.last_boundary < KEPT_SECONDS
        self.last_boundary, self.kept = now, None
        taken = buffered > MAX_WAITING_BYTES or (free and (due or buffered > MAX_BUFFERED_BYTES))
        solver.may_stop = taken or far
        if taken:
            self.commit(solver)
        elif far:
            self.kept = self.packed(solver)
        return None

    def commit(self, solver: Method, wait: bool = False) -> None:
        """Commit the state of the method and of the rule; `wait`: and return when it is committed."""
        self.commits.settle()  # before there is one more copy of the state in memory
        self.store(self.packed(solver), wait)

    def packed(self, solver: Method) -> Packed:
        """What a commit has of the method and of the rule."""
        arrays, method_attrs = solver.packed()
        rule_arrays, rule_attrs = self.rule.packed()
        attrs = {
            "format_version": FORMAT_VERSION,
            "trace_columns": list(TRACE),
            "method": {"name": solver.options.method, **method_attrs},
            "rule": rule_attrs,
            "start": None if self.start is None else self.start.scalars(),
        }
        specs = [ArraySpec(*spec) for spec in (*solver.specs, *self.rule.specs)]
        if sorted([*arrays, *rule_arrays]) != sorted(spec.name for spec in specs):
            raise TypeError(f"solver.method={solver.options.method}: the arrays it packs are not those of its specs")
        rows = trace_of(solver, self.rule)[0]
        return Packed(specs, {**arrays, **rule_arrays}, attrs, rows, len(self.finished))

    def store(self, packed: Packed, wait: bool = False) -> None:
        """Commit a state, with the breakpoints finished so far; nothing takes these again."""
        finished = tuple(self.finished)

        def segment() -> dict[str, Any]:
            return {"arrays": stack([b.record() for b in finished]), "attrs": {"format_version": FORMAT_VERSION}}

        self.commits.commit(
            packed.specs,
            packed.arrays,
            {**packed.attrs, "snapshots": list(self.snapshots.commit())},
            segment if finished else None,
            nbytes=sum(array.nbytes for array in packed.arrays.values()) + sum(b.nbytes for b in finished),
            then=lambda: self.observe(packed.trace),
            wait=wait,
        )
        self.finished.clear()
        self.last_commit = time.monotonic()
