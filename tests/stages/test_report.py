"""The report of a run: what it says, that nothing in it can run or load anything, and how it looks in a browser."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import chromium, console_errors
from PIL import Image
from reported import EVIL, Finished, finished
from waiting import wait_for

from gapwise.stages.problems import capabilities, structures
from gapwise.stages.problems.capabilities import Capabilities
from gapwise.stages.report import write_report
from gapwise.stages.reports.page.sweep import write_sweep_report
from gapwise.storage.features import open_features
from gapwise.storage.results import read_path

STRUCTURES = ("segmentation", "chain", "multiclass")


class Page(HTMLParser):
    """What is in a page, as a browser would see it."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.data: dict[str, Any] = {}
        self.scripts: list[str] = []
        self.text = ""
        self._inside: dict[str, str | None] | None = None
        self._name = ""
        self.source = file.read_text(encoding="utf-8")
        self.feed(self.source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._name, self._inside = tag, dict(attrs)

    def handle_endtag(self, tag: str) -> None:
        self._inside = None

    def handle_data(self, data: str) -> None:
        if self._inside is None or self._name not in ("script", "style"):
            self.text += data
        elif self._name == "script" and "data-for" in self._inside:
            self.data[str(self._inside["data-for"])] = json.loads(data)
        elif self._name == "script":
            self.scripts.append(data)

    def all(self, tag: str, **attributes: str) -> list[dict[str, str | None]]:
        wanted = {name.replace("_", "-"): value for name, value in attributes.items()}
        return [element for name, element in self.elements if name == tag and wanted.items() <= element.items()]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Finished]:
    folder = tmp_path_factory.mktemp("reported")
    return finished(folder)


@pytest.fixture(scope="module")
def reports(runs: dict[str, Finished]) -> dict[str, Path]:
    return {name: write_report(run.run_dir, open_features(run.features)) for name, run in runs.items()}


@pytest.mark.parametrize("name", STRUCTURES)
def test_report__is_one_file_that_loads_and_runs_nothing_else(reports: dict[str, Path], name: str) -> None:
    page = Page(reports[name])
    assert "could not be made" not in page.text
    assert reports[name].stat().st_size < 5e6
    for _, attributes in page.elements:
        assert not [attribute for attribute in attributes if attribute.startswith("on")]
        for source in ("src", "href"):
            assert (attributes.get(source) or "#").startswith(("data:image/", "#"))
    (policy,) = (meta["content"] for meta in page.all("meta", http_equiv="Content-Security-Policy"))
    digests = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in page.scripts]
    assert len(digests) == 1
    assert policy is not None
    assert policy.startswith("default-src 'none'; img-src data:; ")
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    assert f"script-src {allowed};" in policy
    used = {
        attributes_of["aria-describedby"] for attributes_of in page.all("span") if "aria-describedby" in attributes_of
    }
    assert used == {attributes_of["id"] for attributes_of in page.all("dd", **{}) if "id" in attributes_of}
    assert {"term-block", "term-max-oracle", "term-ε", "term-effective-pass", "term-certificate"} <= used


def test_report__shows_text_of_users_as_text(reports: dict[str, Path]) -> None:
    page = Page(reports["chain"])
    assert EVIL not in page.source
    assert page.text.count(EVIL) > 5  # the data set, labels, words
    assert f"x{EVIL}" in page.text
    assert len(page.scripts) == 1


def test_report__says_what_was_trained_and_proven(runs: dict[str, Finished], reports: dict[str, Path]) -> None:
    page, (arrays, _) = Page(reports["segmentation"]), read_path(runs["segmentation"].run_dir / "path.zarr")
    assert "from the 6 training examples" in page.text
    assert "Separate code rebuilt every solution" in page.text
    assert f"{int(arrays['oracle_calls'].sum()):,} calls" in page.text
    count = arrays["lambda"].size
    rows = page.source.split("<caption>Every λ that was solved</caption>")[1].split("</table>")[0]
    measured = json.loads((runs["segmentation"].run_dir / "metrics.json").read_text())
    best = measured["best_lambda"]
    assert rows.count("<tr") == 1 + count + (best not in arrays["lambda"])
    (marked,) = re.findall(r'<tr class="marked">(.*?)</tr>', rows)
    assert f"<td>{best:.4g}</td>" in marked.replace("−", "-")
    assert marked.endswith(f"<td>{measured['test_loss']:.4f}</td>")
    assert page.source.count("<svg") == 6


@pytest.mark.parametrize(
    ("name", "loss", "answer"),
    [
        ("segmentation", "the share of each class's pixels in the picture", "baseline (all background)"),
        ("chain", "the number of wrong labels in the sequence, divided by", "baseline ({commonest_label} everywhere)"),
        ("multiclass", "1 for a wrong class, 0 for the right one", "baseline ({commonest_label} everywhere)"),
    ],
)
def test_report__defines_the_loss_and_shows_what_nothing_learnt_loses(
    runs: dict[str, Finished], reports: dict[str, Path], name: str, loss: str, answer: str
) -> None:
    page, metrics = Page(reports[name]), json.loads((runs[name].run_dir / "metrics.json").read_text())
    assert "of an example is " + loss in " ".join(page.text.split())
    answer, value = (
        answer.format(**metrics),
        metrics["all_zero_test_loss" if name == "segmentation" else "commonest_test_loss"],
    )
    assert f"The {answer}, which has learnt nothing, has test loss {value:.3g}" in page.text
    assert f"test loss, {answer}" in page.text
    if name != "multiclass":  # its path has a single λ, and no chart of losses
        assert f">{answer}</text>" in page.source


def test_pictures__are_the_labels_that_the_run_predicts(runs: dict[str, Finished], reports: dict[str, Path]) -> None:
    run, facts = runs["segmentation"], Page(reports["segmentation"]).data["pictures"]
    best = f"λ = {json.loads((run.run_dir / 'metrics.json').read_text())['best_lambda']:.4g}"
    row = facts["lambdas"].index(best)
    with np.load(run.run_dir / "predictions.npz") as stored:
        labels = stored["labels"].reshape(3, 4)
    for picture, expected in zip(facts["pictures"], labels, strict=True):
        uri = picture["maps"][picture["which"][row]]
        with Image.open(io.BytesIO(base64.b64decode(uri.split(",")[1]))) as shown:
            assert shown.mode == "P"
            assert np.array_equal(np.asarray(shown), np.kron(expected.reshape(2, 2), np.ones((20, 30), np.uint8)))
    assert any(len(picture["maps"]) > 1 for picture in facts["pictures"])  # the slider has something to change


def test_classes__count_what_was_taken_for_what(runs: dict[str, Finished], reports: dict[str, Path]) -> None:
    run, page = runs["multiclass"], Page(reports["multiclass"])
    truth = open_features(run.features).arrays("test")["labels"]
    with np.load(run.run_dir / "predictions.npz") as stored:
        right = int(np.sum(stored["labels"] == truth))
    assert f"Of 30 test labels, {right} are right" in page.text
    assert len(page.all("img", **{"class": "ink"})) == min(30 - right, 40) > 0


def test_report__can_do_without_features_but_not_without_a_path(runs: dict[str, Finished], tmp_path: Path) -> None:
    page = Page(write_report(runs["chain"].run_dir, None, tmp_path / "report.html"))
    assert "could not be made" not in page.text
    assert "The worst test sequences" not in page.text
    with pytest.raises(FileNotFoundError, match="no solved path here"):
        write_report(tmp_path / "none", None)
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("name", structures())
def test_structures__say_what_they_learn_and_what_their_loss_is(name: str) -> None:
    known, default = capabilities(name), Capabilities()
    assert known.learns != default.learns
    assert known.losses or name.startswith("python_"), "only the user's own code knows its loss"
    assert "structured objects" not in known.learns


@pytest.fixture(scope="module")
def sweep_report(reports: dict[str, Path], runs: dict[str, Finished]) -> Path:
    jobs = [
        {"name": f"{name} {EVIL}", "status": "done", "run": str(runs[name].run_dir), "lambda": "", "test_loss": loss}
        for name, loss in (("chain", 0.2), ("multiclass", 0.1))
    ] + [{"name": "lost", "status": "failed", "error": "<i>why</i>", "run": ""}]
    folder = reports["chain"].parents[1] / "sweep"
    (folder / "figures").mkdir(parents=True)
    Image.new("RGB", (3, 3)).save(folder / "figures" / "work.png")
    summary = {"jobs": jobs, "statuses": {"done": 2, "failed": 1}, "figures": ["work.png"], "text": ["a < b"]}
    (folder / "summary.json").write_text(json.dumps(summary))
    return write_sweep_report(folder)


def test_sweep__compares_its_runs_and_leads_to_their_reports(sweep_report: Path) -> None:
    page = Page(sweep_report)
    links = [str(link["href"]) for link in page.all("a") if not str(link["href"]).startswith("#")]
    assert [(sweep_report.parent / link).resolve().is_file() for link in links] == [True, True]
    assert "failed: <i>why</i>" in page.text
    assert EVIL not in page.source
    assert all(
        page.text.count(f"{name} {EVIL}") >= 3 for name in ("chain", "multiclass")
    )  # in the table and two legends
    assert len(page.all("img", **{"class": "figure"})) == 1
    assert "a < b" in page.text


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with chromium(tmp_path_factory.mktemp("browser") / "profile") as opened:
        yield opened


def show(browser: Any, file: Path) -> None:
    browser.get(file.resolve().as_uri())
    wait_for(lambda: browser.execute_script("return document.documentElement.dataset.ready === 'yes'"), seconds=60.0)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["chain", "sweep"])
def test_browser__draws_every_chart_and_asks_the_network_for_nothing(
    browser: Any, reports: dict[str, Path], sweep_report: Path, name: str
) -> None:
    show(browser, sweep_report if name == "sweep" else reports[name])
    script = "return [...document.querySelectorAll('.plot')].map(plot => plot.querySelectorAll('svg path').length)"
    drawn = browser.execute_script(script)
    assert len(drawn) >= 2
    assert min(drawn) > 10
    assert console_errors(browser) == []
    assert browser.execute_script("return performance.getEntriesByType('resource').map(entry => entry.name)") == []
    assert browser.execute_script("return document.querySelectorAll('.missing').length") == 0
