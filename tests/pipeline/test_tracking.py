"""MLflow shows what a run has stored, once, and never makes the run fail. (Creating the database takes seconds.)"""

from __future__ import annotations

import json
import logging
import shutil
import sqlite3
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from shown import empty_database, finished_run, summary_of, trace

from gapwise.pipeline.config.run_options import TrackingOptions
from gapwise.pipeline.rundir import RunDir, read_json, write_json
from gapwise.pipeline.tracking.mlflow import SweepTracker, Tracker
from gapwise.pipeline.tracking.names import plain
from gapwise.pipeline.tracking.view import VERSION, project


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return empty_database(tmp_path_factory.mktemp("empty") / "mlflow.db")


@pytest.fixture
def uri(empty: Path, tmp_path: Path) -> str:
    """A store of its own for a test."""
    shutil.copy(empty, tmp_path / "mlflow.db")
    return f"sqlite:///{tmp_path / 'mlflow.db'}"


def metrics_stored(database: Path) -> list[tuple[Any, ...]]:
    with sqlite3.connect(database) as connection:
        return sorted(connection.execute("select run_uuid, key, step, timestamp, value from metrics"))


def test_projection__is_one_run_shown_once_and_adds_what_is_missing(
    uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    database = tmp_path / "mlflow.db"
    directory = finished_run(tmp_path, count=40)
    monkeypatch.setattr("gapwise.pipeline.tracking.mlflow._stored_trace", lambda run_dir: trace(40))
    run_id = project(uri, directory.path, {name: column[:3] for name, column in trace(40).items()}, "RUNNING")

    tracker = Tracker(TrackingOptions(uri=uri), directory)
    tracker.ensure_shown()
    marker = read_json(directory.path / "tracking.json")
    assert marker == {"uri": uri, "run_id": run_id, "view": VERSION}
    assert caplog.records == []
    once = metrics_stored(database)
    (directory.path / "tracking.json").unlink()
    tracker.ensure_shown()
    assert metrics_stored(database) == once

    (run,) = stored(uri, "tags.`gapwise.key` != ''")
    assert run.info.run_id == run_id
    assert (run.info.status, run.info.run_name) == ("FINISHED", "seed 0 · bcpfw_gap_cache · paper")
    assert run.data.params["solver.cache.F"] == "0.25"
    headline = {name: value for name, value in run.data.metrics.items() if "/" not in name}
    assert headline == pytest.approx({
        "best_test_loss": 0.2, "best_lambda": 10.0 / 9.0, "certified_gap": 0.08, "passes": sum(2.0 + np.arange(40)),
        "oracle_calls": 10 * sum(2 + np.arange(40)), "seconds": 0.1 * sum(1.0 + np.arange(40)),
    })  # fmt: skip
    assert (
        run.data.tags["mlflow.source.name"]
        == "python -m gapwise +experiment=regpath_horseseg solver=bcpfw_gap_cache seed=0"
    )
    assert run.data.tags["mlflow.source.git.commit"] == "c" * 40
    (data,) = run.inputs.dataset_inputs
    assert data.dataset.name == "horses_sample"
    assert json.loads(data.dataset.profile) == {"num_rows": 147, "features": 3}

    client = client_of(uri)
    assert client.get_experiment(run.info.experiment_id).name == "horses_sample-path"
    assert {file.path for file in client.list_artifacts(run_id)} == {"figures", "run"}, "its features are gone"


def test_model__is_registered_once_but_not_that_of_a_sweep(
    uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forms: list[str] = []

    def exported(form_name: str, run_dir: Path, to: Path) -> bool:
        forms.append(form_name)
        to.mkdir()
        (to / ("MLmodel" if form_name == "mlflow" else "model.json")).write_text("flavors: {}\n")
        return True

    monkeypatch.setattr("gapwise.pipeline.tracking.mlflow._stored_trace", lambda run_dir: trace())
    monkeypatch.setattr("gapwise.pipeline.tracking.model._exported", exported)
    alone, swept = (finished_run(tmp_path, seed=seed) for seed in (0, 1))
    for _ in range(2):
        Tracker(TrackingOptions(uri=uri), alone).sync("FINISHED")
        project(uri, swept.path, {}, "FINISHED", {"gapwise.sweep": "s"})
    assert forms == ["mlflow", "gapwise"] * 2
    client = client_of(uri)
    (version,) = client.search_model_versions("name = 'horses_sample-path'")
    assert client.get_run(version.run_id).data.params["seed"] == "0"
    (other,) = stored(uri, "params.seed = '1'")
    assert {file.path for file in client.list_artifacts(other.info.run_id, "model")} == {"model/model.json"}


@pytest.mark.parametrize("kind", ["corrupt", "locked"])
def test_broken_database__costs_one_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, kind: str
) -> None:
    database = tmp_path / "mlflow.db"
    says = {"corrupt": "not a database", "locked": "locked"}[kind]
    if kind == "corrupt":
        database.write_bytes(b"this is no database" * 100)
    holder = sqlite3.connect(database if kind == "locked" else ":memory:")
    holder.execute("begin exclusive")
    directory = finished_run(tmp_path)
    monkeypatch.setattr("gapwise.pipeline.tracking.mlflow._stored_trace", lambda run_dir: trace())
    monkeypatch.setattr("gapwise.pipeline.tracking.store.LOCK_SECONDS", 0.1)
    tracker = Tracker(TrackingOptions(uri=f"sqlite:///{database}"), directory)
    with caplog.at_level(logging.WARNING, "gapwise"):
        tracker.finish("FINISHED")
        tracker.finish("FINISHED")
    holder.close()
    (warning,) = (record.getMessage() for record in caplog.records if record.name == "gapwise")
    assert says in warning
    assert "the same command, or gapwise sync, shows it later" in warning
    assert not (directory.path / "tracking.json").exists()


def test_finish__shows_a_failed_run_once_it_has_something_to_show(tmp_path: Path, monkeypatch) -> None:
    shown: list[tuple[str, int]] = []

    def fake(uri: str, run_dir: Path, columns: dict[str, Any], status: str) -> str:
        shown.append((status, len(columns["gap"])))
        return "id"

    monkeypatch.setattr("gapwise.pipeline.tracking.mlflow.project", fake)
    tracker = Tracker(TrackingOptions(uri="sqlite:///none.db"), finished_run(tmp_path))
    tracker.finish("FAILED")
    assert shown == []
    monkeypatch.setattr("gapwise.pipeline.tracking.mlflow._stored_trace", lambda run_dir: trace())
    tracker.finish("FAILED")
    Tracker(TrackingOptions("none"), finished_run(tmp_path, seed=1)).finish("FAILED")
    assert shown == [("FAILED", 6)]


def test_observe__shows_a_solve_that_goes_on_and_stop_waits_for_nobody(tmp_path: Path, monkeypatch) -> None:
    shown: list[str] = []
    go_on = threading.Event()

    def fake(uri: str, run_dir: Path, columns: dict[str, Any], status: str) -> str:
        shown.append(status)
        go_on.wait(5.0)
        return "id"

    monkeypatch.setattr("gapwise.pipeline.tracking.mlflow.project", fake)
    monkeypatch.setattr("gapwise.pipeline.tracking.mlflow.STOP_SECONDS", 0.01)
    tracker = Tracker(TrackingOptions(uri="sqlite:///none.db"), finished_run(tmp_path))
    tracker.observe(trace())  # too soon
    tracker.stop()  # nothing was shown, so MLflow is not loaded for it
    assert shown == []
    monkeypatch.setattr("gapwise.pipeline.tracking.mlflow.LIVE_SECONDS", 0.0)
    tracker.observe(trace())
    tracker.observe(trace())  # the first one is at it
    tracker.stop()
    go_on.set()
    tracker.finish("FAILED")
    tracker.stop()
    assert shown == ["RUNNING", "KILLED"]


def client_of(uri: str) -> Any:
    from mlflow import MlflowClient

    return MlflowClient(tracking_uri=uri)


def stored(uri: str, where: str) -> list[Any]:
    """Runs of all experiments that `where` finds."""
    client = client_of(uri)
    experiments = [experiment.experiment_id for experiment in client.search_experiments()]
    return list(client.search_runs(experiments, where, max_results=1000))


def swept(root: Path, count: int) -> tuple[Path, list[Path], dict[str, Any]]:
    """A sweep's folder, its run directories, its summary."""
    runs = {f"seed={seed}": finished_run(root, seed=seed) for seed in range(count)}
    (root / "figures").mkdir()
    (root / "figures" / "gaps.png").write_bytes(b"picture")
    content = summary_of(runs)
    write_json(root / "summary.json", content)
    return root, [run.path for run in runs.values()], content


def test_sweep__is_a_row_elsewhere_and_a_tag_of_its_runs(
    uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("gapwise.pipeline.tracking.mlflow._stored_trace", lambda run_dir: trace())
    folder, paths, content = swept(tmp_path, 3)
    options = TrackingOptions("mlflow", uri)
    Tracker(TrackingOptions(uri=uri), RunDir(paths[0], "key0")).finish("FINISHED")  # a run that was there before
    (paths[1] / "result.json").unlink()  # run.until=solve

    tracker = SweepTracker(options, folder)
    tracker.begin({**content, "statuses": {"waiting": 2, "complete": 1}}, [paths[0]])
    tracker.ended(paths[1], "FINISHED")
    tracker.ended(paths[2], "KILLED")
    tracker.finish({**content, "statuses": {"interrupted": 1, "done": 1, "complete": 1}}, "KILLED")
    again = SweepTracker(options, folder)
    again.begin(content, paths[:2])
    again.ended(paths[2], "FINISHED")
    again.finish({**content, "updated_ms": content["updated_ms"] + 1}, "FINISHED")
    assert caplog.records == []

    (sweep,) = stored(uri, "tags.`gapwise.kind` = 'sweep'")
    runs = stored(uri, "tags.`gapwise.sweep` = 'sweepkey' and tags.`gapwise.kind` = 'path'")
    assert sorted(run.data.params["seed"] for run in runs) == ["0", "1", "2"]
    assert {run.info.status for run in (sweep, *runs)} == {"FINISHED"}
    assert {run.data.params["solver.sampling"] for run in (sweep, *runs)} == {"gap"}
    assert {run.data.tags["gapwise.sweep_name"] for run in runs} == {folder.name}
    assert sweep.info.experiment_id != runs[0].info.experiment_id
    assert sweep.data.metrics == {"runs_done": 3.0, "runs_left": 0.0, "runs_failed": 0.0, "best_test_loss": 0.25}
    assert sweep.data.tags["mlflow.source.name"] == "python -m gapwise -m seed=0,1"
    once = metrics_stored(tmp_path / "mlflow.db")

    monkeypatch.setattr("gapwise.pipeline.tracking.mlflow.project", None)
    third = SweepTracker(options, folder)
    third.begin(content, paths)
    third.finish(content, "FINISHED")
    assert metrics_stored(tmp_path / "mlflow.db") == once
    assert caplog.records == []


def test_sweep__with_a_locked_database_warns_once_and_is_mended(
    uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    database = tmp_path / "mlflow.db"
    monkeypatch.setattr("gapwise.pipeline.tracking.mlflow._stored_trace", lambda run_dir: trace())
    monkeypatch.setattr("gapwise.pipeline.tracking.store.LOCK_SECONDS", 0.1)
    folder, paths, content = swept(tmp_path, 2)
    holder = sqlite3.connect(database)
    holder.execute("begin exclusive")
    tracker = SweepTracker(TrackingOptions("mlflow", uri), folder)
    with caplog.at_level(logging.WARNING, "gapwise"):
        tracker.begin(content, [])
        tracker.ended(paths[0], "FINISHED")
        tracker.ended(paths[1], "FINISHED")
        tracker.finish(content, "FINISHED")
    (warning,) = (record.getMessage() for record in caplog.records if record.name == "gapwise")
    assert "locked" in warning
    assert not list(tmp_path.rglob("tracking.json"))
    holder.close()
    again = SweepTracker(TrackingOptions("mlflow", uri), folder)
    again.begin(content, paths)
    again.finish(content, "FINISHED")
    assert len(stored(uri, "tags.`gapwise.kind` = 'path'")) == 2


@pytest.mark.parametrize(
    "began", ["/v/bin/python -B -m pipeline", "python -m gapwise", "/v/bin/python /v/bin/gapwise", "/v/bin/gapwise"]
)
def test_plain__command_is_the_same_however_gapwise_was_called(began: str) -> None:
    assert plain(f"{began} -m seed=0,1 dataset=gapwise") == "python -m gapwise -m seed=0,1 dataset=gapwise"
    assert plain(began) == "python -m gapwise"
    assert plain("") == "python -m gapwise"
