"""Solve: the path or grid from where it was last committed to its end.

Interrupted at any moment and called again, it continues from the last committed point and ends with the same bits as an
uninterrupted solve: the commit contains everything that determines the trajectory, and no clock does. Large states are
written behind the solve (`storage.behind`), which goes on with the next steps; when a solve is stopped, it writes its last
state before it ends.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from gapwise.stages.attempt import Attempt, Report
from gapwise.stages.init_path import init_path
from gapwise.stages.parallel import HERE, Spread
from gapwise.stages.problems.certainty import certainty_of
from gapwise.stages.problems.protocol import Problem
from gapwise.stages.solver.combinations import check_choices
from gapwise.stages.solver.method import Method
from gapwise.stages.solver.methods import method
from gapwise.stages.solver.options import ENDED, MethodOptions, PathOptions, Status
from gapwise.stages.solver.path.breakpoints import Breakpoint
from gapwise.stages.solver.path.rule import (
    PathRule,
    PathStart,
    attributes_of,
    certainty_of_path,
    rule_of,
)
from gapwise.stages.solver.path.walk import begin, in_metric_of, own_primal, walk
from gapwise.stages.solver.snapshots import Snapshots
from gapwise.stages.solver.supports import Supports
from gapwise.stages.trace import iterations_of, trace_of
from gapwise.stages.verdict import claims
from gapwise.storage.backend import Location
from gapwise.storage.behind import CommitsBehind
from gapwise.storage.commits import Commit, CommitStore, StateError
from gapwise.storage.files import make_directory, remove_leftovers
from gapwise.storage.layout import read_group
from gapwise.storage.results import read_path, stack, write_path, write_trace
from gapwise.storage.snapshots import SnapshotParts

log = logging.getLogger("gapwise.solve")


def solve(
    problem: Problem,
    options: MethodOptions,
    path: PathOptions,
    run_dir: Location,
    *,
    key: str,
    seed: int,
    science: Mapping[str, Any] | None = None,
    start: PathStart | None = None,
    initial: Supports | None = None,
    spread: Spread = HERE,
    report: Report = lambda progress: None,
    stop: Callable[[], bool] = lambda: False,
    every_seconds: float = 30.0,
    snapshot_passes: float = 0.0,
    snapshot_share: float = 0.0,
    observe: Callable[[np.ndarray], None] = lambda trace: None,
) -> Status:
    """Solve, committing to ``run_dir/state``; leaves ``path.zarr`` and ``trace.zarr`` at the end.

    Parameters
    ----------
    science : mapping, optional
        Flat resolved configuration; a state of another one is refused with the keys that differ.
    start : PathStart, optional
        The result of `init_path` for this problem and path, if it is at hand; computed here otherwise.
    initial : Supports, optional
        The dual point at which the first of given lambdas begins, such as that of another lambda; by default that of w = 0.
        The result depends on it, so `science` should say which it is.
    spread : Spread
        Where oracles of exact passes are called, and `Spread.check`, which may raise an error to stop. An exact pass that
        is aborted (all workers gone, a signal) leaves a commit of the point where it began; steps that are, of the last
        rebase point.
    stop : callable
        Called wherever the state can be committed; if True, `solve` commits and returns `INTERRUPTED`.
    every_seconds : float
        Least time between commits, in seconds. The result does not depend on which points are written.
    snapshot_passes : float
        Effective passes between snapshots (`solver.snapshots`), left in ``snapshots.zarr``; 0: none.
    snapshot_share : float
        The same as a share of the passes so far at the current lambda, where that is more.
    observe : callable
        Called with the trace (rows as `TRACE`) after each commit.

    Returns
    -------
    Status
        CONVERGED, or why the path ends early; INTERRUPTED if it did not end. After TIME_LIMIT a later call continues.
    """
    check_choices(problem, options, path)
    parts = SnapshotParts(run_dir / "snapshots")
    snapshots = Snapshots(parts, snapshot_passes, snapshot_share)
    snapshots.check(options)
    make_directory(run_dir)
    remove_leftovers(run_dir)
    target = run_dir / "path.zarr"
    if target.is_dir():
        found = read_path(target, ())[1]
        status = Status(found["status"])
        if not goes_on(status, path, float(found["eps"])):
            parts.remove()
            return status
    store = CommitStore(run_dir / "state", {"key": key, **(science or {})})
    committed = store.load()
    snapshots.resume([] if committed is None else committed.attrs.get("snapshots", []))
    if committed is None:
        start = start or init_path(problem, path, spread)
        solver = begin(problem, options, path, start, seed, spread, initial)
        rule = in_metric_of(problem, rule_of(path).begin(path, start))
    else:
        solver, rule, start = _restored(problem, options, path, committed, seed, spread, store.folder)
        log.info("resuming at lambda %.6g (breakpoint %d)", solver.at.lam, solver.at.breakpoint)
    certainty = certainty_of_path(problem, path)
    commits = CommitsBehind(store)
    attempt = Attempt(
        rule, start, commits, snapshots, stop, every_seconds, options.max_seconds, report, observe, certainty
    )
    solver.warm_up()

    open_rule = rule.open_end()

    def write(status: Status) -> None:
        """Leave path.zarr and trace.zarr, written last: it marks the solve as done."""
        segments = [store.folder / s["name"] for s in store.segments]
        write_trace(run_dir / "trace.zarr", *trace_of(solver, rule), iterations_of(solver))
        if attempt.finished or segments:
            last = stack([b.record() for b in attempt.finished]) if attempt.finished else None
            attrs = _attributes(solver, rule, path, start, status, key, seed)
            kept = None if open_rule is None else open_rule.kept
            if open_rule and status is Status.INTERRUPTED:
                log.warning("stopped: every λ within %.2g, as path.zarr has it", open_rule.reached)
            write_path(target, segments, last, attrs, rule.model(_solved(segments, last)), kept)

    with commits:
        try:
            status = walk(solver, path, start, attempt.boundary, attempt.finished.append, rule)
        except Exception:
            commits.settle()
            if solver.untouched:  # workers that are gone, or a signal, in the middle of an exact pass
                attempt.commit(solver, wait=True)
            elif attempt.kept is not None:  # a signal between two rebase points: what was done since the first is lost
                del attempt.finished[attempt.kept.finished :]
                attempt.store(attempt.kept, wait=True)
            if stop() and open_rule and store.segments:
                write(Status.INTERRUPTED)
            raise
        if attempt.stopped:
            attempt.commit(solver, wait=True)
    if status is Status.INTERRUPTED:
        if open_rule and store.segments:
            write(status)
        return status
    if status is Status.CONVERGED and path.given:
        status = _first_limit([store.folder / s["name"] for s in store.segments], attempt.finished)
    if snapshot_passes:
        snapshots.commit()
        parts.join(run_dir / "snapshots.zarr", {"every_passes": snapshot_passes})
    write(status)
    if status is not Status.TIME_LIMIT and not attempt.stopped:
        parts.remove()
    observe(trace_of(solver, rule)[0])
    return status


def _restored(
    problem: Problem,
    options: MethodOptions,
    path: PathOptions,
    commit: Commit,
    seed: int,
    spread: Spread,
    folder: Location,
) -> tuple[Any, PathRule, PathStart | None]:
    """The method, the rule and the start of a commit."""
    nothing, own = np.empty(0), own_primal(options, path)
    try:
        attrs, start = dict(commit.attrs["method"]), commit.attrs["start"]
        start = None if start is None else PathStart(labels=nothing, losses=nothing, psi=nothing, **start)
        found = method(attrs.pop("name"))
        solver = found.restored(problem, options, seed, commit.arrays, attrs, own_primal=own, spread=spread)
        rule = rule_of(path).restored(path, start, commit.arrays, commit.attrs["rule"])
        return solver, in_metric_of(problem, rule), start
    except (ValueError, KeyError, TypeError) as error:
        why = f"{error} is missing" if isinstance(error, KeyError) else error
        raise StateError(
            f"{folder}: the committed state does not fit this problem ({why}). Restore the directory from a copy, or "
            "delete it to solve again from the beginning."
        ) from error


def _attributes(
    solver: Method, rule: PathRule, path: PathOptions, start: PathStart | None, status: Status, key: str, seed: int
) -> dict[str, Any]:
    """The attributes of path.zarr."""
    return {
        "key": key,
        "seed": seed,
        "status": status.value,
        "status_meanings": [s.value for s in Status],
        "method": solver.options.method,
        **attributes_of(path),
        "certified": claims(exact=path.can.exact, dual_point=solver.certifies, sense=certainty_of(solver.problem)),
        "certainty": certainty_of_path(solver.problem, path),
        "dual_point": solver.certifies,
        "between": rule.capabilities.between,
        "own_primal": solver.rewrites_w,
        "n": solver.problem.n,
        "d": solver.problem.d,
        **({} if start is None else start.scalars()),
        **({} if (certified := rule.open_end()) is None else certified.attributes()),
    }


def _solved(segments: Sequence[Location], last: Mapping[str, np.ndarray] | None) -> dict[str, np.ndarray]:
    """Numbers of all breakpoints by falling lambda, the argument of `PathRule.model`."""
    names = ("lambda", "lambda_low", "gap", "hinge", "loss_dual", "norm2")
    parts = [read_group(segment, names)[0] for segment in segments] + ([] if last is None else [dict(last)])
    columns = {name: np.concatenate([part[name] for part in parts]) for name in names}
    order = np.argsort(-columns["lambda"], kind="stable")
    return {name: column[order] for name, column in columns.items()}


def _first_limit(segments: Sequence[Location], finished: list[Breakpoint]) -> Status:
    """How a grid ended: CONVERGED if every lambda did, otherwise the first limit that was reached."""
    codes = [code for segment in segments for code in read_group(segment, ("status",))[0]["status"]]
    statuses = [list(Status)[code] for code in codes] + [b.status for b in finished]
    return next((status for status in statuses if status is not Status.CONVERGED), Status.CONVERGED)


def goes_on(status: Status, path: PathOptions, certified: float) -> bool:
    """Whether a solve that ended with `status`, and certified that eps, has more to do."""
    if status is Status.TIME_LIMIT or not path.can.open_ended:
        return status is Status.TIME_LIMIT
    return status is Status.INTERRUPTED or (status in ENDED and certified > path.eps)
