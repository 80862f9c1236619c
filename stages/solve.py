"""Solve: the path or grid from where it was last committed to its end (DESIGN 3.2).

Interrupted at any moment and called again, it goes on from the last committed rebase point and ends with the same bits
as if nothing had happened: everything that decides about the trajectory is in the commit, and no clock is.
"""

from __future__ import annotations

import dataclasses
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from stages.init_path import init_path
from stages.parallel import HERE, Spread
from stages.problems.protocol import Problem
from stages.records import cell_arrays, record, scalars_of
from stages.snapshots import Snapshots
from stages.solver.counts import TRACE, Counts
from stages.solver.fixed_lambda import Solver
from stages.solver.options import PathOptions, SolverOptions, Status
from stages.solver.path.two_sided import TwoSided
from stages.solver.path.walk import Breakpoint, PathStart, begin, begin_sides, check_choices, lowest, walk
from stages.solver.state import restored_state
from stages.solver.supports import Supports, pack
from storage.commits import Commit, CommitStore
from storage.files import make_directory, remove_leftovers
from storage.layout import FORMAT_VERSION, read_group
from storage.places import Place
from storage.results import read_path, stack, write_path, write_trace

log = logging.getLogger("gapwise.solve")

MAX_BUFFERED_BYTES = 64 << 20
"""Finished breakpoints held in memory before a commit is made for their sake."""

Report = Callable[[Mapping[str, Any]], None]
"""report(progress): lambda, breakpoint, passes, gap, tolerance, oracle_calls of the moment; called often, must be cheap."""


def solve(
    problem: Problem,
    solver_options: SolverOptions,
    path: PathOptions,
    run_dir: Place,
    *,
    key: str,
    seed: int,
    science: Mapping[str, Any] | None = None,
    start: PathStart | None = None,
    spread: Spread = HERE,
    report: Report = lambda progress: None,
    stop: Callable[[], bool] = lambda: False,
    every_seconds: float = 30.0,
    snapshot_passes: float = 0.0,
    observe: Callable[[np.ndarray], None] = lambda trace: None,
) -> Status:
    """Solve, committing to ``run_dir/state``; leaves ``path.zarr`` and ``trace.zarr`` at the end.

    Parameters
    ----------
    science : mapping, optional
        Flat resolved configuration, so that a state of another one is refused with the keys that differ.
    start : PathStart, optional
        What `init_path` says of this problem and path, where it has just been asked; found here otherwise.
    spread : Spread
        Where oracles of exact passes are called. An exact pass that is broken off (all workers gone, a signal) leaves a
        commit of the point where it began.
    stop : callable
        Asked at every rebase point; True commits and returns `INTERRUPTED`.
    every_seconds : float
        Least time between commits, in seconds. Which rebase points are written has no influence on the result.
    snapshot_passes : float
        Effective passes between snapshots (`stages.snapshots`), left in ``snapshots.zarr``; 0: none.
    observe : callable
        Given the trace (rows as `TRACE`) after each commit.

    Returns
    -------
    Status
        CONVERGED, or why the path ends early; INTERRUPTED when it did not end. After TIME_LIMIT a later call goes on.
    """
    check_choices(problem, solver_options, path)
    snapshots = Snapshots(run_dir, snapshot_passes)
    snapshots.check(solver_options.averaging)
    make_directory(run_dir)
    remove_leftovers(run_dir)
    target = run_dir / "path.zarr"
    if target.is_dir():
        status = Status(read_path(target, ())[1]["status"])
        if status is not Status.TIME_LIMIT:
            snapshots.store.remove()
            return status
    store = CommitStore(run_dir / "state", {"key": key, **(science or {})})
    attempt = _Attempt(
        problem, path, store, snapshots, stop, every_seconds, solver_options.max_seconds, report, observe
    )
    committed = store.load()
    snapshots.resume([] if committed is None else committed.attrs.get("snapshots", []))
    if committed is None:
        if path.is_path and start is None:
            start = init_path(problem, path, spread)
        solver = begin(problem, solver_options, path, start, seed, spread=spread)
    else:
        solver, start = _restored(problem, solver_options, path, committed, seed)
        solver.spread = spread
        attempt.sides = _restored_sides(committed)
        log.info("resuming at lambda %.6g (breakpoint %d)", solver.at.lam, solver.at.breakpoint)
    attempt.start, attempt.sides = start, attempt.sides or begin_sides(path, start)
    solver.warm_up()
    try:
        status = walk(solver, path, start, attempt.boundary, attempt.finished.append, attempt.sides)
    except Exception:
        if solver.untouched:  # workers that are gone, or a signal, in the middle of an exact pass
            attempt.commit(solver)
        raise
    if status in (Status.INTERRUPTED, Status.TIME_LIMIT):
        attempt.commit(solver)
    if status is Status.INTERRUPTED:
        return status
    segments = [store.folder / s["name"] for s in store.segments]
    if status is Status.CONVERGED and not path.is_path:
        status = _first_limit(segments, attempt.finished)
    attrs = {
        "format_version": FORMAT_VERSION,
        "key": key,
        "status": status.value,
        "status_meanings": [s.value for s in Status],
        "kind": path.kind,
        "rule": path.rule if path.is_path else "given",
        "eps": path.eps if path.is_path else path.tolerance,
        "relative": path.relative,
        "kappa": path.kappa,
        "lambda_min": path.lambda_min if start is None else lowest(path, start),
        "certified": path.kind != "heuristic",
        "own_primal": not path.is_path
        and (solver_options.averaging != "none" or solver_options.schedule == "accelerated"),
        "n": problem.n,
        "d": problem.d,
        **({} if start is None else scalars_of(start)),
    }
    snapshots.finish()
    write_trace(run_dir / "trace.zarr", trace_rows(solver), TRACE)
    if attempt.finished or segments:  # last: it says that the solve is done
        last = stack([record(b) for b in attempt.finished]) if attempt.finished else None
        write_path(target, segments, last, attrs, None if attempt.sides is None else cell_arrays(attempt.sides))
    if status is not Status.TIME_LIMIT:
        snapshots.store.remove()
    observe(trace_rows(solver))
    return status


@dataclasses.dataclass
class _Attempt:
    """One process's share of a solve: what it finished since the last commit, and when to commit again."""

    problem: Problem
    path: PathOptions
    store: CommitStore
    snapshots: Snapshots
    stop: Callable[[], bool]
    every_seconds: float
    max_seconds: float
    report: Report
    observe: Callable[[np.ndarray], None]
    start: PathStart | None = None
    sides: TwoSided | None = None
    finished: list[Breakpoint] = dataclasses.field(default_factory=list)
    last_commit: float = dataclasses.field(default_factory=time.monotonic)

    def boundary(self, solver: Solver) -> Status | None:
        """At a rebase point: report, perhaps take a snapshot, perhaps commit, perhaps stop."""
        now = time.monotonic()
        at = solver.at
        self.report(
            {
                "lambda": at.lam,
                "breakpoint": at.breakpoint,
                "passes": solver.passes_here,
                "gap": float(np.sum(solver.state.gap)),
                "tolerance": self.path.kappa * self.path.eps if self.path.is_path else self.path.tolerance,
                "oracle_calls": solver.oracle_calls,
                "seconds": at.seconds,
            }
        )
        self.snapshots.offer(solver)
        if self.stop():
            return Status.INTERRUPTED
        if at.seconds >= self.max_seconds:
            return Status.TIME_LIMIT
        buffered = sum(b.weights.nbytes + b.supports.label.nbytes for b in self.finished) + self.snapshots.nbytes
        waited = now - self.last_commit
        due = not 0.0 <= waited < self.every_seconds  # a clock that went back is no reason never to commit
        if due or buffered > MAX_BUFFERED_BYTES:
            self.commit(solver)
        return None

    def commit(self, solver: Solver) -> None:
        """Commit the state; the solver stands at a rebase point."""
        supports = pack(solver.state.pool, self.problem.label_ptr)
        arrays = {
            "support_offset": supports.offset,
            "support_alpha": supports.alpha,
            "support_loss": supports.losses,
            "support_used": supports.used,
            "support_label": supports.label,
            "label_offset": supports.label_offset,
            "block_gap": solver.state.gap,
            "average": solver.state.z,
            "average_ell": solver.state.z_ell,
            "centre": solver.centre,
            "mean": solver.mean,
            "counters": solver.state.counters,
            "trace": trace_rows(solver),
            "path_points": np.empty((0, 0)),
            "path_vectors": np.empty((0, 0)),
            "path_cells": np.empty((0, 0)),
        }
        scalars = None
        if self.sides is not None:
            kept, scalars = self.sides.packed()
            arrays |= kept
        attrs = {
            "format_version": FORMAT_VERSION,
            "two_sided": scalars,
            "trace_columns": list(TRACE),
            "counts": dataclasses.asdict(solver.at),
            "rng": solver.rng.bit_generator.state,
            "start": None if self.start is None else scalars_of(self.start),
            "snapshots": self.snapshots.commit(),
        }
        segment = None
        if self.finished:
            segment = {
                "arrays": stack([record(b) for b in self.finished]),
                "attrs": {"format_version": FORMAT_VERSION},
            }
        self.store.commit(arrays, _json_safe(attrs), segment)
        self.finished.clear()
        self.last_commit = time.monotonic()
        self.observe(arrays["trace"])


def _first_limit(segments: Sequence[Place], finished: list[Breakpoint]) -> Status:
    """How a grid ended: CONVERGED if every lambda of it did, else the first limit that was met."""
    codes = [code for segment in segments for code in read_group(segment, ("status",))[0]["status"]]
    statuses = [list(Status)[code] for code in codes] + [b.status for b in finished]
    return next((status for status in statuses if status is not Status.CONVERGED), Status.CONVERGED)


def trace_rows(solver: Solver) -> np.ndarray:
    """The trace as an array, (rows, len(TRACE))."""
    return np.array(solver.trace, dtype=float).reshape(-1, len(TRACE))


def _restored(
    problem: Problem, options: SolverOptions, path: PathOptions, commit: Commit, seed: int
) -> tuple[Solver, PathStart | None]:
    """The solver at a committed rebase point."""
    a, attrs = commit.arrays, commit.attrs
    supports = Supports(
        a["support_offset"],
        a["support_alpha"],
        a["support_loss"],
        a["support_used"],
        a["support_label"],
        a["label_offset"],
    )
    state = restored_state(problem, supports, options.averaging != "none")
    state.gap[:], state.z[:], state.z_ell[:] = a["block_gap"], a["average"], a["average_ell"]
    state.counters[:] = a["counters"]
    rng = np.random.default_rng(0)
    rng.bit_generator.state = {**attrs["rng"], "state": {k: int(v) for k, v in attrs["rng"]["state"].items()}}
    solver = Solver(problem, options, state, rng, seed, fresh=True, own_primal=not path.is_path)
    solver.at = Counts(**attrs["counts"])
    solver.centre, solver.mean = a["centre"], a["mean"]
    solver.trace = [tuple(row) for row in a["trace"].tolist()]
    start = None
    if attrs["start"] is not None:
        nothing = np.empty(0)
        start = PathStart(labels=nothing, losses=nothing, psi=nothing, **attrs["start"])
    return solver, start


def _restored_sides(commit: Commit) -> TwoSided | None:
    """What a two-sided path had committed."""
    scalars = commit.attrs.get("two_sided")
    return None if scalars is None else TwoSided.unpacked(commit.arrays, scalars)


def _json_safe(attrs: dict[str, Any]) -> dict[str, Any]:
    """PCG64's state is two 128-bit integers, which JSON readers may round: kept as text."""
    rng = dict(attrs["rng"])
    rng["state"] = {k: str(v) for k, v in rng["state"].items()}
    return {**attrs, "rng": rng}
