"""Snapshots: where a solve stood once in so many passes, kept so that gaps can be computed when it is over.

A gap costs an exact pass; computed during a solve it would slow what it measures. A snapshot costs a copy of w and the
dual value of the present point, and its time is not counted. Snapshots are taken where the state can be committed, by counts
only, and change nothing: with or without them the solve has the same bits. How fine they can be is decided by
`solver.rebase_steps`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from stages.solver.method import Method


class Parts(Protocol):
    """Where snapshots are kept: `storage.snapshots.SnapshotParts`."""

    parts: list[dict[str, Any]]

    def resume(self, parts: Sequence[Mapping[str, Any]]) -> dict[str, np.ndarray]: ...
    def append(self, rows: Sequence[Mapping[str, Any]]) -> None: ...


class Snapshots:
    """The snapshots of one solve.

    Parameters
    ----------
    store : Parts
    every_passes : float
        Effective passes between two of them, at least; 0: none are taken.
    """

    def __init__(self, store: Parts, every_passes: float) -> None:
        self.store, self.every_passes = store, every_passes
        self.rows: list[dict[str, Any]] = []
        self._last: tuple[int, int] | None = None

    def check(self, averaging: str) -> None:
        """ValueError where w alone would not be what the solver returns."""
        if self.every_passes and averaging != "none":
            raise ValueError(
                "snapshots.every_passes: snapshots are of w, not of its average; use solver.averaging=none"
            )

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        return sum(row["weights"].nbytes for row in self.rows)

    def resume(self, parts: list[dict[str, Any]]) -> None:
        """Go on after the parts of a commit."""
        last = self.store.resume(parts)
        self._last = (int(last["breakpoint"][-1]), int(last["oracle_calls"][-1])) if last else None

    def offer(self, solver: Method) -> None:
        """Take one if it is due; the solver stands where it can be committed."""
        calls, at = solver.oracle_calls, solver.at
        if not self.every_passes:
            return
        apart = self.every_passes * solver.problem.n
        if self._last is not None and self._last[0] == at.breakpoint and calls - self._last[1] < apart:
            return
        self._last = (at.breakpoint, calls)
        self.rows.append(
            {
                "breakpoint": at.breakpoint,
                "lambda": at.lam,
                "passes": calls / solver.problem.n,
                "oracle_calls": calls,
                "steps": solver.steps,
                "seconds": at.seconds,
                "stale_gap": solver.known_gap,
                "dual": solver.dual_value(),
                "weights": solver.point.copy(),
            }
        )

    def commit(self) -> list[dict[str, Any]]:
        """Write what is in memory; what the commit that follows has to remember."""
        if self.rows:
            self.store.append(self.rows)
            self.rows.clear()
        return self.store.parts
