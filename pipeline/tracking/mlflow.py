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
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from threading import Thread

from gapwise.pipeline.config.run_options import TrackingOptions
from gapwise.pipeline.rundir import RunDir, read_json, write_json
from gapwise.pipeline.tracking.store import MODELS
from gapwise.pipeline.tracking.view import VERSION, project, project_sweep
from gapwise.records import Facts, Record
from gapwise.storage.backend import Location, location

LIVE_SECONDS = 30.0
"""Seconds between two views of a solve that goes on."""
STOP_SECONDS = 1.0
"""How long a run that was told to stop waits to be shown as such."""
log = logging.getLogger("gapwise")


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


class _Guarded:
    """Shows nothing with tracking=none, and lets no failure of MLflow through; only the first one is a warning."""

    def __init__(self, options: TrackingOptions) -> None:
        self._uri = None if options.kind == "none" else store_uri(options)
        self._failed = False

    def _guard(self, show: Callable[..., None], *args: object) -> None:
        if self._uri is None:
            return
        for name in ("mlflow", "alembic"):
            logging.getLogger(name).setLevel(logging.WARNING)
        try:
            with contextlib.redirect_stdout(io.StringIO()):  # stdout is for the summary
                show(*args)
        except Exception as error:
            says = "MLflow at %s: %s. The run goes on; the same command, or gapwise sync, shows it later."
            log.log(logging.DEBUG if self._failed else logging.WARNING, says, self._uri, _first_line(error))
            self._failed = True


class Tracker(_Guarded):
    """Projects one run directory."""

    def __init__(self, options: TrackingOptions, directory: RunDir) -> None:
        super().__init__(options)
        self._dir = directory
        self._marker = directory.path / "tracking.json"
        self._live: Thread | None = None
        self._last = time.monotonic()

    def observe(self, trace: Facts) -> None:
        """Show what a solve that goes on has committed, in a thread, every `LIVE_SECONDS` at most; returns at once."""
        busy = self._live is not None and self._live.is_alive()
        if self._uri is not None and not busy and time.monotonic() - self._last >= LIVE_SECONDS:
            self._last = time.monotonic()
            self._start("RUNNING", trace)

    def stop(self) -> None:
        """The run was told to stop, and waits for nobody: it is shown as KILLED only where MLflow is loaded and free."""
        if self._live is not None and not self._live.is_alive():
            self._start("KILLED").join(STOP_SECONDS)

    def _start(self, status: str, trace: Facts | None = None) -> Thread:
        self._live = Thread(target=self._guard, args=(self._show, status, trace), daemon=True)
        self._live.start()
        return self._live

    def finish(self, status: str) -> None:
        """The run ended FINISHED or FAILED."""
        if self._live is not None:
            self._live.join()
        if self._uri is not None:
            with contextlib.suppress(OSError):  # the run itself reports a directory that cannot be written to
                self._marker.unlink(missing_ok=True)
            self._guard(self._show, status)

    def ensure_shown(self) -> None:
        """Show a complete run unless it is shown already."""
        if not _shows(self._marker, self._uri):
            self._guard(self._show, "FINISHED")

    def sync(self, status: str) -> None:
        """Show what the directory contains, whatever was shown before; here problems are errors (OSError)."""
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                self._show(status)
        except Exception as error:
            raise OSError(f"MLflow at {self._uri}: {_first_line(error)}") from error

    def _show(self, status: str, trace: Facts | None = None) -> None:
        trace = trace or _stored_trace(self._dir.path)
        if status == "FAILED" and not trace:
            return  # it ended before there was anything to show
        run_id = project(str(self._uri), self._dir.path, trace, status)
        if status == "FINISHED":
            write_json(self._marker, _marker_of(self._uri, run_id))


class SweepTracker(_Guarded):
    """Projects a sweep and its runs, one after another, as they end.

    Parameters
    ----------
    options : TrackingOptions
    folder : Path or UrlPath
        The sweep's directory.
    """

    def __init__(self, options: TrackingOptions, folder: Location) -> None:
        super().__init__(options)
        self._folder = folder
        self._marker = folder / "tracking.json"
        self._tags: dict[str, str] = {}

    def begin(self, summary: Facts, complete: Sequence[Location]) -> None:
        """Show the sweep, and its complete runs that are not shown yet."""
        if self._uri is None:
            return
        marker = _read(self._marker) if _shows(self._marker, self._uri) else {}
        missing = [run for run in complete if not self._shown(run, marker.get("run_id"))]
        if marker and not missing and len(complete) == len(summary["jobs"]):
            return  # all of it is shown
        self._marker.unlink(missing_ok=True)
        self._guard(self._show_sweep, summary, "RUNNING")
        for run in missing:
            self.ended(run, "FINISHED")

    def ended(self, run_dir: Location, status: str) -> None:
        """Show a run that ended FINISHED or FAILED; one that was told to stop is shown when it goes on."""
        if status != "KILLED":
            self._guard(self._show_run, run_dir, status)

    def finish(self, summary: Facts, status: str) -> None:
        """Show that the sweep ended. The next command shows what could not be shown, and after KILLED what is left."""
        if self._uri is not None and not self._marker.is_file():
            self._guard(self._show_sweep, summary, status)

    def _shown(self, run_dir: Location, parent: str | None) -> bool:
        marker = run_dir / "tracking.json"
        return parent is not None and _shows(marker, self._uri) and _read(marker).get("sweep") == parent

    def _show_sweep(self, summary: Facts, status: str) -> None:
        self._tags = project_sweep(str(self._uri), self._folder, summary, status)
        if status == "FINISHED" and not self._failed:
            write_json(self._marker, _marker_of(self._uri, self._tags["gapwise.sweep_run"]))

    def _show_run(self, run_dir: Location, status: str) -> None:
        if not (run_dir / "manifest.json").is_file():
            return  # it ended before there was anything to show
        if not self._tags:
            raise OSError("the sweep itself is not shown yet")
        run_id = project(str(self._uri), run_dir, _stored_trace(run_dir), status, self._tags)
        if status == "FINISHED":
            parent = {"sweep": self._tags["gapwise.sweep_run"]}
            write_json(run_dir / "tracking.json", {**_marker_of(self._uri, run_id), **parent})


def _read(marker: Location) -> Record:
    """The marker of a projection; empty where it is damaged."""
    try:
        return dict(read_json(marker) or {})
    except ValueError:
        return {}


def _marker_of(uri: str | None, run_id: str) -> Record:
    """The marker of a complete projection."""
    return {"uri": uri, "run_id": run_id, "view": VERSION}


def _shows(marker: Location, uri: str | None) -> bool:
    """Whether `marker` is that of a projection into `uri` as this version makes it, or nothing is to be shown."""
    said = _read(marker)
    return uri is None or (said.get("uri") == uri and said.get("view") == VERSION)


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def _stored_trace(run_dir: Location) -> Mapping[str, object]:
    """The trace of a finished solve; empty before that."""
    if not (run_dir / "trace.zarr").is_dir():
        return {}
    from gapwise.storage.results import read_trace

    return read_trace(run_dir)
