"""The report as a part of runs: made in every run, made again if it is gone, never in a run's way; and `gapwise report`."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

import gapwise.pipeline.cli.report as command
from gapwise.pipeline.cli import carry_out
from gapwise.pipeline.rundir import RunDir, read_json, write_json


@pytest.fixture
def run_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run as its manifest tells of it, and a report that takes no time."""
    from gapwise.stages import report

    def write(run: Path, features: object, target: Path | None = None) -> Path:
        target = target or run / "report.html"
        target.write_text("page")
        return target

    monkeypatch.setattr(report, "write_report", write)
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
    facts, run = {"path": "/gone/features/some-1", "key": "k"}, RunDir(tmp_path / "run", "k")
    for changed, expected in (({}, True), ({"path": "/gone/features/other"}, False), ({"key": "another"}, False)):
        run.manifest = {"stages": {"featurize": {**facts, **changed}}}
        store = command.features(run)
        assert (store is not None and store.path == tmp_path / "features" / "some-1") is expected, changed
    run.manifest = {"stages": {}}
    assert command.features(run) is None
