"""Reading and writing an MLflow store: one client at a time, runs found by their tags, metrics in batches."""

from __future__ import annotations

import contextlib
import math
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from gapwise.pipeline.rundir import LockedError, locked
from gapwise.pipeline.tracking.curves import MetricValue

if TYPE_CHECKING:  # importing MLflow takes seconds
    from mlflow import MlflowClient


LOCK_SECONDS = 5.0
"""How long to wait for a database that another program holds."""
TURN_SECONDS = 60.0
"""How long to wait for other runs that write there."""
MODELS = "mlruns"
"""Folder beside a local database, where MLflow looks by default: figures and models, by experiment, and the lock."""
BATCH = 1000
"""Most metrics, parameters and tags together that MLflow takes in one call."""


def _set_up() -> None:
    """Set what MLflow reads from the environment when it is imported."""
    os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
    os.environ["MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT"] = "true"
    os.environ.setdefault("MLFLOW_LOGGING_LEVEL", "WARNING")
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "2")  # an unreachable server costs seconds, not minutes


@contextlib.contextmanager
def store(uri: str) -> Iterator[MlflowClient]:
    """A client of the store at `uri`; a local database is this process's alone until the block ends.

    Runs that end at the same moment take turns with a lock file in `MODELS`; the first one makes it. Raises
    sqlite3.Error if another program holds the database, where MLflow would retry for minutes.
    """
    _set_up()
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

    with locked(database.parent / MODELS / f".{database.name}.lock", waiting, seconds=0.1):
        yield


def experiment_id(client: MlflowClient, uri: str, name: str, tags: Mapping[str, str]) -> str:
    """Id of the experiment `name`, which is made with `tags` if there is none."""
    experiment = client.get_experiment_by_name(name)
    if experiment is not None:
        return str(experiment.experiment_id)
    location = None
    if uri.startswith("sqlite:///"):
        folder = name.replace("/", "-")  # it comes from a run's files, and must not lead elsewhere
        location = (Path(uri.removeprefix("sqlite:///")).resolve().parent / MODELS / folder).as_uri()
    return str(client.create_experiment(name, artifact_location=location, tags=dict(tags)))


def find_or_create_run(
    client: MlflowClient, experiment: str, by: str, tags: Mapping[str, str], started: int, name: str
) -> str:
    """Id of the run whose tags `by` and `gapwise.kind` equal those of `tags`, with all of `tags` set on it."""
    where = " and ".join(f"tags.`{tag}` = '{tags[tag]}'" for tag in (by, "gapwise.kind"))
    runs = client.search_runs([experiment], where)
    if not runs:
        return str(client.create_run(experiment, started, dict(tags), name).info.run_id)
    known = runs[0].data.tags
    new = {tag: value for tag, value in {"mlflow.runName": name, **tags}.items() if known.get(tag) != value}
    write(client, runs[0].info.run_id, tags=new)
    return str(runs[0].info.run_id)


def write(
    client: MlflowClient,
    run_id: str,
    points: Iterable[MetricValue] = (),
    params: Mapping[str, str] | None = None,
    tags: Mapping[str, str] | None = None,
) -> None:
    """Log metrics in batches, with parameters and tags; values that are not finite are left out."""
    from mlflow.entities import Metric, Param, RunTag

    metrics = [Metric(p.name, p.value, p.timestamp, p.step) for p in points if math.isfinite(p.value)]
    choices = [Param(name, value) for name, value in (params or {}).items()]
    words = [RunTag(name, value) for name, value in (tags or {}).items()]
    first = BATCH - len(choices) - len(words)
    if metrics or choices or words:
        client.log_batch(run_id, metrics=metrics[:first], params=choices, tags=words)
    for begin in range(first, len(metrics), BATCH):
        client.log_batch(run_id, metrics=metrics[begin : begin + BATCH])


def end(client: MlflowClient, run_id: str, status: str, ended: int) -> None:
    """Set the status of a run: RUNNING, FINISHED, KILLED or FAILED, and for all but the first the time it `ended`, ms."""
    if status == "RUNNING":
        client.update_run(run_id, status)
    else:
        client.set_terminated(run_id, status, ended)
