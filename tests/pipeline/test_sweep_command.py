"""A run of a stopped sweep names the sweep's own command as the one that goes on with it (fake stages)."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from waiting import wait_for

from gapwise.pipeline.cli import carry_out
from gapwise.pipeline.rundir import read_json

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]


def test_show__of_a_run_of_a_stopped_sweep_has_the_command_of_the_sweep(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT), "FAKE_STAGE": "solve:wait", "GAPWISE_RUNS": str(tmp_path / "runs")}
    asked = [sys.executable, str(ROOT / "tests" / "support" / "fake_stages.py"), "-m", "tracking=none"]
    asked += ["sweep.workers=2", "seed=1,2", "figures.formats=[png, pdf]"]  # the last needs quotes in a shell
    process = subprocess.Popen(
        asked,
        cwd=tmp_path,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    calls = tmp_path / "runs" / "calls.txt"
    try:
        wait_for(lambda: process.poll() is not None or (calls.is_file() and calls.read_text().count("solve") == 2))
        os.killpg(process.pid, signal.SIGINT)  # as a terminal's Ctrl-C
        out, _ = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 130, out
    assert out.endswith("progress saved: 2 begun of 2 runs. Rerun the same command to resume.\n"), out
    runs = [manifest.parent for manifest in tmp_path.glob("runs/*/manifest.json")]
    assert len(runs) == 2
    for run in runs:
        assert shlex.split(read_json(run / "manifest.json")["command"]) == asked
        assert carry_out(["show", str(run)]) == 0
        said = capsys.readouterr().out
        assert f"the command that began it: {shlex.join(asked)}" in said
        assert "spawn_main" not in said
    (summary,) = tmp_path.glob("runs/sweeps/*/summary.json")
    assert shlex.split(read_json(summary)["command"]) == asked
