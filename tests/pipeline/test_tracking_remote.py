"""A tracking server that goes away between two commands costs one warning, and the run is shown when it is back."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from servers import mlflow_server
from shown import empty_database, finished_run, trace

from gapwise.pipeline.config.run_options import TrackingOptions
from gapwise.pipeline.rundir import read_json
from gapwise.pipeline.tracking.mlflow import Tracker


@pytest.mark.slow
def test_server__that_goes_away_costs_one_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("gapwise.pipeline.tracking.mlflow._stored_trace", lambda run: trace(2))
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    empty_database(tmp_path / "mlflow.db")
    directory = finished_run(tmp_path)

    from mlflow import MlflowClient

    with mlflow_server(tmp_path) as server, caplog.at_level(logging.WARNING, "gapwise"):
        tracker = Tracker(TrackingOptions(uri=server.address), directory)
        tracker.finish("FAILED")
        client = MlflowClient(tracking_uri=server.address)
        experiment = client.get_experiment_by_name("horses_sample-path")
        (run,) = client.search_runs([experiment.experiment_id])
        assert run.info.status == "FAILED"
        assert len(client.get_metric_history(run.info.run_id, "vs_passes/dual")) == 4

        server.stop()
        monkeypatch.setattr("gapwise.pipeline.tracking.mlflow._stored_trace", lambda run: trace(5))
        tracker.finish("FINISHED")
        said = [record.getMessage() for record in caplog.records if record.name == "gapwise"]
        assert len(said) == 1
        assert server.address in said[0]
        assert "shows it later" in said[0]
        assert not (directory.path / "tracking.json").exists()

        server.start()
        Tracker(TrackingOptions(uri=server.address), directory).ensure_shown()
        (run,) = client.search_runs([experiment.experiment_id])
        assert run.info.status == "FINISHED"
        assert run.data.metrics["best_test_loss"] == 0.2
        assert len(client.get_metric_history(run.info.run_id, "vs_passes/dual")) == 10
        assert {file.path for file in client.list_artifacts(run.info.run_id)} == {"figures", "run"}
        assert read_json(directory.path / "tracking.json")["run_id"] == run.info.run_id
