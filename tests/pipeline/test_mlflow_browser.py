"""What a person sees in MLflow: its own pages, in a real browser, of three runs and a sweep of two, from one server."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
from browser import chromium, console_errors
from mlflow_server import MlflowServer
from shown import finished_run, summary_of, trace

from gapwise.pipeline.config.run_options import TrackingOptions
from gapwise.pipeline.rundir import write_json
from gapwise.pipeline.tracking.mlflow import MlflowTracker, SweepTracker
from gapwise.pipeline.tracking.saved_view import COLUMNS

pytestmark = pytest.mark.slow

OWN = ("users/current", "favicon.ico", "ResizeObserver loop")
"""What MLflow's pages complain of themselves, whatever they show."""
RUNS = (("bcfw", 0), ("bcfw_gap", 0), ("bcpfw_gap_cache", 0), ("bcpfw_gap_cache", 1), ("bcpfw_gap_cache", 2))
NAMES = sorted(f"{solver} · one_sided · seed {seed}" for solver, seed in RUNS)
PLOTS = """return [...document.querySelectorAll('.js-plotly-plot')].map(plot => ({
    title: plot.closest('[data-testid=experiment-view-compare-runs-card]').innerText.split('\\n')[0],
    lines: (plot.data || []).map(line => ({name: line.name, x: [...(line.x || [])]}))}))"""


class Page(NamedTuple):
    """MLflow's pages of the experiment in `browser`."""

    browser: Any
    base: str
    experiment: str
    runs: dict[str, str]
    """MLflow's run ids by name."""

    def open(self, address: str) -> None:
        self.browser.get(f"{self.base}/#/{address}")

    def wait(self, condition: Callable[[], Any], seconds: float = 30.0) -> Any:
        """The first true value of `what`."""
        end = time.monotonic() + seconds
        while not (value := condition()):
            assert time.monotonic() < end, self.browser.find_element("tag name", "body").text[:2000]
            time.sleep(0.2)
        return value

    def texts(self, selector: str) -> list[str]:
        script = "return [...document.querySelectorAll(arguments[0])].map(e => e.innerText.trim())"
        return list(self.browser.execute_script(script, selector))


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    root = tmp_path_factory.mktemp("browser")
    with chromium(root / "profile", 1700, 1100) as browser, pytest.MonkeyPatch.context() as patch:
        patch.setattr("gapwise.pipeline.tracking.mlflow._stored_trace", lambda run: trace(5))
        uri = f"sqlite:///{root / 'mlflow.db'}"
        runs = [finished_run(root, solver=solver, seed=seed) for solver, seed in RUNS]
        for run in runs[:3]:
            MlflowTracker(uri, run).ensure_shown()
        swept = summary_of({run.path.name: run for run in runs[3:]})
        write_json(root / "summary.json", swept)
        tracker = SweepTracker(TrackingOptions("mlflow", uri), root)
        tracker.begin(swept, [run.path for run in runs[3:]])
        tracker.finish(swept, "FINISHED")

        from mlflow import MlflowClient

        client = MlflowClient(tracking_uri=uri)
        experiment = client.get_experiment_by_name("horses_sample-path").experiment_id
        ids = {run.info.run_name: run.info.run_id for run in client.search_runs([experiment])}
        with MlflowServer(root) as server:
            base = server.address
            browser.get(f"{base}/version")
            browser.execute_script("localStorage.setItem('mlflow.assistant.fab.autoOpenedOnFirstLoad_v1', 'true')")
            browser.execute_script("localStorage.setItem('mlflow.assistant.panelOpen_v1', 'false')")
            yield Page(browser, base, experiment, ids)


def test_table__has_one_row_a_run_and_the_headline(page: Page) -> None:
    page.open(f"experiments/{page.experiment}/runs?workflowType=machine_learning&viewStateShareKey=gapwise")
    names = "[col-id='attributes.`Run Name`'][role=gridcell]"
    page.wait(lambda: len(page.texts(names)) == len(RUNS))
    assert sorted(text.splitlines()[-1] for text in page.texts(names)) == NAMES
    for column in COLUMNS[:6]:
        assert all(text not in ("", "-") for text in page.texts(f"[col-id='{column}'][role=gridcell]")), column
    assert "5 matching runs" in page.browser.find_element("tag name", "body").text


def test_charts__of_all_runs_share_the_axis(page: Page) -> None:
    address = f"experiments/{page.experiment}/runs?workflowType=machine_learning&compareRunsMode=CHART"
    page.open(f"{address}&viewStateShareKey=gapwise")

    def drawn() -> list[dict[str, Any]]:
        plots = {plot["title"]: plot["lines"] for plot in page.browser.execute_script(PLOTS)}
        lines = plots.get("test_loss", [])
        return lines if {line["name"] for line in lines if line["x"]} == set(NAMES) else []

    lines = page.wait(drawn)
    axes = [{round(x, 6) for x in line["x"]} for line in lines]
    assert set.intersection(*axes) >= {round(0.1 * tenth, 6) for tenth in range(-7, 11)}  # log10 lambda
    headers = page.texts("[data-testid=experiment-view-compare-runs-section-header]")
    assert [text.splitlines()[0] for text in headers[:3]] == [
        "Over log10 λ",
        "Over effective passes",
        "One number a run",
    ]


def test_compare__shows_the_parameters_that_differ(page: Page) -> None:
    chosen = [page.runs["bcfw · one_sided · seed 0"], page.runs["bcfw_gap · one_sided · seed 0"]]
    page.open(f"compare-runs?runs={json.dumps(chosen)}&experiments={json.dumps([page.experiment])}")
    page.wait(lambda: any("path.eps" in text for text in page.texts("table")))
    page.browser.execute_script("[...document.querySelectorAll('button[role=switch]')].forEach(each => each.click())")
    page.wait(lambda: not any("path.eps" in text for text in page.texts("table")))
    rows = [text.split()[0] for table in page.texts("table") for text in table.splitlines() if text.strip()]
    assert [row for row in rows if row.startswith(("solver", "path.", "dataset", "seed"))] == ["solver"]


def test_artifacts__are_previewed(page: Page) -> None:
    first, other = page.runs["bcfw · one_sided · seed 0"], page.runs["bcfw_gap · one_sided · seed 0"]
    page.open(f"experiments/{page.experiment}/runs/{first}/artifacts/figures/path.png")
    script = "return [...document.images].filter(i => i.src.startsWith('blob:') && i.naturalWidth > 0).length"
    page.wait(lambda: page.browser.execute_script(script))
    page.open(f"experiments/{page.experiment}/runs/{other}/artifacts/model/README.md")
    page.wait(lambda: "The model that the test loss" in page.browser.find_element("tag name", "body").text)


def test_run__begins_with_the_headline(page: Page) -> None:
    page.open(f"experiments/{page.experiment}/runs/{page.runs['bcfw · one_sided · seed 0']}")
    page.wait(lambda: "Metrics (" in page.browser.find_element("tag name", "body").text)
    text = page.wait(lambda: next((t for t in page.texts("[role=table]") if "best_test_loss" in t), None))
    shown = [line for line in text.splitlines() if line and not line[0].isdigit()]
    wanted = ["best_test_loss", "best_lambda", "certified_gap", "passes", "oracle_calls", "seconds"]
    assert shown[shown.index("best_test_loss") :][:6] == wanted
    assert "every certificate holds" in page.browser.find_element("tag name", "body").text


def test_console__has_no_errors(page: Page) -> None:
    said = [line for line in console_errors(page.browser) if not any(own in line for own in OWN)]
    assert said == []
