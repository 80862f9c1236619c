"""Snapshots: where a solve stood once in so many passes, kept so that gaps can be computed when it is over.

A gap costs an exact pass; computed during a solve it would slow what it measures. A snapshot costs a copy of w and the
dual value of the present point, and its time is not counted. Snapshots are taken at rebase points only, by counts only,
and change nothing: with or without them the solve has the same bits. How fine they can be is decided by
`solver.rebase_steps`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stages.solver.codes import STEPS
from stages.solver.fixed_lambda import Solver
from stages.solver.methods.accelerated import dual_and_excess
from storage.layout import SNAPSHOTS
from storage.places import Place
from storage.snapshots import SnapshotParts


class Snapshots:
    """The snapshots of one solve.

    Parameters
    ----------
    run_dir : Path or ObjectPlace
        Parts go to ``run_dir/snapshots``, all of them to ``run_dir/snapshots.zarr`` at the end.
    every_passes : float
        Effective passes between two of them, at least; 0: none are taken.
    """

    def __init__(self, run_dir: Place, every_passes: float) -> None:
        self.every_passes = every_passes
        self.target = run_dir / "snapshots.zarr"
        self.store = SnapshotParts(run_dir / "snapshots")
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

    def offer(self, solver: Solver) -> None:
        """Take one if it is due; the solver stands at a rebase point."""
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
                "steps": int(solver.state.counters[STEPS]),
                "seconds": at.seconds,
                "stale_gap": float(np.sum(solver.state.gap)),
                "dual": dual_and_excess(solver)[0],
                "weights": solver.point.copy(),
            }
        )

    def commit(self) -> list[dict[str, Any]]:
        """Write what is in memory; what the commit that follows has to remember."""
        if self.rows:
            self.store.append(
                {spec.name: np.asarray([row[spec.name] for row in self.rows], spec.dtype) for spec in SNAPSHOTS}
            )
            self.rows.clear()
        return self.store.parts

    def finish(self) -> None:
        """Join all parts into ``snapshots.zarr``."""
        if self.every_passes:
            self.commit()
            self.store.join(self.target, {"every_passes": self.every_passes})
