"""Solve: the path or grid from where it was last committed to its end.

Interrupted at any moment and called again, it continues from the last committed point and ends with the same bits as an
uninterrupted solve: the commit contains everything that determines the trajectory, and no clock does. This file drives
`solver.engine` into a `storage.sink.CommitSink`: it finds what was committed, and leaves path.zarr and trace.zarr.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from gapwise.stages import Stopped
from gapwise.stages.choice.rising_loss import RisingLoss, check_ending
from gapwise.stages.model.solved_path import attributes, cells_of, kept_of, status_of
from gapwise.stages.problems.parallel import HERE, Spread
from gapwise.stages.solver.engine import Engine, Task
from gapwise.stages.solver.events import Progress, Report, Snapshots, Spacing, Stop
from gapwise.stages.solver.ledger import iterations_of, trace_of
from gapwise.stages.solver.options import ENDED, PathOptions, Status
from gapwise.storage.backend import Location
from gapwise.storage.commits import Commit, CommitStore, StateError
from gapwise.storage.files import make_directory, remove_leftovers
from gapwise.storage.layout import read_group
from gapwise.storage.results import read_path, write_path, write_trace
from gapwise.storage.sink import CommitSink
from gapwise.storage.snapshots import SnapshotParts

__all__ = ["Session", "Spacing", "Task", "goes_on", "solve"]

log = logging.getLogger("gapwise.solve")


def nothing(told: object) -> None:
    """Listens to nothing."""


def never() -> bool:
    """Does not stop."""
    return False


@dataclass(frozen=True)
class Session:
    """How this process solves; nothing of it changes the result.

    Attributes
    ----------
    spread : Spread
        Where oracles of exact passes are called, and `Spread.check`, which may raise an error to stop. A pass or round that
        is aborted (all workers gone, a signal) leaves a commit of the point where it began; steps that are, of the last
        rebase point.
    report : callable
        Called with the present progress (`solver.events.progress`) wherever the state can be committed.
    stop : callable
        Called there as well; if True, `solve` commits and returns `INTERRUPTED`.
    committed : callable
        Called with the trace (rows as `TRACE`) after each commit.
    every_seconds : float
        Least time between commits, in seconds.
    """

    spread: Spread = HERE
    report: Report = nothing
    stop: Callable[[], bool] = never
    committed: Callable[[np.ndarray], None] = nothing
    every_seconds: float = 30.0


def solve(
    task: Task,
    run_dir: Location,
    *,
    key: str,
    science: Mapping[str, object] | None = None,
    snapshots: Spacing = Spacing(),  # noqa: B008  frozen
    session: Session = Session(),
    ending: RisingLoss | None = None,
) -> Status:
    """Solve, committing to ``run_dir/state``; leaves ``path.zarr`` and ``trace.zarr`` at the end.

    Parameters
    ----------
    task : Task
        The result depends on its `initial`, if it has one; `science` should then say which it is.
    science : mapping, optional
        Flat resolved configuration; a state of another one is refused with the keys that differ.
    snapshots : Spacing
        How far apart snapshots are, which are left in ``snapshots.zarr``; by default none is taken.
    ending : RisingLoss, optional
        What ends a path with `path.end=loss_rises`; given with it and only then.

    Returns
    -------
    Status
        CONVERGED, or why the path ends early; INTERRUPTED if it did not end. After TIME_LIMIT a later call continues.
    """
    task.check()
    check_ending(task.path, ending)
    parts = SnapshotParts(run_dir / "snapshots")
    taken = Snapshots(parts, snapshots)
    make_directory(run_dir)
    remove_leftovers(run_dir)
    target = run_dir / "path.zarr"
    if target.is_dir():
        former = read_path(target, ())[1]
        status = Status(former["status"])
        if not goes_on(status, task.path, float(former["eps"])):
            parts.remove()
            return status
    store = CommitStore(run_dir / "state", {"key": key, **(science or {})})
    sink = CommitSink(store, session.every_seconds, taken, session.committed)
    engine = _engine(task, sink.load(), taken, session.spread, store.folder)
    rule = engine.rule.open_end()

    def write(status: Status) -> None:
        """Leave path.zarr and trace.zarr, written last: it marks the solve as done."""
        write_trace(run_dir / "trace.zarr", *trace_of(engine.solver, engine.rule), iterations_of(engine.solver))
        if not (sink.segments or sink.finished):
            return
        if rule and status is Status.INTERRUPTED:
            log.warning("stopped: every λ within %.2g, as path.zarr has it", rule.reached)
        cells, attrs = cells_of(engine, sink), attributes(engine, status, key)
        write_path(target, sink.segments, sink.uncommitted(), attrs, cells, kept_of(engine))

    if ending is not None:
        for segment in sink.segments:
            solved = read_group(segment, ("lambda", "weights"))[0]
            for lam, w in zip(solved["lambda"].tolist(), solved["weights"], strict=True):
                ending.note(lam, w)
    observers = (Progress(session.report), taken, Stop(session.stop), *(() if ending is None else (ending,)))
    engine.warm_up()
    with sink:
        try:
            status = engine.run(observers, sink)
        except (Exception, Stopped):
            if session.stop() and rule and sink.segments:
                write(Status.INTERRUPTED)
            raise
    if status is Status.INTERRUPTED:
        if rule and sink.segments:
            write(status)
        return status
    status = status_of(engine, sink)
    if snapshots.every_passes:
        taken.commit()
        parts.join(run_dir / "snapshots.zarr", {"every_passes": snapshots.every_passes})
    write(status)
    if status is not Status.TIME_LIMIT and not engine.stopped:
        parts.remove()
    session.committed(trace_of(engine.solver, engine.rule)[0])
    return status


def _engine(task: Task, commit: Commit | None, snapshots: Snapshots, spread: Spread, folder: Location) -> Engine:
    """The engine at its last commit, or at the beginning."""
    snapshots.resume([] if commit is None else commit.attrs.get("snapshots", []))
    if commit is None:
        return Engine.begin(task, spread)
    engine = restored(task, commit, spread, folder)
    log.info("resuming at lambda %.6g (breakpoint %d)", engine.solver.counts.lam, engine.solver.counts.breakpoint)
    return engine


def restored(task: Task, commit: Commit, spread: Spread, folder: Location) -> Engine:
    """The engine at a commit below `folder`; StateError if that does not fit the problem."""
    try:
        return Engine.restored(task, commit.arrays, commit.attrs, spread)
    except (ValueError, KeyError, TypeError) as error:
        why = f"{error} is missing" if isinstance(error, KeyError) else error
        raise StateError(
            f"{folder}: the committed state does not fit this problem ({why}). Restore the directory from a copy, or "
            "delete it to solve again from the beginning."
        ) from error


def goes_on(status: Status, path: PathOptions, certified: float) -> bool:
    """Whether a solve that ended with `status`, and certified that eps, has more to do."""
    if status is Status.TIME_LIMIT or not path.can.open_ended:
        return status is Status.TIME_LIMIT
    return status is Status.INTERRUPTED or (status in ENDED and certified > path.eps)
