"""Snapshots: copies of w taken every few passes of a solve, from which gaps can be computed when it is over.

A gap costs an exact pass; computed during a solve it would slow down what it measures. A snapshot costs a copy of w and the
dual value of the current point, and its time is not counted. Snapshots are taken where the state can be committed, by
counts only, and change nothing: the solve has the same bits with or without them. `solver.rebase_steps` limits how close
together they can be.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from gapwise.records import Json
from gapwise.stages.solver.events import Event, Kind
from gapwise.stages.solver.method import AnyMethod
from gapwise.stages.solver.options import MethodOptions, Status
from gapwise.stages.solver.radii import nonuniformity


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
    """The snapshots of one solve; an observer of its engine."""

    def __init__(self, store: Parts, spacing: Spacing) -> None:
        self.store, self.spacing = store, spacing
        self.rows: list[dict[str, float | np.ndarray]] = []
        self._last: tuple[int, int] | None = None

    def __call__(self, event: Event) -> Status | None:
        """Take a snapshot at a boundary, if one is due."""
        if event.kind is Kind.BOUNDARY:
            self.offer(event.engine.solver)
        return None

    def check(self, options: MethodOptions) -> None:
        """Raise ValueError if the solve may certify another point than the one that snapshots show."""
        if self.spacing.every_passes and options.certifies_unseen:
            raise ValueError(
                "snapshots.every_passes: snapshots are of w, not of its average; use solver.averaging=none"
            )

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
