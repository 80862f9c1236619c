"""MLflow shows what a run has stored, once, and never makes the run fail. (Creating the database takes seconds.)"""

from __future__ import annotations

import json
import logging
import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_stages import trace, write_path

from pipeline.config.run_options import TrackingOptions
from pipeline.rundir import RunDir, read_json, write_json
from pipeline.tracking.mlflow import MlflowTracker, SweepTracker, open_tracker
from pipeline.tracking.view import CHILDREN, evenly, project


def finished_run(root: Path, count: int) -> RunDir:
    """A complete run directory with `count` breakpoints."""
    place = root / "horses_sample-bcpfw_gap_cache-0123abcd"
    (place / "figures").mkdir(parents=True)
    (place / "figures" / "path.png").write_bytes(b"picture")
    hydra = place / "attempts" / "now" / ".hydra"
    hydra.mkdir(parents=True)
    (hydra / "config.yaml").write_text("seed: 0\n")
    science = {"solver": {"sampling": "gap", "cache": {"F": 0.25}}, "seed": 0}
    manifest = {
        "key": "0123abcd", "experiment": "regpath_horseseg", "solver": "bcpfw_gap_cache", "science": science,
        "created": "2026-11-21T03:00:00+0000",
    }  # fmt: skip
    write_json(place / "manifest.json", manifest)
    write_path(place / "path.zarr", count)
    result = {"path": [{}] * count, "verify": {"certified": True, "max_gap": 0.08}, "evaluate": {"best_lambda": 0.25}}
    write_json(place / "result.json", result)
    return RunDir(place, "0123abcd")


def metrics_stored(database: Path) -> list[tuple[Any, ...]]:
    with sqlite3.connect(database) as connection:
        return sorted(connection.execute("select run_uuid, key, step, timestamp, value from metrics"))


@pytest.mark.slow
def test_projection__shows_the_path_once_and_mends_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    database = tmp_path / "mlflow.db"
    uri = f"sqlite:///{database}"
    directory = finished_run(tmp_path, count=40)
    monkeypatch.setattr("pipeline.tracking.mlflow._stored_trace", lambda run_dir: trace())
    run_id = project(uri, directory.path, {name: column[:3] for name, column in trace().items()}, "RUNNING")

    tracker = MlflowTracker(uri, directory)
    tracker.finish("KILLED")
    assert not (directory.path / "tracking.json").exists()
    tracker.mend()
    assert read_json(directory.path / "tracking.json") == {"uri": uri, "run_id": run_id}
    assert caplog.records == []
    once = metrics_stored(database)
    (directory.path / "tracking.json").unlink()
    tracker.mend()
    assert metrics_stored(database) == once

    from mlflow import MlflowClient

    client = MlflowClient(tracking_uri=uri)
    experiment = client.get_experiment_by_name("regpath_horseseg")
    runs = client.search_runs([experiment.experiment_id], "tags.`gapwise.key` = '0123abcd'", max_results=1000)
    (parent,) = (run for run in runs if run.data.tags["gapwise.kind"] == "path")
    children = client.search_runs([experiment.experiment_id], f"tags.`mlflow.parentRunId` = '{run_id}'")
    assert len(runs) == 1 + CHILDREN
    assert parent.info.status == "FINISHED"
    assert parent.data.params["solver.cache.F"] == "0.25"
    assert [m.value for m in client.get_metric_history(run_id, "log10_lambda")] == pytest.approx(
        np.log10(0.5 / (1 + np.arange(40.0))).tolist()
    )
    assert len(client.get_metric_history(run_id, "trace/log10_gap")) == 6
    assert len(client.get_metric_history(run_id, "test_loss")) == 40
    assert {file.path for file in client.list_artifacts(run_id)} == {"figures", "run"}
    first = next(run for run in children if run.data.tags["gapwise.breakpoint"] == "0")
    assert first.data.params["solver.sampling"] == "gap"
    assert first.data.params["lambda"] == "0.5"
    assert len(client.get_metric_history(first.info.run_id, "trace/dual")) == 2


@pytest.mark.parametrize("kind", ["corrupt", "directory", "locked"])
def test_broken_database__costs_one_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, kind: str
) -> None:
    database = tmp_path / "mlflow.db"
    says = {"corrupt": "not a database", "directory": "unable to open", "locked": "locked"}[kind]
    if kind == "corrupt":
        database.write_bytes(b"this is no database" * 100)
    elif kind == "directory":
        database.mkdir()
    holder = sqlite3.connect(database if kind == "locked" else ":memory:")
    holder.execute("begin exclusive")
    directory = finished_run(tmp_path, count=3)
    monkeypatch.setattr("pipeline.tracking.mlflow._stored_trace", lambda run_dir: trace())
    monkeypatch.setattr("pipeline.tracking.view.LOCK_SECONDS", 0.1)
    tracker = MlflowTracker(f"sqlite:///{database}", directory)
    with caplog.at_level(logging.WARNING, "gapwise"):
        tracker.observe(trace())
        tracker.finish("FINISHED")
    holder.close()
    (warning,) = (record.getMessage() for record in caplog.records if record.name == "gapwise")
    assert says in warning
    assert "the same command, or run.stage=sync, shows it later" in warning
    assert not (directory.path / "tracking.json").exists()


def test_none__does_nothing(tmp_path: Path) -> None:
    tracker = open_tracker(TrackingOptions("none"), finished_run(tmp_path, 3))
    tracker.observe(trace())
    tracker.finish("FINISHED")
    tracker.mend()
    assert not list(tmp_path.rglob("tracking.json"))
    assert json.loads(next(tmp_path.rglob("manifest.json")).read_text())["key"] == "0123abcd"


def test_evenly__keeps_first_and_last() -> None:
    assert evenly(3, 30) == [0, 1, 2]
    chosen = evenly(1000, 30)
    assert len(chosen) == 30
    assert (chosen[0], chosen[-1]) == (0, 999)
    assert set(np.diff(chosen)) <= {34, 35}


def test_observe__shows_a_run_that_goes_on_and_one_that_was_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[tuple[str, int]] = []

    def fake(uri: str, run_dir: Path, columns: dict[str, Any], status: str) -> str:
        shown.append((status, len(columns["gap"])))
        return "id"

    monkeypatch.setattr("pipeline.tracking.mlflow.project", fake)
    monkeypatch.setattr("pipeline.tracking.mlflow.LIVE_SECONDS", 0.0)
    tracker = MlflowTracker("sqlite:///none.db", finished_run(tmp_path, 3))
    tracker.finish("FAILED")
    assert shown == []
    tracker.observe(trace())
    tracker.finish("KILLED")
    assert shown == [("RUNNING", 6), ("KILLED", 6)]


def stored(uri: str, where: str) -> list[Any]:
    """Runs of all experiments that `where` finds."""
    from mlflow import MlflowClient

    client = MlflowClient(tracking_uri=uri)
    experiments = [experiment.experiment_id for experiment in client.search_experiments()]
    return list(client.search_runs(experiments, where, max_results=1000))


def swept(root: Path, count: int) -> tuple[Path, list[Path], dict[str, Any]]:
    """A sweep's folder, its run directories, its summary."""
    places = []
    for number in range(count):
        place = finished_run(root / str(number), count=2).path
        manifest = read_json(place / "manifest.json")
        manifest["key"], manifest["science"]["seed"] = f"key{number}", number
        write_json(place / "manifest.json", manifest)
        places.append(place)
    (root / "figures").mkdir()
    (root / "figures" / "gaps.png").write_bytes(b"picture")
    found = {
        "key": "sweepkey", "experiment": "regpath_horseseg", "updated_ms": 1_790_000_000_000, "statuses": {"done": count},
        "common": {"solver.sampling": "gap"}, "jobs": [{"run": str(place), "test_loss": 0.25} for place in places],
    }  # fmt: skip
    write_json(root / "summary.json", found)
    return root, places, found


@pytest.mark.slow
def test_sweep__is_the_one_parent_of_its_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    uri = f"sqlite:///{tmp_path / 'mlflow.db'}"
    monkeypatch.setattr("pipeline.tracking.mlflow._stored_trace", lambda run_dir: trace())
    folder, places, found = swept(tmp_path, 3)
    MlflowTracker(uri, RunDir(places[0], "key0")).finish("FINISHED")  # a run that was there before
    (places[1] / "result.json").unlink()  # run.until=solve

    tracker = SweepTracker(TrackingOptions("mlflow", uri), folder)
    tracker.begin(found, [places[0]])
    tracker.ended(places[1], "FINISHED")
    tracker.ended(places[2], "KILLED")
    tracker.finish(found, "KILLED")
    again = SweepTracker(TrackingOptions("mlflow", uri), folder)
    again.begin(found, places[:2])
    again.ended(places[2], "FINISHED")
    again.finish(found, "FINISHED")
    assert caplog.records == []

    (parent,) = stored(uri, "tags.`gapwise.sweep` = 'sweepkey' and tags.`gapwise.kind` = 'sweep'")
    children = stored(uri, f"tags.`mlflow.parentRunId` = '{parent.info.run_id}'")
    assert sorted(run.data.tags["gapwise.key"] for run in children) == ["key0", "key1", "key2"]
    assert {run.info.status for run in (parent, *children)} == {"FINISHED"}
    assert {run.data.params["solver.sampling"] for run in (parent, *children)} == {"gap"}
    assert sorted(run.data.params["seed"] for run in children) == ["0", "1", "2"]
    assert parent.data.metrics == {"runs_done": 3.0, "best_test_loss": 0.25}
    once = metrics_stored(tmp_path / "mlflow.db")

    monkeypatch.setattr("pipeline.tracking.mlflow.project", None)
    third = SweepTracker(TrackingOptions("mlflow", uri), folder)
    third.begin(found, places)
    third.finish(found, "FINISHED")
    assert metrics_stored(tmp_path / "mlflow.db") == once
    assert caplog.records == []


@pytest.mark.slow
def test_sweep__with_a_locked_database_warns_once_and_is_mended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    database = tmp_path / "mlflow.db"
    uri = f"sqlite:///{database}"
    monkeypatch.setattr("pipeline.tracking.mlflow._stored_trace", lambda run_dir: trace())
    monkeypatch.setattr("pipeline.tracking.view.LOCK_SECONDS", 0.1)
    folder, places, found = swept(tmp_path, 2)
    holder = sqlite3.connect(database)
    holder.execute("begin exclusive")
    tracker = SweepTracker(TrackingOptions("mlflow", uri), folder)
    with caplog.at_level(logging.WARNING, "gapwise"):
        tracker.begin(found, [])
        tracker.ended(places[0], "FINISHED")
        tracker.ended(places[1], "FINISHED")
        tracker.finish(found, "FINISHED")
    (warning,) = (record.getMessage() for record in caplog.records if record.name == "gapwise")
    assert "locked" in warning
    assert not list(tmp_path.rglob("tracking.json"))
    holder.close()
    mended = SweepTracker(TrackingOptions("mlflow", uri), folder)
    mended.begin(found, places)
    mended.finish(found, "FINISHED")
    assert len(stored(uri, "tags.`gapwise.kind` = 'path'")) == 2


WRITER = """
import sys
from pathlib import Path
from pipeline.rundir import RunDir
from pipeline.tracking.mlflow import MlflowTracker
MlflowTracker(sys.argv[1], RunDir(Path(sys.argv[2]), "")).mend()
"""


@pytest.mark.slow
def test_writers__take_turns_even_in_making_the_database(tmp_path: Path) -> None:
    uri = f"sqlite:///{tmp_path / 'mlflow.db'}"
    _, places, _ = swept(tmp_path, 3)
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, uri, str(place)], env=env, stderr=subprocess.PIPE, text=True)
        for place in places
    ]
    said = [writer.communicate(timeout=200)[1] for writer in writers]
    assert [text for text in said if "MLflow at" in text] == []
    assert len(stored(uri, "tags.`gapwise.kind` = 'path'")) == 3
