"""The worker processes of a sweep: they stop and end with it, and a death costs one run one try."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest
import python_task
from real_runs import ended
from waiting import wait_for

from gapwise.pipeline.cli import carry_out
from gapwise.pipeline.interrupt import Stop
from gapwise.pipeline.sweep import workers
from gapwise.pipeline.sweep.workers import Task, last_error, one_run, run_tasks, stop_runs


@pytest.fixture
def begun(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A sweep of two runs whose oracle takes its time, both of which have committed something."""
    words = ["-m", "tracking=none", "sweep.workers=2", "seed=1,2", "figures.formats=[png, pdf]"]  # quotes in a shell
    words += ["dataset=python_oracle", "dataset.oracle=python_task:Pairs", "+dataset.arguments.n=40"]
    words += ["+dataset.arguments.delay=0.02", "path=single", "path.lambda=0.02", "path.tolerance=0.02"]
    words += ["solver=bcpfw_gap", "solver.rebase_steps=10", "checkpoint.every_seconds=0", "run.until=solve"]
    path = os.pathsep.join([str(Path(python_task.__file__).parent), os.environ.get("PYTHONPATH", "")])
    process = subprocess.Popen(
        [sys.executable, "-m", "gapwise", *words], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path, "GAPWISE_RUNS": str(tmp_path / "runs")}, text=True,
    )  # fmt: skip
    wait_for(lambda: len(list(tmp_path.glob("runs/*/state/HEAD.json"))) == 2, process)
    yield process
    process.kill()
    process.communicate()


def statuses(folder: Path) -> list[str]:
    (summary,) = folder.glob("runs/sweeps/*/summary.json")
    return [job["status"] for job in json.loads(summary.read_text())["jobs"]]


@pytest.mark.slow
def test_stop__reaches_the_runs_and_leaves_no_process(begun: subprocess.Popen[str], tmp_path: Path, capsys) -> None:
    children = psutil.Process(begun.pid).children(recursive=True)
    begun.terminate()
    done = ended(begun)
    assert done.code == 143, done.err
    assert done.err.endswith("progress saved: 2 begun of 2 runs. Rerun the same command to resume.\n"), done.err
    assert "Traceback" not in done.err
    assert not psutil.wait_procs(children, timeout=60)[1]
    assert statuses(tmp_path) == ["interrupted", "interrupted"]
    for run in (manifest.parent for manifest in tmp_path.glob("runs/*/manifest.json")):
        assert carry_out(["ls", str(run)]) == 0
        assert f"the command that began it: {shlex.join(begun.args)}" in capsys.readouterr().out


@pytest.mark.slow
def test_worker__that_dies_costs_one_run_one_try(begun: subprocess.Popen[str], tmp_path: Path) -> None:
    lock = next(tmp_path.glob("runs/*/manifest.json")).with_name("lock")
    os.kill(int(lock.read_text().split()[1]), signal.SIGKILL)
    done = ended(begun)
    assert done.code == 0, done.err
    assert statuses(tmp_path) == ["done", "done"]
    assert len(list((lock.parent / "invocations").iterdir())) == 2


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
