"""SIGTERM while passes over blocks take seconds: every stage ends soon, and goes on from there."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import psutil
import pytest
from real_runs import Place
from waiting import wait_for

LABELS, SEQUENCES = 250, 10_000
"""A pass visits 6 10⁸ local coordinates, 62,750 of each token."""

LIMIT = 0.6
"""Seconds of CPU after the signal, of all threads: what else the machine does is not counted. A pass takes one and more."""

PATH = ["path.eps=0.9", "solver.max_passes=2"], (("init_path", 0.3), ("solve", 3.0))
POINT = ["path=single", "path.lambda=1", "solver.max_passes=1"], (("verify", 0.3), ("verify", 1.5), ("evaluate", 0.3))
"""Overrides; stages, and seconds of CPU after their beginning, at which the signal is sent."""


def cpu_of(process: subprocess.Popen[str]) -> float:
    """Seconds of CPU so far."""
    times = psutil.Process(process.pid).cpu_times()
    return float(times.user + times.system)


def begun(place: Place, stage: str) -> bool:
    """Whether the newest invocation has begun a stage."""
    logs = sorted(place.root.glob("*/invocations/*/pipeline.log"))
    return bool(logs) and f"stage {stage}" in logs[-1].read_text()


@pytest.mark.slow
def test_sigterm__ends_every_stage_soon_and_the_command_goes_on(tmp_path: Path) -> None:
    data = tmp_path / "tokens.txt"
    data.write_text("\n".join(f"L{k % LABELS}\tx={k % 7}\n" for k in range(SEQUENCES)))
    files = [f"dataset.file={data}", f"dataset.test_file={data}", "tracking=none"]
    for name, (choices, moments) in (("path", PATH), ("point", POINT)):
        place = Place(tmp_path / name, ["dataset=sequences_csv", *files, *choices], {"GAPWISE_PRECOMPILE": "0"})
        for number, (stage, seconds) in enumerate(moments, start=1):
            process = place.start()
            wait_for(lambda at=place, count=number: len([*at.root.glob("*/invocations/*")]) == count, process)
            wait_for(lambda at=place, stage=stage: begun(at, stage), process)
            end = cpu_of(process) + seconds
            wait_for(lambda process=process, end=end: cpu_of(process) >= end, process)
            before = cpu_of(process)
            process.send_signal(signal.SIGTERM)
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            said = process.communicate()[1]
            assert process.returncode == 128 + signal.SIGTERM, said
            assert used.ru_utime + used.ru_stime - before <= LIMIT, f"{stage}: {said}"
    assert place.issue().code == 0
