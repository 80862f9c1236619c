"""The view in MLflow of a run directory, or of a sweep: parameters, curves, data set, model and artifacts.

A run is found again by its tag `gapwise.key`, a sweep by `gapwise.sweep`, so that showing one twice adds nothing. Times
come from the stored trace, because MLflow drops a metric of equal key, step, timestamp and value. A run is one row, its
breakpoints are steps (`gapwise.pipeline.tracking.curves`); a sweep is a row of the experiment "sweeps", and its name is a
tag of its runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from gapwise.pipeline.result import breakpoints
from gapwise.pipeline.rundir import read_json
from gapwise.pipeline.tracking import curves
from gapwise.pipeline.tracking.model import log_model
from gapwise.pipeline.tracking.names import (
    EXPERIMENT_NOTE,
    SWEEPS,
    SWEEPS_NOTE,
    dataset_of,
    experiment_of,
    note,
    parameters,
    plain,
    run_name,
    source_tags,
)
from gapwise.pipeline.tracking.store import end, experiment_id, find_or_create_run, store, write
from gapwise.records import Facts
from gapwise.stages.certify.verdict import verdict_of
from gapwise.storage.backend import Location
from gapwise.storage.files import fetched, listed

if TYPE_CHECKING:  # importing MLflow takes seconds
    from mlflow import MlflowClient


VERSION = 4
"""Raised when the view changes; what an earlier version showed is then shown again."""
RUNS_PAGE = {"mlflow.experimentKind": "custom_model_development"}
"""Tells MLflow's pages to show runs, not traces of agents."""
EXPERIMENT_TAGS = {"mlflow.note.content": EXPERIMENT_NOTE, **RUNS_PAGE}
SWEEPS_TAGS = {"mlflow.note.content": SWEEPS_NOTE, **RUNS_PAGE}
LEFT = ("waiting", "interrupted")
GOOD = ("complete", "done")
"""Statuses of a sweep's runs that are not done, and of those that are; all others are failures."""


def project(
    uri: str,
    run_dir: Location,
    trace: Facts,
    status: str,
    sweep: Mapping[str, str] | None = None,
) -> str:
    """Show `run_dir` as it stands in the store at `uri`; returns its MLflow run id. MLflow's errors are not caught.

    Parameters
    ----------
    trace : mapping of str to array, each (rows,)
        One row an exact gap pass: breakpoint, lambda, passes, oracle_calls, seconds, timestamp_ms, gap, dual, primal.
    status : str
        RUNNING, FINISHED, KILLED or FAILED. Only a finished run has curves over lambda, a model and artifacts.
    sweep : mapping, optional
        Tags that say which sweep the run belongs to.
    """
    manifest = read_json(run_dir / "manifest.json")
    tags = {
        "gapwise.key": manifest["key"], "gapwise.kind": "path", "gapwise.run_dir": str(run_dir),
        **({"gapwise.experiment": manifest["experiment"]} if manifest["experiment"] else {}),
        **source_tags(manifest, run_dir), **(sweep or {}),
    }  # fmt: skip
    started = int(datetime.strptime(manifest["created"], "%Y-%m-%dT%H:%M:%S%z").timestamp() * 1000)
    stamps = [int(stamp) for stamp in trace.get("timestamp_ms", ())]
    ended = stamps[-1] if stamps else started
    with store(uri) as client:
        experiment = experiment_id(
            client, uri, experiment_of(manifest["science"], manifest.get("label")), EXPERIMENT_TAGS
        )
        run_id = find_or_create_run(client, experiment, "gapwise.key", tags, started, run_name(manifest))
        points, words = [*curves.convergence(trace)], {}
        result = read_json(run_dir / "result.json") if status == "FINISHED" else None
        if status == "FINISHED" and (run_dir / "path.zarr").is_dir():
            path, attrs = breakpoints(run_dir)
            ends = _last_stamps(trace, stamps, len(path), ended)
            points += [*curves.breakpoints(path, ends), *curves.over_lambda(run_dir, ended)]
            _data(client, run_id, dataset_of(manifest, attrs["n"], attrs["d"]))
            if result is not None:
                points = [*curves.headline(result, ended), *points]  # MLflow lists metrics as they were logged
                words = _words(run_dir, result)
                log_model(client, run_id, run_dir, register=sweep is None)
            _artifacts(client, run_id, run_dir)
        write(client, run_id, points, parameters(manifest["solver"], manifest["science"]), words)
        end(client, run_id, status, ended)
    return run_id


def _words(run_dir: Location, result: Facts) -> dict[str, str]:
    """Tags of a finished run: how it ended, what its certificates are, its summary as the description."""
    verdict = verdict_of(result["verdict"])
    return {
        "gapwise.status": result["status"],
        "gapwise.certainty": verdict.sense,
        "gapwise.certified": str(verdict.certified).lower(),
        "mlflow.note.content": note(run_dir),
    }


def project_sweep(uri: str, folder: Location, summary: Facts, status: str) -> dict[str, str]:
    """Show a sweep; returns the tags of its runs, and its MLflow run id as `gapwise.sweep_run`.

    Parameters
    ----------
    summary : mapping
        The content of its summary.json.
    """
    tags = {
        "gapwise.sweep": summary["key"], "gapwise.kind": "sweep", "gapwise.run_dir": str(folder),
        "mlflow.source.name": plain(summary.get("command", "")), "mlflow.source.type": "JOB",
    }  # fmt: skip
    count = sum(summary["statuses"].values())
    name = f"{folder.name} · {count} runs"
    ended = int(summary["updated_ms"])
    with store(uri) as client:
        experiment = experiment_id(client, uri, SWEEPS, SWEEPS_TAGS)
        run_id = find_or_create_run(client, experiment, "gapwise.sweep", tags, ended, name)
        write(client, run_id, _counts(summary, ended), parameters(None, summary["common"]))
        if status != "RUNNING":
            for part in sorted({name.rpartition("/")[0] for name in ("", *summary.get("figures", ()))}):
                for figure in listed(folder / part / "figures", "*.png"):
                    client.log_artifact(run_id, str(fetched(figure)), f"figures/{part}".rstrip("/"))
            _files(client, run_id, "sweep", folder / "summary.json", folder / "runs.csv", folder / "report.html")
        end(client, run_id, status, ended)
    return {"gapwise.sweep": summary["key"], "gapwise.sweep_name": folder.name, "gapwise.sweep_run": run_id}


def _counts(summary: Facts, stamp: int) -> list[curves.MetricValue]:
    """How many runs are done, left and failed, also where it is 0, so that no earlier count stays; and the best loss."""
    of: Counter[str] = Counter()
    for status, count in summary["statuses"].items():
        of["done" if status in GOOD else "left" if status in LEFT else "failed"] += count
    points = [curves.MetricValue(f"runs_{name}", float(of[name]), stamp, 0) for name in ("done", "left", "failed")]
    losses = [row["test_loss"] for row in summary["jobs"] if row.get("test_loss") is not None]
    return [*points, *([curves.MetricValue("best_test_loss", float(min(losses)), stamp, 0)] if losses else [])]


def _data(client: MlflowClient, run_id: str, description: Mapping[str, str]) -> None:
    """Say which data set the run was trained on, once."""
    from mlflow.entities import Dataset, DatasetInput, InputTag

    inputs = client.get_run(run_id).inputs
    if inputs is None or not inputs.dataset_inputs:
        context = InputTag("mlflow.data.context", "training")
        client.log_inputs(run_id, datasets=[DatasetInput(Dataset(**description), [context])])


def _artifacts(client: MlflowClient, run_id: str, run_dir: Location) -> None:
    for figure in listed(run_dir / "figures", "*.png"):
        client.log_artifact(run_id, str(fetched(figure)), "figures")
    configs = listed(run_dir / "invocations", "*/.hydra/config.yaml")
    records = (run_dir / name for name in ("manifest.json", "result.json", "report.html"))
    _files(client, run_id, "run", *configs[-1:], *records)


def _files(client: MlflowClient, run_id: str, folder: str, *files: Location) -> None:
    """Log those files that are there: a run that stops at an earlier stage has no result."""
    for file in files:
        if file.is_file():
            client.log_artifact(run_id, str(fetched(file)), folder)


def _last_stamps(trace: Facts, stamps: list[int], count: int, default: int) -> list[int]:
    """When each breakpoint was solved: the time of its last exact pass, or `default`."""
    last = [default] * count
    for b, stamp in zip(trace.get("breakpoint", ()), stamps, strict=False):
        if int(b) < count:
            last[int(b)] = stamp
    return last
