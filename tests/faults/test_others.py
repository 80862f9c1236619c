"""Other processes, workers that die, a tracking store that cannot be reached, clocks, and too little time."""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from in_process import here
from real_runs import Bench, Calm, Sandbox, assert_same_path, assert_same_results, ended, long
from waiting import wait_for

pytestmark = pytest.mark.slow

PICTURES = [
    *("dataset=horses_sample", "dataset.n_train=6", "dataset.n_test=2", "dataset.superpixels=30"),
    *("dataset.colour_words=8", "dataset.sift_words=8", "dataset.colour_samples=30", "dataset.sift_samples=30"),
    *("tracking=none", "run.stage=featurize", "compute=processes", "compute.workers=2"),
]
"""Features that are made by worker processes."""
ORACLES = [
    *("dataset=python_oracle", "dataset.oracle=python_task:Pairs", "+dataset.arguments.n=60"),
    *(
        "+dataset.arguments.delay=0.002",
        "path=single",
        "path.lambda=0.02",
        "path.tolerance=0.002",
        "path.relative=false",
    ),
    *("solver=bcpfw_gap", "solver.rebase_steps=60", "checkpoint.every_seconds=0", "run.until=verify"),
    *("tracking=none", "compute=processes", "compute.workers=2"),
]
"""Gap passes by worker processes: those of an oracle in Python."""


# -- processes --------------------------------------------------------------------------------------------------------
@pytest.mark.fault("two processes")
def test_second_process__is_refused_and_the_first_goes_on(bench: Bench, calm: Calm) -> None:
    sandbox = bench.sandbox("two processes")
    first = sandbox.start("run.until=verify")
    wait_for(lambda: sandbox.generation > 1, first)
    os.kill(first.pid, signal.SIGSTOP)
    try:
        second = here(sandbox).issue("run.until=verify")
    finally:
        os.kill(first.pid, signal.SIGCONT)
    assert second.code == 1
    assert f"is in use by process {first.pid} on host" in second.err
    done = ended(first)
    assert done.code == 0, done.err
    assert_same_path(sandbox, calm)


@pytest.mark.fault("features of two")
def test_two_runs__make_their_features_once(bench: Bench, calm: Calm) -> None:
    sandbox = bench.sandbox("two")
    first, second = (sandbox.start("run.stage=featurize", f"path.kappa={kappa}") for kappa in (0.9, 0.8))
    for process in (first, second):
        done = ended(process)
        assert done.code == 0, done.err
    made = list(sandbox.root.glob("features/*/meta.json"))
    assert len(made) == 1
    assert made[0].read_bytes() == next(calm.root.glob("features/*/meta.json")).read_bytes()


def workers_of(pid: int) -> list[int]:
    """Worker processes of a pool that `pid` has started."""
    workers = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            if parent == pid and b"spawn_main" in (entry / "cmdline").read_bytes():
                workers.append(int(entry.name))
        except (OSError, ValueError):
            continue
    return workers


def kill_workers(process: subprocess.Popen[str], most: int) -> int:
    """Kill the command's workers as they appear, at most so many; how many were killed."""
    killed: set[int] = set()
    while process.poll() is None and len(killed) < most:
        for pid in set(workers_of(process.pid)) - killed:
            if len(killed) < most:
                with contextlib.suppress(ProcessLookupError):  # the command has ended it in the meantime
                    os.kill(pid, signal.SIGKILL)
                    killed.add(pid)
        time.sleep(0.02)
    return len(killed)


@dataclass
class Work:
    """What worker processes do: the command, and when the killing begins."""

    command: list[str]
    begins: Callable[[Sandbox], bool]


WORKS = {
    "gap pass": Work(ORACLES, lambda sandbox: sandbox.generation > 0),
    "features": Work(PICTURES, lambda sandbox: True),
}


@pytest.fixture(scope="session", params=["gap pass", long("features")])
def work(request: pytest.FixtureRequest, folder: Path) -> tuple[str, Work, Sandbox]:
    """One kind of work, and a sandbox where it was done undisturbed, by workers."""
    chosen = WORKS[request.param]
    sandbox = Sandbox(folder / f"calm {request.param}", chosen.command)
    here(sandbox).finish("compute=serial")  # as many workers as you like give the same bits
    return request.param, chosen, sandbox


def assert_same_work(sandbox: Sandbox, expected: Sandbox) -> None:
    """The features, and the path if there is one."""
    files = {path.relative_to(expected.root) for path in expected.root.glob("features/*/**/*") if path.is_file()}
    assert files
    for file in files:
        assert (sandbox.root / file).read_bytes() == (expected.root / file).read_bytes(), file
    if (expected.run / "path.zarr").exists():
        assert_same_path(sandbox, expected)


@pytest.mark.long  # tests/pipeline/test_compute.py does it without the pipeline
@pytest.mark.fault("worker")
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="workers are found through /proc")
def test_worker__that_dies_is_replaced(folder: Path, work: tuple[str, Work, Sandbox]) -> None:
    name, what, undisturbed = work
    sandbox = Sandbox(folder / f"one worker, {name}", what.command)
    process = sandbox.start()
    wait_for(lambda: what.begins(sandbox), process)
    assert kill_workers(process, 1) == 1
    done = ended(process)
    assert done.code == 0, done.err
    assert_same_work(sandbox, undisturbed)


@pytest.mark.long
@pytest.mark.fault("all workers")
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="workers are found through /proc")
def test_workers__that_all_die_are_an_error(folder: Path, work: tuple[str, Work, Sandbox]) -> None:
    name, what, undisturbed = work
    sandbox = Sandbox(folder / f"all workers, {name}", what.command)
    process = sandbox.start()
    wait_for(lambda: what.begins(sandbox), process)
    before = sandbox.generation
    killed = kill_workers(process, 1000)
    done = ended(process)
    assert killed >= 2, done.err
    assert done.code == 1, done.err
    assert "compute: workers died" in done.err
    assert "Traceback" not in done.err
    assert sandbox.generation >= before
    here(sandbox).finish("compute=serial")
    assert_same_work(sandbox, undisturbed)


@pytest.mark.long  # test_tracking.py breaks databases without a run
# -- MLflow -----------------------------------------------------------------------------------------------------------
@pytest.mark.fault("MLflow")
def test_mlflow__away_corrupt_or_locked_costs_a_warning_and_sync_mends_it(bench: Bench, calm: Calm, form: str) -> None:
    sandbox = bench.sandbox("mlflow", calm)
    database = sandbox.root / "mlflow.db"
    uri = f"tracking.uri=sqlite:///{database}"

    def warned(tracking: str, says: str) -> None:
        (sandbox.run / "result.json").unlink(missing_ok=True)
        done = sandbox.finish("tracking=mlflow", tracking)
        assert "The run goes on; the same command, or run.stage=sync, shows it later" in done.err
        assert says in done.err
        assert not (sandbox.run / "tracking.json").exists()
        assert_same_results(sandbox, calm)

    warned("tracking.uri=http://127.0.0.1:9", "127.0.0.1")
    database.write_bytes(b"this is no database" * 1000)
    warned(uri, "not a database")
    if form == "full":
        synced = sandbox.issue("tracking=mlflow", uri, "run.stage=sync")
        assert synced.code == 1
        assert "not a database" in synced.err

    database.unlink()
    done = sandbox.finish("tracking=mlflow", uri, "run.stage=sync")
    assert done.out.splitlines()[-1] == f"run: {sandbox.run}"
    shown = metrics(database)
    assert len(shown) > 50

    with sqlite3.connect(database) as holder:
        holder.execute("begin exclusive")
        (sandbox.run / "tracking.json").unlink()
        warned(uri, "locked")
    holder.close()
    if form == "full":
        sandbox.finish("tracking=mlflow", uri, "run.stage=sync")
    assert metrics(database) == shown
    assert_same_results(sandbox, calm)


def metrics(database: Path) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(database)
    try:
        return sorted(connection.execute("select run_uuid, key, step, timestamp, value from metrics"))
    finally:
        connection.close()


# -- time -------------------------------------------------------------------------------------------------------------
@pytest.mark.fault("clock")
def test_clock__that_jumps_changes_no_bit(bench: Bench, calm: Calm) -> None:
    sandbox = bench.sandbox("clock", SABOTAGE="clock 3")
    sandbox.finish("checkpoint.every_seconds=30", "run.until=verify")
    assert_same_path(sandbox, calm)
    assert sandbox.generation > 1, "nothing was committed while the clock stood or went back"


@pytest.mark.fault("time")
def test_time__over_before_anything_is_solved_is_an_error(bench: Bench, calm: Calm) -> None:
    sandbox = here(bench.sandbox("time"))
    done = sandbox.issue("solver.max_seconds=1e-9")
    assert done.code == 1
    assert "was over before the first lambda was solved" in done.err
    assert sandbox.generation == 1
    sandbox.finish("run.until=verify")
    assert_same_path(sandbox, calm)
