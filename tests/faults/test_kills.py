"""The whole command, killed in every part of it and started again; and the signals that ask it to stop."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from in_process import Here, here
from real_runs import SABOTAGE, Sandbox, assert_same_path, assert_same_results, ended, kill
from waiting import wait_for


def sabotaged(sandbox: Sandbox, how: str) -> Sandbox:
    return Sandbox(sandbox.root, sandbox.command, {"SABOTAGE": how, "PYTHONPATH": str(SABOTAGE)})


def test_kill__of_a_whole_run_changes_no_bit(fresh: Callable[[Path], Here], calm: Here, tmp_path: Path) -> None:
    """Before the first commit, half-way, and with a solved path."""
    sandbox, reached = fresh(tmp_path / "runs"), 0
    for come in (
        lambda: any(sandbox.root.glob("*/manifest.json")),
        lambda: sandbox.generation >= calm.generation // 2,
        lambda: any(sandbox.root.glob("*/path.zarr")),
    ):
        process = sandbox.start()
        wait_for(come, process)
        assert kill(process), "it was done before it could be killed"
        assert sandbox.generation >= reached
        reached = sandbox.generation
    sandbox.finish()
    assert_same_results(sandbox, calm)


@pytest.mark.slow
def test_kill__at_a_file_operation_of_a_commit_changes_no_bit(
    halfway: Here, calm: Here, copy: Callable[[Here], Here]
) -> None:
    """Also in the thread that writes while the solve has gone on. tests/storage tries every operation, without a process."""
    sandbox = copy(halfway)
    for how in ("kill fsync 40", "kill replace 2", "thread 0.02 kill fsync 3"):
        before = sandbox.generation
        done = sabotaged(sandbox, how).issue("run.until=solve")
        assert done.code == -signal.SIGKILL, done.err
        assert sandbox.generation >= before
    sandbox.finish("run.until=verify")
    assert_same_path(sandbox, calm)


@pytest.mark.parametrize(
    ("number", "code", "how"),
    [(signal.SIGTERM, 143, ""), pytest.param(signal.SIGINT, 130, "thread 0.2", marks=pytest.mark.slow)],
    ids=["SIGTERM", "SIGINT with a commit in flight"],
)
def test_signal__commits_tells_and_goes_on_to_the_same_bits(
    fresh: Callable[[Path], Here], calm: Here, tmp_path: Path, number: signal.Signals, code: int, how: str
) -> None:
    sandbox = sabotaged(fresh(tmp_path / "runs"), how) if how else fresh(tmp_path / "runs")
    process = sandbox.start()
    wait_for(lambda: any(sandbox.root.glob("*/state/*g000001.zarr")), process)
    before = sandbox.generation
    process.send_signal(number)
    done = ended(process)
    assert done.code == code
    assert "Rerun the same command to resume" in done.err
    assert sandbox.generation > before
    assert not [*sandbox.run.glob("state/.tmp-*"), *sandbox.run.glob("path.zarr")]
    here(sandbox).finish()
    assert_same_results(sandbox, calm)


@pytest.mark.slow
def test_two_runs__make_their_features_once(fresh: Callable[[Path], Here], calm: Here, tmp_path: Path) -> None:
    sandbox = fresh(tmp_path / "runs")
    other = sandbox.start("run.until=featurize", "path.kappa=0.8")
    wait_for(lambda: any(sandbox.root.glob("features/*.lock")), other)
    sandbox.finish("run.until=featurize")
    assert ended(other).code == 0
    (made,) = sandbox.root.glob("features/*/meta.json")
    assert made.read_bytes() == next(calm.root.glob("features/*/meta.json")).read_bytes()
