"""The worker processes of a sweep: they are pinned, stop and end with it, and a death affects one run (fake stages)."""

from __future__ import annotations

import contextlib
import csv
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest

from gapwise.pipeline.compute.local import THREADS
from gapwise.pipeline.interrupt import Stop
from gapwise.pipeline.sweep import workers
from gapwise.pipeline.sweep.workers import Task, last_error, local_cluster, one_run, run_tasks, stop_runs

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]


@contextlib.contextmanager
def sweep(folder: Path, *words: str, fake: str = "") -> Iterator[subprocess.Popen[str]]:
    """A multirun in a process group of its own, as a terminal makes one."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), "FAKE_STAGE": fake, "GAPWISE_RUNS": str(folder / "runs")}
    script = [
        sys.executable,
        str(ROOT / "tests" / "support" / "fake_stages.py"),
        "-m",
        "tracking=none",
        "sweep.workers=2",
        *words,
    ]
    process = subprocess.Popen(
        script, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def rows(folder: Path) -> dict[str, dict[str, str]]:
    """runs.csv by the name of the run."""
    (table,) = folder.glob("runs/sweeps/*/runs.csv")
    with table.open() as file:
        return {row["name"]: row for row in csv.DictReader(file)}


def solving(folder: Path, count: int) -> Callable[[], bool]:
    calls = folder / "runs" / "calls.txt"
    return lambda: calls.exists() and calls.read_text().split().count("solve") >= count


def wait(reached: Callable[[], bool], seconds: float = 90.0) -> None:
    end = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < end, "not reached in time"
        time.sleep(0.05)


def threads_of_worker() -> dict[str, Any]:
    import numba
    from threadpoolctl import threadpool_info

    return {
        "environment": {name: os.environ.get(name) for name in THREADS},
        "numba": numba.config.NUMBA_NUM_THREADS,
        "pools": {pool["filepath"]: pool["num_threads"] for pool in threadpool_info()},
    }


def test_workers__have_one_thread_of_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in THREADS:
        monkeypatch.setenv(name, "2")
    with local_cluster(2, tmp_path) as (cluster, client):
        threads = client.run(threads_of_worker)
        assert len(cluster.workers) == 2
    assert len(threads) == 2
    for said in threads.values():
        assert said["environment"] == dict.fromkeys(THREADS, "1")
        assert said["numba"] == 1
        assert set(said["pools"].values()) == {1}  # BLAS and OpenMP of numpy, scipy, scikit-learn
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), pytest.param(signal.SIGINT, 130, marks=pytest.mark.long)]
)
def test_stop__reaches_the_runs_and_leaves_no_process(tmp_path: Path, number: signal.Signals, code: int) -> None:
    with sweep(tmp_path, "seed=1,2,3", fake="solve:wait") as process:
        wait(solving(tmp_path, 2))
        children = psutil.Process(process.pid).children(recursive=True)
        # a terminal's Ctrl-C is for the whole group; a batch system's SIGTERM is for the one it knows
        (os.killpg if number == signal.SIGINT else os.kill)(process.pid, number)
        exit_code, out, err = ended(process)
    assert exit_code == code, err
    assert "Rerun the same command to resume" in err
    assert "Traceback" not in err
    assert not psutil.wait_procs(children, timeout=20)[1]
    assert [row["status"] for row in rows(tmp_path).values()] == ["interrupted", "interrupted", "waiting"]
    calls = (tmp_path / "runs" / "calls.txt").read_text().split()
    assert (calls.count("solve"), calls.count("told")) == (2, 2)
    assert "0 of 3 runs there, 2 interrupted, 1 waiting" in out
    assert "seed=3" not in out
    with sweep(tmp_path, "seed=1,2,3") as process:
        exit_code, out, err = ended(process)
    assert exit_code == 0, err
    assert "3 of 3 runs there" in out


def test_second_interrupt__waits_for_nobody(tmp_path: Path) -> None:
    with sweep(tmp_path, "seed=1,2", fake="solve:deaf") as process:
        wait(solving(tmp_path, 2))
        children = psutil.Process(process.pid).children(recursive=True)
        assert process.stderr is not None
        os.killpg(process.pid, signal.SIGINT)
        while "Ctrl-C again" not in process.stderr.readline():
            pass
        time.sleep(0.6)  # signals within half a second are one
        os.killpg(process.pid, signal.SIGINT)
        code = process.wait(timeout=30)
        assert code == 130
        assert not psutil.wait_procs(children, timeout=20)[1]


def test_main_process__that_is_killed_takes_its_workers_along(tmp_path: Path) -> None:
    with sweep(tmp_path, "seed=1,2", fake="solve:wait") as process:
        wait(solving(tmp_path, 2))
        children = psutil.Process(process.pid).children(recursive=True)
        assert len(children) >= 2
        process.kill()
        assert not psutil.wait_procs(children, timeout=20)[1]


@pytest.mark.parametrize("fake", ["solve:die once", pytest.param("solve:die", marks=pytest.mark.long)])
def test_worker__that_dies_costs_one_run_one_try(tmp_path: Path, fake: str) -> None:
    with sweep(tmp_path, "seed=1,2,3,4", fake=fake) as process:
        code, out, err = ended(process)
    table = rows(tmp_path)
    rest = {name: row["status"] for name, row in table.items() if name != "seed=1"}
    assert rest == {"seed=2": "done", "seed=3": "done", "seed=4": "done"}
    calls = (tmp_path / "runs" / "calls.txt").read_text().split()
    assert calls.count("solve") == 5
    if fake == "solve:die once":
        assert (code, table["seed=1"]["status"]) == (0, "done"), err
    else:
        assert (code, table["seed=1"]["status"]) == (1, "failed"), err
        assert "FAILED seed=1: its worker process died, 2 times" in out


def test_multirun__names_runs_by_what_tells_them_apart_and_does_none_twice(tmp_path: Path) -> None:
    with sweep(tmp_path, "seed=1", "path.eps=0.1,-1", "compute=serial,threads") as process:
        code, _, err = ended(process)
    assert code == 2, err
    assert "error: path.eps=-1 compute=serial: path.eps: expected a number > 0" in err
    assert {name: row["status"] for name, row in rows(tmp_path).items()} == {
        "path.eps=0.1 compute=serial": "done", "path.eps=0.1 compute=threads": "done",
        "path.eps=-1 compute=serial": "refused", "path.eps=-1 compute=threads": "refused",
    }  # fmt: skip
    row = rows(tmp_path)["path.eps=0.1 compute=serial"]
    assert (row["breakpoints"], row["passes"], row["best_lambda"], row["test_loss"]) == ("3", "9.0", "0.25", "0.2")
    assert (tmp_path / "runs" / "calls.txt").read_text().split().count("solve") == 1
    (invocation,) = (Path(row["run"]) / "invocations").iterdir()
    assert "- seed=1" in (invocation / ".hydra" / "overrides.yaml").read_text()


def test_multirun__with_nothing_that_can_run_leaves_nothing(tmp_path: Path) -> None:
    for words in (("path.eps=-1,-2",), ("sweep.workers=0", "seed=1,2")):
        with sweep(tmp_path, *words) as process:
            code, out, err = ended(process)
        assert code == 2, err
        assert "expected" in err
        assert out == ""
        assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["multirun.yaml"]


def test_run_tasks__begins_nothing_after_a_stop(tmp_path: Path) -> None:
    stop, told = Stop(), []
    stop.request()
    run_tasks([Task(0, {}, None)], 1, tmp_path, stop, lambda number, outcome: told.append(number))
    assert told == []


def test_runs__of_two_threads_of_a_worker_keep_their_errors_and_stops_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    beside = [0]

    def run(config: object, experiment: str, *_: object) -> int:
        beside.append(beside[-1] + 1)
        print(f"error: {experiment}", file=sys.stderr)
        time.sleep(0.1)
        beside.append(beside[-1] - 1)
        return 1 if not Stop()() else 128 + Stop.asked[threading.get_ident()]

    monkeypatch.setattr(workers, "run", run)
    with ThreadPoolExecutor(2) as pool:
        failed, stopped = (pool.submit(one_run, Task(k, {}, name), name) for k, name in enumerate(("a", "b")))
        time.sleep(0.03)
        stop_runs(signal.SIGTERM, "b")
        outcomes = failed.result(), stopped.result()
    assert [outcome["error"] for outcome in outcomes] == ["a", "stopped by SIGTERM"]
    assert max(beside) == 1
    assert not Stop.asked
    stop_runs(signal.SIGTERM, "b")  # nothing of it is left
    assert one_run(Task(2, {}, "c"), "b")["error"] == "c"


def test_last_error__is_the_one_that_counts() -> None:
    assert last_error("λ 1\nerror: a\nerror: b\nlog: x\n") == "b"
    assert last_error("Traceback\nKeyError: 'x'\nlog: x\n") == "KeyError: 'x'"
    assert last_error("") == ""
