"""MLflow as a view: everything it shows is projected from what a run has stored, and can be projected again.

The run directory is the truth. One parent run for a path, found by its tag `gapwise.key`; children for at most 30
evenly chosen breakpoints, the rest as series on the parent. Times come from the stored trace, so that projecting again
adds nothing twice (MLflow drops equal key, step, timestamp, value). Whatever is wrong with the database costs a
warning and no more; tracking.json in the run directory marks where a projection is complete, and the same command
makes up for one that is missing.
"""

from __future__ import annotations

import contextlib
import io
import logging
import math
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from pipeline.config import TrackingOptions
from pipeline.result import breakpoints
from pipeline.rundir import RunDir, flat, read_json, write_json

CHILDREN = 30
LIVE_SECONDS = 30.0
"""Between two projections of a run that goes on."""
LOCK_SECONDS = 5.0
"""Patience with a database that another process holds."""
BATCH = 1000
"""Metrics MLflow takes at a time."""
log = logging.getLogger("gapwise")


class Tracker(Protocol):
    """Where a run is shown besides its directory."""

    def observe(self, trace: Mapping[str, Any]) -> None:
        """The trace of a solve that goes on, after a commit; returns at once."""

    def finish(self, status: str) -> None:
        """The run ended: FINISHED, KILLED or FAILED."""

    def mend(self) -> None:
        """Show a complete run that is not shown yet."""


class NoTracker:
    """tracking=none"""

    def observe(self, trace: Mapping[str, Any]) -> None: ...
    def finish(self, status: str) -> None: ...
    def mend(self) -> None: ...


def open_tracker(options: TrackingOptions, directory: RunDir) -> Tracker:
    """The tracker that `options` ask for; touches neither disk nor database yet."""
    if options.kind == "none":
        return NoTracker()
    root = Path(__file__).resolve().parents[1]
    root = root if (root / "pyproject.toml").is_file() and os.access(root, os.W_OK) else Path.cwd()
    return MlflowTracker(options.uri or f"sqlite:///{root / 'mlflow.db'}", directory)


class MlflowTracker:
    """Projects one run directory into the MLflow store at `uri`."""

    def __init__(self, uri: str, directory: RunDir) -> None:
        self._uri = uri
        self._dir = directory
        self._marker = directory.path / "tracking.json"
        self._pool: ThreadPoolExecutor | None = None
        self._pending: Future[None] | None = None
        self._last = time.monotonic()
        self._broken = False
        self._seen: Mapping[str, Any] = {}

    def observe(self, trace: Mapping[str, Any]) -> None:
        self._seen = trace
        busy = self._pending is not None and not self._pending.done()
        if self._broken or busy or time.monotonic() - self._last < LIVE_SECONDS:
            return
        self._pool = self._pool or ThreadPoolExecutor(1, thread_name_prefix="tracking")
        self._pending = self._pool.submit(self._guarded, "RUNNING", trace)
        self._last = time.monotonic()

    def finish(self, status: str) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True)
            self._pool = None
        self._marker.unlink(missing_ok=True)
        self._guarded(status, None)

    def mend(self) -> None:
        marker = read_json(self._marker)
        if marker is None or marker.get("uri") != self._uri:
            self._guarded("FINISHED", None)

    def _guarded(self, status: str, trace: Mapping[str, Any] | None) -> None:
        """Project; whatever goes wrong is one warning."""
        try:
            with _quiet(status != "RUNNING"):
                columns = (_stored_trace(self._dir.path) or self._seen) if trace is None else trace
                if status != "FINISHED" and not columns:
                    return  # it ended before there was anything to show
                run_id = project(self._uri, self._dir.path, columns, status)
                if status == "FINISHED":
                    write_json(self._marker, {"uri": self._uri, "run_id": run_id})
        except Exception as error:
            self._broken = True
            text = str(error).splitlines()[0] if str(error) else type(error).__name__
            log.warning("MLflow at %s: %s. The run goes on; the same command will mend this.", self._uri, text)
        except KeyboardInterrupt:
            log.warning("MLflow: interrupted; the same command will mend this.")


def project(uri: str, run_dir: Path, trace: Mapping[str, Any], status: str) -> str:
    """Show `run_dir` in the store at `uri` as it stands; returns the parent's run id. Errors of MLflow come through.

    Parameters
    ----------
    trace : mapping of str to array, each (rows,)
        One row an exact gap pass: breakpoint, lambda, passes, oracle_calls, seconds, timestamp_ms, gap, dual, primal.
    status : str
        RUNNING, FINISHED, KILLED or FAILED. Breakpoints, children and artifacts are shown of a finished run.
    """
    os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
    os.environ.setdefault("MLFLOW_LOGGING_LEVEL", "WARNING")
    _probe(uri)
    from mlflow import MlflowClient

    manifest = read_json(run_dir / "manifest.json")
    client = MlflowClient(tracking_uri=uri)
    experiment = _experiment(client, uri, manifest["experiment"] or "gapwise")
    started = int(datetime.strptime(manifest["created"], "%Y-%m-%dT%H:%M:%S%z").timestamp() * 1000)
    stamps = [int(stamp) for stamp in trace.get("timestamp_ms", ())]
    ended = stamps[-1] if stamps else started
    tags = {"gapwise.key": manifest["key"], "gapwise.kind": "path", "gapwise.run_dir": str(run_dir)}
    params = _params(manifest)
    where = f"tags.`gapwise.key` = '{manifest['key']}' and tags.`gapwise.kind` = 'path'"
    there = client.search_runs([experiment], where)
    parent = there[0] if there else client.create_run(experiment, started, tags, run_dir.name)
    run_id = parent.info.run_id
    _log(client, run_id, _trace_series(trace, stamps), params)
    if status == "FINISHED":
        path, _ = breakpoints(run_dir)
        at = _last_stamps(trace, stamps, len(path), ended)
        result = read_json(run_dir / "result.json")
        _log(client, run_id, [*_path_series(path, at, _losses(run_dir)), *_final(result, ended)], {})
        _children(client, experiment, run_id, run_dir, manifest, path, at, trace, stamps)
        _artifacts(client, run_id, run_dir)
    if status == "RUNNING":
        client.update_run(run_id, status)
    else:
        client.set_terminated(run_id, status, ended)
    return run_id


def _probe(uri: str) -> None:
    """sqlite3.Error if a local database cannot be written now: MLflow itself would try for minutes."""
    if uri.startswith("sqlite:///"):
        connection = sqlite3.connect(uri.removeprefix("sqlite:///"), timeout=LOCK_SECONDS)
        try:
            connection.execute("begin immediate")
            connection.execute("select count(*) from sqlite_master")
        finally:
            connection.close()


def _experiment(client: Any, uri: str, name: str) -> str:
    found = client.get_experiment_by_name(name)
    if found is not None:
        return str(found.experiment_id)
    location = None
    if uri.startswith("sqlite:///"):
        location = (Path(uri.removeprefix("sqlite:///")).resolve().parent / "mlruns" / name).as_uri()
    return str(client.create_experiment(name, artifact_location=location))


def _children(
    client: Any, experiment: str, parent: str, run_dir: Path, manifest: Mapping[str, Any],
    path: list[dict[str, Any]], at: list[int], trace: Mapping[str, Any], stamps: list[int],
) -> None:  # fmt: skip
    """A run of its own for each chosen breakpoint, with the parent's parameters and its part of the trace."""
    found = client.search_runs([experiment], f"tags.`mlflow.parentRunId` = '{parent}'", max_results=1000)
    there = {run.data.tags.get("gapwise.breakpoint"): run for run in found}
    losses = _losses(run_dir)
    for j in evenly(len(path), CHILDREN):
        rows = [r for r, b in enumerate(trace.get("breakpoint", ())) if int(b) == j]
        start = stamps[rows[0]] if rows else at[j]
        tags = {
            "mlflow.parentRunId": parent, "gapwise.key": manifest["key"], "gapwise.kind": "breakpoint",
            "gapwise.breakpoint": str(j),
        }  # fmt: skip
        child = there.get(str(j)) or client.create_run(experiment, start, tags, f"λ {path[j]['lambda']:.3g}")
        own = {name: [column[r] for r in rows] for name, column in trace.items()}
        series = _trace_series(own, [stamps[r] for r in rows])
        one = _path_series(path[j : j + 1], at[j : j + 1], {name: column[j : j + 1] for name, column in losses.items()})
        params = {**_params(manifest), "breakpoint": str(j), "lambda": repr(path[j]["lambda"])}
        _log(client, child.info.run_id, [*series, *one], params)
        client.set_terminated(child.info.run_id, "FINISHED", at[j])


def _artifacts(client: Any, run_id: str, run_dir: Path) -> None:
    for figure in sorted((run_dir / "figures").glob("*.png")):
        client.log_artifact(run_id, str(figure), "figures")
    configs = sorted((run_dir / "attempts").glob("*/.hydra/config.yaml"))
    for file in (*configs[-1:], run_dir / "manifest.json", run_dir / "result.json"):
        client.log_artifact(run_id, str(file), "run")


def _log(client: Any, run_id: str, series: Iterable[tuple[str, float, int, int]], params: Mapping[str, str]) -> None:
    """(name, value, timestamp in ms, step) in batches; values that are not finite are left out."""
    from mlflow.entities import Metric, Param

    metrics = [Metric(name, value, stamp, step) for name, value, stamp, step in series if math.isfinite(value)]
    client.log_batch(run_id, params=[Param(name, value) for name, value in params.items()])
    for first in range(0, len(metrics), BATCH):
        client.log_batch(run_id, metrics=metrics[first : first + BATCH])


def _trace_series(trace: Mapping[str, Any], stamps: list[int]) -> Iterator[tuple[str, float, int, int]]:
    """The solve as it went: the step is the number of the exact gap pass."""
    for name in ("passes", "oracle_calls", "seconds", "dual", "primal"):
        for step, (value, stamp) in enumerate(zip(trace.get(name, ()), stamps, strict=False)):
            yield f"trace/{name}", float(value), stamp, step
    for name in ("gap", "lambda"):
        for step, (value, stamp) in enumerate(zip(trace.get(name, ()), stamps, strict=False)):
            yield f"trace/log10_{name}", _log10(value), stamp, step


def _path_series(
    path: list[dict[str, Any]], at: list[int], losses: Mapping[str, Any]
) -> Iterator[tuple[str, float, int, int]]:
    """The path as it came out: the step is the number of the breakpoint."""
    for j, (record, stamp) in enumerate(zip(path, at, strict=True)):
        for name in ("gap", "lambda"):
            yield f"log10_{name}", _log10(record[name]), stamp, j
        for name in ("effective_passes", "oracle_calls", "seconds", "dual", "primal"):
            yield name, float(record[name]), stamp, j
        for name, column in losses.items():
            yield name, float(column[j]), stamp, j


def _final(result: Mapping[str, Any], stamp: int) -> Iterator[tuple[str, float, int, int]]:
    """Single numbers of the run: verification and the best lambda."""
    yield "breakpoints", float(len(result["path"])), stamp, 0
    for part in ("verify", "evaluate"):
        for name, value in result[part].items():
            if isinstance(value, bool | int | float):
                yield f"{part}/{name}", float(value), stamp, 0


def _losses(run_dir: Path) -> dict[str, Any]:
    """train_* and test_* of path.zarr, each (breakpoint,)."""
    import zarr

    group: Any = zarr.open_group(run_dir / "path.zarr", mode="r")
    names = [name for name in group.array_keys() if name.startswith(("train_", "test_"))]
    return {name: group[name][:] for name in sorted(names)}


def _stored_trace(run_dir: Path) -> Mapping[str, Any]:
    """The trace of a finished solve; empty before."""
    if not (run_dir / "trace.zarr").is_dir():
        return {}
    from storage.results import read_trace

    return read_trace(run_dir)


def _last_stamps(trace: Mapping[str, Any], stamps: list[int], count: int, default: int) -> list[int]:
    """When each breakpoint was done: the time of its last exact pass."""
    at = [default] * count
    for b, stamp in zip(trace.get("breakpoint", ()), stamps, strict=False):
        if int(b) < count:
            at[int(b)] = stamp
    return at


def _params(manifest: Mapping[str, Any]) -> dict[str, str]:
    values = {"solver": manifest["solver"], **flat(manifest["science"])}
    return {name: str(value)[:500] for name, value in values.items()}


def evenly(count: int, most: int) -> list[int]:
    """At most `most` of range(count), first and last among them."""
    if count <= most:
        return list(range(count))
    return sorted({round(i * (count - 1) / (most - 1)) for i in range(most)})


def _log10(value: float) -> float:
    return math.log10(value) if value > 0 else math.nan


@contextlib.contextmanager
def _quiet(main_thread: bool) -> Iterator[None]:
    """Keep MLflow's own talk off the screen (stdout belongs to the summary)."""
    for name in ("mlflow", "alembic"):
        logging.getLogger(name).setLevel(logging.WARNING)
    with contextlib.redirect_stdout(io.StringIO()) if main_thread else contextlib.nullcontext():
        yield
