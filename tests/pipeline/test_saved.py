"""What an interrupted command says is saved is what lies on the disk."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from fake_runs import fake_run

from gapwise.pipeline.interrupt import Stop
from gapwise.pipeline.saved import interruption, saved_of_run
from gapwise.pipeline.stage_graph import flow
from gapwise.pipeline.sweep.run import interrupted, saved_of

BEFORE = ("featurize", "init_path")


def test_saved_of_run__names_the_stages_that_are_done_and_the_last_commit(tmp_path: Path) -> None:
    assert saved_of_run(tmp_path / "gone") == ""
    assert saved_of_run(fake_run(tmp_path, "toy-0", done=BEFORE, generations=())) == "featurize, init_path"
    solving = fake_run(tmp_path, "toy-1", done=BEFORE, generations=(4, 5))
    assert saved_of_run(solving) == "featurize, init_path, solve up to λ #6"
    (solving / "state" / "HEAD.json").write_text("{")
    assert saved_of_run(solving) == "featurize, init_path", "nobody can say what a damaged commit holds"
    whole = fake_run(tmp_path, "toy-2", generations=(4,))
    assert saved_of_run(whole) == ", ".join(flow())
    (whole / "refit").mkdir()
    shutil.copytree(whole / "state", whole / "refit" / "state")
    assert saved_of_run(whole) == ", ".join([*flow(), "a part of refit"])


def test_saved_of__a_sweep_counts_complete_and_begun_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        {"run": str(fake_run(tmp_path, "toy-0")), "status": "complete"},
        {"run": str(fake_run(tmp_path, "toy-1")), "status": "done"},
        {"run": str(fake_run(tmp_path, "toy-2", done=BEFORE, generations=())), "status": "interrupted"},
        {"run": str(tmp_path / "toy-3"), "status": "waiting"},
        {"run": "", "status": "refused"},
    ]
    assert saved_of(rows) == "2 complete and 1 begun of 4 runs"
    assert saved_of(rows[2:]) == "1 begun of 2 runs"
    assert saved_of(rows[3:]) == ""
    stop = Stop()
    assert [interrupted(stop, saved_of(part)) for part in (rows, rows[3:])] == [130, 130]
    said = capsys.readouterr().err.splitlines()
    assert said == [
        "Interrupted; progress saved: 2 complete and 1 begun of 4 runs. Rerun the same command to resume.",
        "Interrupted; no run had saved anything yet. Rerun the same command to begin again.",
    ]
    assert interruption("") == "Interrupted; nothing was saved yet. Rerun the same command to begin again."
