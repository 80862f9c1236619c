"""λ's of a path solved side by side in other processes: the bits of one process, whatever is killed or stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import psutil
import pytest
import zarr
from solved import Killed
from tiny import python_oracle
from waiting import wait_for
from workers import ROOT, site

from gapwise.pipeline.compute import remote

pytestmark = pytest.mark.slow

PATH = (
    "dataset=python_oracle", "dataset.oracle=python_task:Pairs", "+dataset.arguments.n=40", "+dataset.arguments.delay=0.004",
    "path.parallel=3", "path.eps=0.02", "path.lambda_min=0.05", "solver=bcpfw_gap", "tracking=none",
)  # fmt: skip


def begun(runs: Path, *words: str) -> subprocess.Popen[str]:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests" / "support")])}
    command = [sys.executable, "-m", "pipeline", *PATH, *words, f"run.root={runs}"]
    return subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ended(process: subprocess.Popen[str], code: int) -> str:
    _, said = process.communicate(timeout=600)
    assert process.returncode == code, said
    return said


def arrays_of(runs: Path) -> dict[str, bytes]:
    (path,) = runs.glob("*/path.zarr")
    group = zarr.open_group(path, mode="r")
    return {name: np.asarray(array).tobytes() for name, array in group.arrays() if name != "seconds"}


def lanes_at_work(runs: Path) -> bool:
    """Whether a round of several lanes is being solved."""
    return len([*runs.glob("*/.tmp-weights/w-*")]) >= 2


def worker_of(process: subprocess.Popen[str]) -> psutil.Process:
    """A process that it started for its lanes."""
    children = psutil.Process(process.pid).children(recursive=True)
    return next(child for child in children if any("spawn_main" in word for word in child.cmdline()))


def one_after_another(fn, items, places=None):
    return [fn(item) for item in items]


@pytest.fixture
def sender(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> remote.Sender:
    """Jobs for this process, whose problem is a small one."""
    monkeypatch.setattr(remote, "LOOK", 0.0)
    monkeypatch.setattr(remote, "_problem", lambda task, blocks: python_oracle())
    return remote.Sender(one_after_another, tmp_path / "features", tmp_path / "states")


def test_jobs__have_their_states_and_return_in_order(sender: remote.Sender) -> None:
    states = [np.arange(3.0), np.arange(3.0, 6.0)]
    jobs = [lambda problem, state, given_up, k=k: (k, state.tolist(), given_up()) for k in range(3)]
    answers = sender.jobs(zip(jobs, [states[0], states[1], states[0]], strict=True), "train", lambda: False)
    assert answers == [(0, [0.0, 1.0, 2.0], False), (1, [3.0, 4.0, 5.0], False), (2, [0.0, 1.0, 2.0], False)]
    assert not sender.folder.exists()


def test_jobs__that_are_given_up_notice_that_their_file_is_gone(sender: remote.Sender) -> None:
    begun, noticed = threading.Event(), threading.Event()

    def endless(problem, state, given_up):
        begun.set()
        while not given_up():
            time.sleep(0.001)
        noticed.set()

    assert sender.jobs([(endless, np.zeros(3))], "train", begun.is_set) is None
    assert noticed.is_set()
    assert not sender.folder.exists()


def test_jobs__go_on_where_the_storage_does_not_answer(sender: remote.Sender, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = 0

    def failing(path):
        nonlocal asked
        asked += 1
        raise OSError("stale file handle")

    def job(problem, state, given_up):
        monkeypatch.setattr(type(sender.folder), "exists", failing)
        answer = given_up()
        monkeypatch.undo()
        return answer

    monkeypatch.setattr(remote, "LOOK", 0.0)
    assert sender.jobs([(job, np.zeros(3))], "train", lambda: False) == [False]
    assert asked == 1


@pytest.mark.parametrize("error", [ValueError("no such label"), Killed()])
def test_jobs__that_fail_or_are_stopped_leave_no_file(sender: remote.Sender, error: BaseException) -> None:
    def failing(problem, state, given_up):
        raise error

    with pytest.raises(type(error)):
        sender.jobs([(failing, np.zeros(3))], "train", lambda: False)
    assert not sender.folder.exists()


def test_jobs__on_a_structure_for_one_thread_wait_for_each_other(sender: remote.Sender) -> None:
    inside, most = 0, 0

    def counting(problem, state, given_up):
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        time.sleep(0.02)
        inside -= 1

    with ThreadPoolExecutor(3) as pool:
        sender.map_tasks = lambda fn, items, places=None: [*pool.map(fn, items)]
        sender.jobs([(counting, np.zeros(3))] * 3, "train", lambda: False)
    assert most == 1


@pytest.fixture(scope="module")
def near(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    runs = tmp_path_factory.mktemp("near")
    ended(begun(runs, "compute=serial"), 0)
    return arrays_of(runs)


def test_processes__of_this_machine(tmp_path: Path, near: dict[str, bytes]) -> None:
    ways = ("compute=processes", "compute.workers=2")
    first = begun(tmp_path, *ways)
    wait_for(lambda: lanes_at_work(tmp_path), first)
    worker_of(first).kill()
    wait_for(lambda: lanes_at_work(tmp_path), first)
    first.send_signal(signal.SIGTERM)
    ended(first, 143)
    assert not any(tmp_path.glob("*/.tmp-weights"))
    ended(begun(tmp_path, *ways), 0)
    assert arrays_of(tmp_path) == near


@pytest.mark.long
def test_workers__of_a_cluster_of_which_one_is_killed(tmp_path: Path, near: dict[str, bytes]) -> None:
    with site(tmp_path / "site", 2) as hosts:
        run = begun(tmp_path, "compute=cluster", f"compute.address={hosts.address}")
        wait_for(lambda: lanes_at_work(tmp_path), run)
        hosts.kill(0)
        ended(run, 0)
    assert arrays_of(tmp_path) == near
