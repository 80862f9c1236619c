"""The report as a part of runs: made in every run, made again if it is gone, never in a run's way; and `gapwise report`."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import gapwise.pipeline.cli.report as command
from gapwise.pipeline.cli import carry_out
from gapwise.pipeline.rundir import read_json, write_json

ROOT = Path(__file__).resolve().parents[2]


def issue(folder: Path, *words: str, fake: str = "") -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(ROOT), "FAKE_STAGE": fake, "GAPWISE_RUNS": str(folder / "runs")}
    script = [sys.executable, str(ROOT / "tests" / "support" / "fake_stages.py"), "tracking=none", *words]
    return subprocess.run(script, cwd=folder, env=env, capture_output=True, text=True, timeout=120)


@pytest.mark.slow
def test_run__is_complete_without_its_report_and_makes_it_again_if_it_is_gone(tmp_path: Path) -> None:
    first = issue(tmp_path, fake="report:bug")
    assert first.returncode == 0, first.stderr
    assert "the report could not be made: 'a bug'; run.stage=report tries again" in first.stderr
    (run,) = (tmp_path / "runs").glob("horses_sample-*")
    assert json.loads((run / "result.json").read_text())["status"] == "CONVERGED"
    assert not (run / "report.html").exists()
    assert issue(tmp_path, "run.stage=report", fake="report:bug").returncode == 1
    before = (tmp_path / "runs" / "calls.txt").read_text()
    assert issue(tmp_path, "run.stage=report").returncode == 0
    (run / "report.html").write_text("damaged")
    assert issue(tmp_path).returncode == 0
    assert (run / "report.html").read_text() == "<title>report</title>"
    assert (run / "result.json").is_file()
    assert (tmp_path / "runs" / "calls.txt").read_text() == before  # nothing else ran again


@pytest.fixture
def run_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run as its manifest tells of it, and a report that takes no time."""
    import gapwise.stages.reports.page as page

    def write(run: Path, features: object, target: Path | None = None) -> Path:
        target = target or run / "report.html"
        target.write_text("page")
        return target

    monkeypatch.setattr(page, "write_report", write)
    run = tmp_path / "run"
    run.mkdir()
    write_json(run / "manifest.json", {"key": "k", "stages": {"evaluate": {}}}, seal=True)
    return run


def test_command__replaces_the_report_and_its_checksum(
    run_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (run_dir / "manifest.json").read_bytes()
    assert carry_out(["report", str(run_dir), "-o", str(tmp_path / "copy.html")]) == 0
    assert (run_dir / "manifest.json").read_bytes() == before
    assert not (run_dir / "report.html").exists()
    assert carry_out(["report", str(run_dir)]) == 0
    outputs = read_json(run_dir / "manifest.json", seal=True)["stages"]["report"]["outputs"]
    assert outputs == {"report.html": hashlib.sha256(b"page").hexdigest()}
    assert capsys.readouterr().out.splitlines()[-1] == f"report: {run_dir / 'report.html'}"


def test_command__refuses_what_is_no_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert carry_out(["report", str(tmp_path)]) == 1
    assert f"error: report: {tmp_path}: expected a run directory" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_features__are_found_beside_a_run_that_has_moved(tmp_path: Path) -> None:
    from gapwise.storage.features import FeatureWriter

    with FeatureWriter(tmp_path / "features" / "some-1") as writer:
        writer.meta = {"structure": "chain", "key": "k"}
    facts = {"path": "/gone/features/some-1", "key": "k"}
    for changed, expected in (({}, True), ({"path": "/gone/features/other"}, False), ({"key": "another"}, False)):
        store = command.features(tmp_path / "run", {"stages": {"featurize": {**facts, **changed}}})
        assert (store is not None and store.path == tmp_path / "features" / "some-1") is expected, changed
    assert command.features(tmp_path / "run", {"stages": {}}) is None
