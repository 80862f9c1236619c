"""What a person sees in MLflow: its own page, in a real browser, of two runs and a sweep of two, from one server."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from browser import chromium, console_errors
from servers import mlflow_server
from shown import finished_run, summary_of, trace

from gapwise.pipeline.config.run_options import TrackingOptions
from gapwise.pipeline.rundir import write_json
from gapwise.pipeline.tracking.mlflow import SweepTracker, Tracker

OWN = ("users/current", "favicon.ico", "ResizeObserver loop")
"""What MLflow's pages complain of themselves, whatever they show."""
RUNS = (("bcfw", 0), ("bcfw_gap", 0), ("bcpfw_gap_cache", 1), ("bcpfw_gap_cache", 2))


@pytest.mark.slow
def test_table__has_one_row_a_run_and_the_headline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with chromium(tmp_path / "profile", 1700, 1100) as browser:
        monkeypatch.setattr("gapwise.pipeline.tracking.mlflow._stored_trace", lambda run: trace(5))
        uri = f"sqlite:///{tmp_path / 'mlflow.db'}"
        runs = [finished_run(tmp_path, solver=solver, seed=seed) for solver, seed in RUNS]
        for run in runs[:2]:
            Tracker(TrackingOptions(uri=uri), run).ensure_shown()
        swept = summary_of({run.path.name: run for run in runs[2:]})
        write_json(tmp_path / "summary.json", swept)
        tracker = SweepTracker(TrackingOptions("mlflow", uri), tmp_path)
        tracker.begin(swept, [run.path for run in runs[2:]])
        tracker.finish(swept, "FINISHED")

        from mlflow import MlflowClient

        experiment = MlflowClient(tracking_uri=uri).get_experiment_by_name("horses_sample-path").experiment_id

        def texts(selector: str) -> list[str]:
            script = "return [...document.querySelectorAll(arguments[0])].map(e => e.innerText.trim())"
            return list(browser.execute_script(script, selector))

        def wait(condition: Callable[[], bool]) -> None:
            end = time.monotonic() + 60.0
            while not condition():
                assert time.monotonic() < end, browser.find_element("tag name", "body").text[:2000]
                time.sleep(0.2)

        with mlflow_server(tmp_path) as server:
            browser.get(f"{server.address}/#/experiments/{experiment}/runs?workflowType=machine_learning")
            names = "[col-id='attributes.`Run Name`'][role=gridcell]"
            wait(lambda: len(texts(names)) == len(RUNS))
            assert sorted(text.splitlines()[-1] for text in texts(names)) == [
                f"seed {seed} · {solver} · paper" for solver, seed in RUNS
            ]
            assert [line for line in console_errors(browser) if not any(own in line for own in OWN)] == []
