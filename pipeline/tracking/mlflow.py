"""MLflow as a view: everything it shows is projected from what a run has stored, and can be projected again.

The run directory is authoritative. A run is one MLflow run, found by its tag `gapwise.key`, and its breakpoints are steps.
Sweeps and their runs are logged by the sweep's main process. A problem with the database causes only a warning;
tracking.json in the directory marks a complete projection, and repeating the command adds a missing one.
`gapwise.pipeline.tracking.view` defines what is shown.
"""

from __future__ import annotations

import contextlib
import io
import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Protocol

from gapwise.pipeline.config.run_options import TrackingOptions
from gapwise.pipeline.rundir import RunDir, read_json, write_json
from gapwise.pipeline.tracking.store import MODELS
from gapwise.pipeline.tracking.view import VERSION, project, project_sweep
from gapwise.records import Facts, Record
from gapwise.storage.backend import Location, location

LIVE_SECONDS = 30.0
"""Seconds between two projections of an unfinished run."""
STOP_SECONDS = 1.0
"""How long a run that was told to stop waits to be shown as such."""
TRIES = 3
"""How often the end of a sweep tries to log what failed before."""
log = logging.getLogger("gapwise")
_SHOWN = threading.Event()
"""Set once this process has shown a run in MLflow, for which the first time takes seconds."""


class Tracker(Protocol):
    """Where a run is displayed besides its directory."""

    def observe(self, trace: Mapping[str, object]) -> None:
        """Show the trace of an unfinished solve, after a commit; returns at once."""

    def finish(self, status: str) -> None:
        """The run ended: FINISHED, KILLED or FAILED."""

    def ensure_shown(self) -> None:
        """Show a complete run unless it is shown already."""

    def sync(self, status: str) -> None:
        """Show what the directory contains, whatever was shown before; here problems are errors (OSError, ValueError)."""


class NoTracker:
    """tracking=none"""

    def observe(self, trace: Mapping[str, object]) -> None: ...
    def finish(self, status: str) -> None: ...
    def ensure_shown(self) -> None: ...
    def sync(self, status: str) -> None: ...


def _has_shown() -> bool:
    """Whether this process has shown anything in MLflow yet."""
    return _SHOWN.is_set()


def open_tracker(options: TrackingOptions, directory: RunDir) -> Tracker:
    """The tracker that `options` ask for; does not touch disk or database yet."""
    return NoTracker() if options.kind == "none" else MlflowTracker(store_uri(options), directory, options.children)


def store_uri(options: TrackingOptions) -> str:
    """`tracking.uri`, or mlflow.db in $GAPWISE_RUNS if that is a folder here, else in the current one.

    Under DVC the database is the project's, not that of a queued copy.
    """
    runs = location(os.environ.get("GAPWISE_RUNS") or ".")
    root = os.environ.get("DVC_ROOT") or (runs if isinstance(runs, Path) else Path.cwd())
    return os.path.expanduser(options.uri or "") or f"sqlite:///{Path(root) / 'mlflow.db'}"


def shown_store(options: TrackingOptions) -> str:
    """`store_uri` for people: the path of a database here and the folder beside it, and no password of one elsewhere."""
    uri = store_uri(options)
    scheme, rest = uri.split("://", 1) if "://" in uri else ("", uri)
    if scheme == "sqlite":
        return f"{rest.removeprefix('/')} and {MODELS}/ beside it"
    return uri if "@" not in rest else f"{scheme}://{rest.rpartition('@')[2]}"


class MlflowTracker:
    """Projects one run directory into the MLflow store at `uri`; with `children`, breakpoints are runs too."""

    def __init__(self, uri: str, directory: RunDir, children: bool = False) -> None:
        self._uri = uri
        self._children = children
        self._dir = directory
        self._marker = directory.path / "tracking.json"
        self._pool: ThreadPoolExecutor | None = None
        self._pending: Future[None] | None = None
        self._last = time.monotonic()
        self._broken = False
        self._seen: Mapping[str, object] = {}

    def observe(self, trace: Mapping[str, object]) -> None:
        self._seen = trace
        busy = self._pending is not None and not self._pending.done()
        if self._broken or busy or time.monotonic() - self._last < LIVE_SECONDS:
            return
        self._pool = self._pool or ThreadPoolExecutor(1, thread_name_prefix="tracking")
        self._pending = self._pool.submit(self._guarded, "RUNNING", trace)
        self._last = time.monotonic()

    def finish(self, status: str) -> None:
        if self._pool is not None and status != "KILLED":
            self._pool.shutdown(wait=True)
            self._pool = None
        with contextlib.suppress(OSError):  # the run itself reports a directory that cannot be written to
            self._marker.unlink(missing_ok=True)
        if status == "KILLED":
            self._stopped()
        else:
            self._guarded(status, None)

    def _stopped(self) -> None:
        """Show that the run was told to stop, if that is quick; the same command goes on and shows it in any case.

        Importing mlflow takes seconds, and so may other runs that write to the database.
        """
        if not _has_shown():
            return
        pool, self._pool = self._pool or ThreadPoolExecutor(1, thread_name_prefix="tracking"), None
        wait([pool.submit(self._guarded, "KILLED", None)], STOP_SECONDS)
        pool.shutdown(wait=False, cancel_futures=True)

    def ensure_shown(self) -> None:
        if not _shows(_marker(self._marker), self._uri, self._children):
            self._guarded("FINISHED", None)

    def sync(self, status: str) -> None:
        try:
            with _quiet(True):
                trace = _stored_trace(self._dir.path)
                run_id = project(self._uri, self._dir.path, trace, status, children=self._children)
        except Exception as error:
            raise OSError(f"MLflow at {self._uri}: {_first_line(error)}") from error
        if status == "FINISHED":
            write_json(self._marker, _marker_of(self._uri, run_id, self._children))

    def _guarded(self, status: str, trace: Mapping[str, object] | None) -> None:
        """Project; the first problem becomes a warning."""
        level = logging.DEBUG if self._broken else logging.WARNING
        with _warned(self._uri, level) as worked, _quiet(status not in ("RUNNING", "KILLED")):
            columns = (_stored_trace(self._dir.path) or self._seen) if trace is None else trace
            if status != "FINISHED" and not columns:
                return  # it ended before there was anything to show
            run_id = project(self._uri, self._dir.path, columns, status, children=self._children)
            _SHOWN.set()
            if status == "FINISHED":
                write_json(self._marker, _marker_of(self._uri, run_id, self._children))
        self._broken = self._broken or not worked


class SweepTracker:
    """Projects a sweep and its runs, one after another on a thread of its own, as they end.

    Parameters
    ----------
    options : TrackingOptions
    folder : Path or UrlPath
        The sweep's directory.
    """

    def __init__(self, options: TrackingOptions, folder: Location) -> None:
        self._uri = None if options.kind == "none" else store_uri(options)
        self._children = options.children
        self._folder = folder
        self._marker = folder / "tracking.json"
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="tracking")
        self._tags: dict[str, str] = {}
        self._owed: deque[tuple[Callable[..., None], tuple[object, ...]]] = deque()
        self._failed = False
        self._again = 0.0

    def begin(self, summary: Facts, complete: Sequence[Location], anew: bool = False) -> None:
        """Show the sweep, and its complete runs that are not shown yet.

        With `anew`, shows everything again (run.stage=sync).
        """
        if self._uri is None:
            return
        marker = {} if anew else _marker(self._marker)
        parent = marker.get("run_id") if _shows(marker, self._uri, self._children) else None
        missing = [run for run in complete if not self._shown(run, parent)]
        if parent is not None and not missing and len(complete) == len(summary["jobs"]):
            return  # all of it is shown
        self._marker.unlink(missing_ok=True)
        self._submit(self._show_sweep, dict(summary), "RUNNING")
        for run in missing:
            self.ended(run, "FINISHED")

    def ended(self, run_dir: Location, status: str) -> None:
        """Show a run that ended FINISHED, KILLED or FAILED; returns at once."""
        self._submit(self._show_run, run_dir, status)

    def finish(self, summary: Mapping[str, object], status: str) -> None:
        """Show that the sweep ended; after KILLED the next command shows what is not shown yet."""
        if self._uri is not None and not self._marker.is_file():
            self._pool.shutdown(wait=True, cancel_futures=status == "KILLED")
            if status == "KILLED":
                self._owed.clear()
            self._owed.append((self._show_sweep, (summary, status)))
            for _ in range(TRIES):
                self._again = 0.0
                with _quiet(True):
                    self._work()
        self._pool.shutdown(wait=True)

    def _shown(self, run_dir: Location, parent: str | None) -> bool:
        marker = _marker(run_dir / "tracking.json")
        return parent is not None and _shows(marker, self._uri, self._children) and marker.get("sweep") == parent

    def _show_sweep(self, summary: Mapping[str, object], status: str) -> None:
        self._tags = project_sweep(str(self._uri), self._folder, summary, status, self._children)
        if status == "FINISHED":
            write_json(self._marker, _marker_of(str(self._uri), self._tags["gapwise.sweep_run"], self._children))

    def _show_run(self, run_dir: Location, status: str) -> None:
        if not (run_dir / "manifest.json").is_file():
            return  # it ended before there was anything to show
        if not self._tags:
            raise OSError("the sweep itself is not shown yet")
        run_id = project(str(self._uri), run_dir, _stored_trace(run_dir), status, self._tags, self._children)
        if status == "FINISHED":
            marker = _marker_of(str(self._uri), run_id, self._children)
            write_json(run_dir / "tracking.json", {**marker, "sweep": self._tags["gapwise.sweep_run"]})

    def _submit(self, show: Callable[..., None], *args: object) -> None:
        if self._uri is not None:
            self._owed.append((show, args))
            self._pool.submit(self._work)

    def _work(self) -> None:
        """Show what is queued; what failed is tried again last, after `LIVE_SECONDS` or when the sweep ends."""
        while self._owed and time.monotonic() >= self._again:
            show, args = self._owed.popleft()
            with _warned(str(self._uri), logging.DEBUG if self._failed else logging.WARNING) as worked:
                show(*args)
            if not worked:
                self._failed = True
                self._owed.append((show, args))
                self._again = time.monotonic() + LIVE_SECONDS


@contextlib.contextmanager
def _warned(uri: str, level: int = logging.WARNING) -> Iterator[list[bool]]:
    """Turn any error into one warning; the list is then empty."""
    worked = [True]
    try:
        yield worked
    except Exception as error:
        worked.clear()
        says = "MLflow at %s: %s. The run goes on; the same command, or run.stage=sync, shows it later."
        log.log(level, says, uri, _first_line(error))
    except KeyboardInterrupt:
        log.warning("MLflow: interrupted; the same command shows it later.")


def _marker(path: Location) -> Record:
    """The marker of a projection; empty where it is damaged."""
    try:
        return dict(read_json(path) or {})
    except ValueError:
        return {}


def _marker_of(uri: str, run_id: str, children: bool) -> Record:
    """The marker of a complete projection."""
    return {"uri": uri, "run_id": run_id, "view": VERSION, "children": children}


def _shows(marker: Mapping[str, object], uri: str | None, children: bool) -> bool:
    """Whether `marker` is that of a projection into `uri` as this version makes it, with children if they are asked for."""
    same = marker.get("uri") == uri and marker.get("view") == VERSION
    return same and (not children or bool(marker.get("children")))


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def _stored_trace(run_dir: Location) -> Mapping[str, object]:
    """The trace of a finished solve; empty before that."""
    if not (run_dir / "trace.zarr").is_dir():
        return {}
    from gapwise.storage.results import read_trace

    return read_trace(run_dir)


@contextlib.contextmanager
def _quiet(main_thread: bool) -> Iterator[None]:
    """Keep MLflow's own messages off the screen; stdout is for the summary."""
    for name in ("mlflow", "alembic"):
        logging.getLogger(name).setLevel(logging.WARNING)
    with contextlib.redirect_stdout(io.StringIO()) if main_thread else contextlib.nullcontext():
        yield
