"""Disks that are full or may not be written to, and clocks that jump."""

from __future__ import annotations

import os
import random
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from in_process import Here
from real_runs import assert_same_path, assert_same_results


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of a few MB."""
    mount = ["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(tmp_path)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small file system needs root, and a kernel that lets it")
    yield tmp_path
    subprocess.run(["umount", "-l", str(tmp_path)], check=True)


def assert_told(sandbox: Here, says: str) -> None:
    before = sandbox.generation
    done = sandbox.issue()
    assert done.code == 1, done.err
    assert says in done.err
    assert "Traceback" not in done.err
    assert "Logging error" not in done.err
    assert sandbox.generation >= before


@pytest.mark.parametrize("left", [300_000, 40_000], ids=["in a commit", "while features are made"])
def test_full_disk__loses_nothing_committed(halfway: Here, calm: Here, disk: Path, left: int) -> None:
    sandbox = Here(disk / "runs", halfway.command)
    if left > 100_000:
        shutil.copytree(halfway.root, sandbox.root)
    (disk / "ballast").write_bytes(bytes(shutil.disk_usage(disk).free - left))
    assert_told(sandbox, "No space left on device")
    (disk / "ballast").unlink()
    sandbox.finish()
    assert_same_results(sandbox, calm)


def test_quota__is_an_error_and_loses_nothing_committed(
    halfway: Here, calm: Here, copy: Callable[[Here], Here]
) -> None:
    sandbox, limits = copy(halfway), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (3000, limits[1]))  # less than the manifest of a complete run
    try:
        assert_told(sandbox, "File too large")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    sandbox.finish()
    assert_same_results(sandbox, calm)


def test_read_only__is_an_error_and_a_complete_run_still_answers(halfway: Here, calm: Here, disk: Path) -> None:
    begun, complete = (Here(disk / name, calm.command) for name in ("begun", "complete"))
    for sandbox, like in ((begun, halfway), (complete, calm)):
        shutil.copytree(like.root, sandbox.root)
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    assert_told(begun, f"run.root: {begun.root} cannot hold runs: it is mounted read-only, or you may not write to it.")
    assert complete.finish().out.splitlines()[-1] == f"run: {complete.run}"


def test_clock__that_jumps_changes_no_bit(
    fresh: Callable[[Path], Here], calm: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By hours, forwards and backwards, at most of the looks that our own modules take."""
    rng, offset = random.Random(3), [0.0]

    def jumping(real: Callable[[], float]) -> Callable[[], float]:
        def clock() -> float:
            ours = sys._getframe(1).f_globals.get("__name__", "").startswith("gapwise.")
            offset[0] += rng.uniform(-1e4, 1e4) if ours and rng.random() < 0.8 else 0.0
            return real() + ours * offset[0]

        return clock

    for name in ("time", "monotonic", "perf_counter"):
        monkeypatch.setattr(time, name, jumping(getattr(time, name)))
    sandbox = fresh(tmp_path / "runs")
    sandbox.finish("checkpoint.every_seconds=30", "run.until=verify")
    monkeypatch.undo()
    assert_same_path(sandbox, calm)
    assert sandbox.generation > 1, "nothing was committed while the clock stood or went back"
