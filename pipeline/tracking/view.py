"""The view in MLflow of a run directory, or of a sweep: parameters, series of metrics, child runs and artifacts.

A run is found again by its tag `gapwise.key`, a sweep by `gapwise.sweep`, so that showing one twice adds nothing. Times
come from the stored trace, because MLflow drops a metric of equal key, step, timestamp and value. Breakpoints are child
runs of their run, and runs are children of the sweep that asked for them last.
"""

from __future__ import annotations

import contextlib
import math
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from pipeline.result import breakpoints
from pipeline.rundir import LockedError, flat, locked, read_json
from stages.problems.certainty import EXACT
from storage.backend import Location
from storage.files import fetched, listed

CHILDREN = 30
LOCK_SECONDS = 5.0
"""How long to wait for a database that another program holds."""
TURN_SECONDS = 60.0
"""How long to wait for other runs that write there."""
BATCH = 1000
"""Most metrics that MLflow takes in one call."""


def project(
    uri: str, run_dir: Location, trace: Mapping[str, Any], status: str, sweep: Mapping[str, str] | None = None
) -> str:
    """Show `run_dir` as it stands in the store at `uri`; returns its MLflow run id. MLflow's errors are not caught.

    Parameters
    ----------
    trace : mapping of str to array, each (rows,)
        One row an exact gap pass: breakpoint, lambda, passes, oracle_calls, seconds, timestamp_ms, gap, dual, primal.
    status : str
        RUNNING, FINISHED, KILLED or FAILED. Only a finished run has breakpoints, children and artifacts.
    sweep : mapping, optional
        Tags that make the run the child of a sweep.
    """
    manifest = read_json(run_dir / "manifest.json")
    tags = {"gapwise.key": manifest["key"], "gapwise.kind": "path", "gapwise.run_dir": str(run_dir), **(sweep or {})}
    started = int(datetime.strptime(manifest["created"], "%Y-%m-%dT%H:%M:%S%z").timestamp() * 1000)
    stamps = [int(stamp) for stamp in trace.get("timestamp_ms", ())]
    ended = stamps[-1] if stamps else started
    with _store(uri) as client:
        experiment = _experiment(client, uri, manifest["experiment"] or "gapwise")
        run_id = _found_or_made(client, experiment, "gapwise.key", tags, started, run_dir.name)
        _log(client, run_id, _trace_series(trace, stamps), _params(manifest))
        result = read_json(run_dir / "result.json")
        if status == "FINISHED" and (run_dir / "path.zarr").is_dir():
            path, _ = breakpoints(run_dir)
            at = _last_stamps(trace, stamps, len(path), ended)
            final = [] if result is None else _final(result, ended)
            if result is not None:
                client.set_tag(run_id, "gapwise.certainty", result.get("certainty", EXACT))
            _log(client, run_id, [*_path_series(path, at, _losses(run_dir)), *final], {})
            if result is not None:
                _children(client, experiment, run_id, run_dir, manifest, path, at, trace, stamps)
            _artifacts(client, run_id, run_dir)
        _end(client, run_id, status, ended)
    return run_id


def project_sweep(uri: str, folder: Location, found: Mapping[str, Any], status: str) -> str:
    """Show a sweep as the parent of its runs; returns its MLflow run id.

    Parameters
    ----------
    found : mapping
        The content of its summary.json.
    """
    tags = {"gapwise.sweep": found["key"], "gapwise.kind": "sweep", "gapwise.run_dir": str(folder)}
    with _store(uri) as client:
        experiment = _experiment(client, uri, found["experiment"] or "gapwise")
        ended = int(found["updated_ms"])
        run_id = _found_or_made(client, experiment, "gapwise.sweep", tags, ended, folder.name)
        counts = [(f"runs_{name}", float(value), ended, 0) for name, value in found["statuses"].items()]
        losses = [row["test_loss"] for row in found["jobs"] if row.get("test_loss") is not None]
        best = [("best_test_loss", float(min(losses)), ended, 0)] if losses else []
        _log(client, run_id, [*counts, *best], {name: str(value)[:500] for name, value in found["common"].items()})
        if status != "RUNNING":
            for figure in listed(folder / "figures", "*.png"):
                client.log_artifact(run_id, str(fetched(figure)), "figures")
            for file in (folder / "summary.json", folder / "runs.csv"):
                if file.is_file():
                    client.log_artifact(run_id, str(fetched(file)), "sweep")
        _end(client, run_id, status, ended)
    return run_id


@contextlib.contextmanager
def _store(uri: str) -> Iterator[Any]:
    """A client of the store at `uri`; a local database is this process's alone until the block ends.

    Runs that end at the same moment take turns with a lock file beside the database; the first one makes it. Raises
    sqlite3.Error if another program holds the database, where MLflow would retry for minutes.
    """
    os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
    os.environ["MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT"] = "true"
    os.environ.setdefault("MLFLOW_LOGGING_LEVEL", "WARNING")
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "2")  # an unreachable server costs seconds, not minutes
    local = Path(uri.removeprefix("sqlite:///")) if uri.startswith("sqlite:///") else None
    with contextlib.nullcontext() if local is None else _turn(local):
        if local is not None:
            connection = sqlite3.connect(local, timeout=LOCK_SECONDS)
            try:
                connection.execute("begin immediate")
                connection.execute("select count(*) from sqlite_master")
            finally:
                connection.close()
        from mlflow import MlflowClient

        yield MlflowClient(tracking_uri=uri)


@contextlib.contextmanager
def _turn(database: Path) -> Iterator[None]:
    """Wait for other runs that write to `database`; LockedError after TURN_SECONDS."""
    waited = 0.0

    def waiting(holder: str) -> None:
        nonlocal waited
        waited += 0.1
        if waited > TURN_SECONDS:
            raise LockedError(f"the database is in use by {holder}")

    with locked(database.with_name(f".{database.name}.lock"), waiting, seconds=0.1):
        yield


def _experiment(client: Any, uri: str, name: str) -> str:
    found = client.get_experiment_by_name(name)
    if found is not None:
        return str(found.experiment_id)
    location = None
    if uri.startswith("sqlite:///"):
        location = (Path(uri.removeprefix("sqlite:///")).resolve().parent / "mlruns" / name).as_uri()
    return str(client.create_experiment(name, artifact_location=location))


def _found_or_made(client: Any, experiment: str, by: str, tags: Mapping[str, str], started: int, name: str) -> str:
    """Id of the run whose tags `by` and `gapwise.kind` equal those of `tags`, with all of `tags` set on it."""
    where = " and ".join(f"tags.`{tag}` = '{tags[tag]}'" for tag in (by, "gapwise.kind"))
    there = client.search_runs([experiment], where)
    if not there:
        return str(client.create_run(experiment, started, dict(tags), name).info.run_id)
    for tag, value in tags.items():
        if there[0].data.tags.get(tag) != value:
            client.set_tag(there[0].info.run_id, tag, value)
    return str(there[0].info.run_id)


def _end(client: Any, run_id: str, status: str, ended: int) -> None:
    if status == "RUNNING":
        client.update_run(run_id, status)
    else:
        client.set_terminated(run_id, status, ended)


def _children(
    client: Any, experiment: str, parent: str, run_dir: Location, manifest: Mapping[str, Any],
    path: list[dict[str, Any]], at: list[int], trace: Mapping[str, Any], stamps: list[int],
) -> None:  # fmt: skip
    """Create a child run per chosen breakpoint, with the parent's parameters and the breakpoint's part of the trace."""
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


def _artifacts(client: Any, run_id: str, run_dir: Location) -> None:
    for figure in listed(run_dir / "figures", "*.png"):
        client.log_artifact(run_id, str(fetched(figure)), "figures")
    configs = listed(run_dir / "attempts", "*/.hydra/config.yaml")
    for file in (*configs[-1:], run_dir / "manifest.json", run_dir / "result.json"):
        if file.is_file():  # a run that stops at an earlier stage has no result
            client.log_artifact(run_id, str(fetched(file)), "run")


def _log(client: Any, run_id: str, series: Iterable[tuple[str, float, int, int]], params: Mapping[str, str]) -> None:
    """Log (name, value, timestamp in ms, step) in batches; values that are not finite are left out."""
    from mlflow.entities import Metric, Param

    metrics = [Metric(name, value, stamp, step) for name, value, stamp, step in series if math.isfinite(value)]
    client.log_batch(run_id, params=[Param(name, value) for name, value in params.items()])
    for first in range(0, len(metrics), BATCH):
        client.log_batch(run_id, metrics=metrics[first : first + BATCH])


def _trace_series(trace: Mapping[str, Any], stamps: list[int]) -> Iterator[tuple[str, float, int, int]]:
    """Series along the solve; the step is the number of the exact gap pass."""
    for name in ("passes", "oracle_calls", "seconds", "dual", "primal"):
        for step, (value, stamp) in enumerate(zip(trace.get(name, ()), stamps, strict=False)):
            yield f"trace/{name}", float(value), stamp, step
    for name in ("gap", "lambda"):
        for step, (value, stamp) in enumerate(zip(trace.get(name, ()), stamps, strict=False)):
            yield f"trace/log10_{name}", _log10(value), stamp, step


def _path_series(
    path: list[dict[str, Any]], at: list[int], losses: Mapping[str, Any]
) -> Iterator[tuple[str, float, int, int]]:
    """Series along the path; the step is the number of the breakpoint."""
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


def _losses(run_dir: Location) -> dict[str, Any]:
    """train_*, test_* and validation_* of path.zarr, each (breakpoint,)."""
    from storage.layout import open_group

    group: Any = open_group(run_dir / "path.zarr")
    names = [name for name in group.array_keys() if name.startswith(("train_", "test_", "validation_"))]
    return {name: group[name][:] for name in sorted(names)}


def _last_stamps(trace: Mapping[str, Any], stamps: list[int], count: int, default: int) -> list[int]:
    """When each breakpoint was solved: the time of its last exact pass, or `default`."""
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
