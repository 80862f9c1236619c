"""Disks that are full or may not be written to."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from in_process import here
from real_runs import Bench, Calm, Sandbox, assert_same_path, assert_same_results, long

pytestmark = pytest.mark.slow

SMALL = 3000
"""Bytes to which a file may grow under the quota: less than a feature array, more than a line of the log."""


# -- no room ----------------------------------------------------------------------------------------------------------
@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of a few MB."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small file system needs root")
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(tmp_path)], capture_output=True, text=True
    )
    if made.returncode != 0:
        pytest.skip(f"no small file system can be mounted: {made.stderr.strip()}")
    yield tmp_path
    subprocess.run(["umount", "-l", str(tmp_path)], check=True)


def fill(disk: Path, left: int) -> Path:
    """A file that leaves so many bytes of a file system."""
    ballast = disk / "ballast"
    room = shutil.disk_usage(disk).free - left
    with ballast.open("wb") as file:
        file.write(b"\0" * room)
    return ballast


@pytest.mark.fault("full disk")
def test_full_disk__in_a_commit_loses_nothing_committed(
    bench: Bench, halfway: Sandbox, calm: Calm, small_disk: Path
) -> None:
    sandbox = Sandbox(small_disk / "runs", bench.command)
    shutil.copytree(halfway.root, sandbox.root)
    before = sandbox.generation
    ballast = fill(small_disk, 300_000)
    done = sandbox.issue()
    assert done.code == 1, done.err
    assert "No space left on device" in done.err
    assert "Traceback" not in done.err
    assert "Logging error" not in done.err
    assert sandbox.generation >= before
    ballast.unlink()
    here(sandbox).finish()
    assert_same_results(sandbox, calm)


@pytest.mark.fault("full disk")
def test_full_disk__while_features_are_made_leaves_none(bench: Bench, calm: Calm, small_disk: Path) -> None:
    sandbox = Sandbox(small_disk / "runs", bench.command)
    ballast = fill(small_disk, 40_000)
    done = sandbox.issue()
    assert done.code == 1, done.err
    assert "No space left on device" in done.err
    assert "Traceback" not in done.err
    assert not list(sandbox.root.glob("features/*/meta.json"))
    ballast.unlink()
    here(sandbox).finish("run.until=verify")
    assert_same_path(sandbox, calm)


@pytest.mark.fault("quota")
@pytest.mark.parametrize("began", [True, long(False)], ids=["halfway", "nothing"])
def test_quota__is_an_error_and_loses_nothing_committed(
    bench: Bench, halfway: Sandbox, calm: Calm, copy: Callable[[Sandbox], Sandbox], began: bool
) -> None:
    sandbox = copy(halfway) if began else bench.sandbox("quota")
    before = sandbox.generation
    done = sandbox.issue(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (SMALL, resource.RLIM_INFINITY)))
    assert done.code == 1, done.err
    assert "File too large" in done.err
    assert "Traceback" not in done.err
    assert sandbox.generation >= before
    sandbox.finish("run.until=verify")
    assert_same_path(sandbox, calm)


# -- read-only --------------------------------------------------------------------------------------------------------
def read_only(sandbox: Sandbox, *more: str) -> tuple[int, str, str]:
    """Issue the command where its runs cannot be written to. (Permissions do not bind root, a mount does.)"""
    if os.geteuid() == 0:
        script = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"'
        if subprocess.run(["unshare", "-m", "sh", "-c", script, str(sandbox.root), "true"], check=False).returncode:
            pytest.skip("no file system can be mounted read-only here")
        done = sandbox.issue(*more, wrap=("unshare", "-m", "sh", "-c", script, str(sandbox.root)))
    else:
        modes = {path: path.stat().st_mode for path in [sandbox.root, *sandbox.root.rglob("*")]}
        for path, mode in modes.items():
            path.chmod(mode & ~0o222)
        done = sandbox.issue(*more)
        for path, mode in modes.items():
            path.chmod(mode)
    return done.code, done.out, done.err


@pytest.mark.fault("read-only")
def test_read_only__is_an_error_and_a_complete_run_still_answers(
    bench: Bench, halfway: Sandbox, calm: Calm, copy: Callable[[Sandbox], Sandbox]
) -> None:
    sandbox = copy(halfway)
    code, _, err = read_only(sandbox)
    assert code == 1, err
    assert (
        f"run.root: {sandbox.root} cannot hold runs: it is mounted read-only, or you may not write to it. Give " in err
    )
    assert "Traceback" not in err
    sandbox.finish("run.until=verify")
    assert_same_path(sandbox, calm)
    complete = bench.sandbox("read-only", calm)
    code, out, err = read_only(complete)
    assert code == 0, err
    assert out.splitlines()[-1] == f"run: {complete.run}"
