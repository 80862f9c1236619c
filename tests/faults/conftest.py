"""Small real runs to disturb: one that ran to the end, one stopped half-way, one stopped before verify.

`@pytest.mark.fault(name)` says which row of `faults_table` a test covers; `--faults-table=FILE` writes those rows with
the session's results. All runs solve one small chain problem, on a file system in memory if there is one.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from faults_table import FAULTS
from in_process import Here, here
from real_runs import Bench, Calm, Sandbox, ended
from waiting import wait_for

_found: dict[str, list[str]] = {}
_drawn: Counter[tuple[str, str]] = Counter()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    report = yield
    marker = item.get_closest_marker("fault")
    if marker is not None and (report.when == "call" or report.outcome != "passed"):
        why = "".join(f" ({text})" for name, text in item.user_properties if name == "finding")
        why = f" ({report.longrepr[2].removeprefix('Skipped: ')})" if report.skipped else why
        _found.setdefault(marker.args[0], []).append(report.outcome + why)
    return report


def pytest_sessionfinish(session: pytest.Session) -> None:
    target = session.config.getoption("--faults-table")
    if target and _found:
        Path(target).write_text(findings_table(_found), encoding="utf-8")


def findings_table(findings: dict[str, list[str]]) -> str:
    """The rows of storage/README.md, with a column for what this session found: how many tests held."""
    lines = ["| what happens | outcome | found |", "|---|---|---|"]
    for name, (what, outcome) in FAULTS.items():
        results = findings.get(name, [])
        counts = [f"{results.count(result)} {result}" for result in dict.fromkeys(results)]
        lines.append(f"| {what} | {outcome} | {', '.join(counts) or 'not run'} |")
    return "\n".join(lines) + "\n" + drawn_table(_drawn)


def drawn_table(drawn: Counter[tuple[str, str]]) -> str:
    """The drawn faults by kind, and how often each outcome came; empty if none was drawn."""
    if not drawn:
        return ""
    ways = sorted({way for _, way in drawn})
    lines = [f"| fault | {' | '.join(ways)} |", "|---|" + "---|" * len(ways)]
    for kind in dict.fromkeys(kind for kind, _ in drawn):
        lines.append(f"| {kind} | {' | '.join(str(drawn[kind, way]) for way in ways)} |")
    lines.append(f"| all | {' | '.join(str(sum(drawn[kind, w] for kind, w in drawn if w == way)) for way in ways)} |")
    return "\n" + "\n".join(lines) + "\n"


@pytest.fixture(scope="session")
def form(request: pytest.FixtureRequest) -> str:
    """short or full"""
    return str(request.config.getoption("--faults"))


@pytest.fixture(scope="session")
def drawn() -> Counter[tuple[str, str]]:
    """How many of the drawn faults of each kind came out in which way."""
    return _drawn


@pytest.fixture(scope="session")
def folder() -> Iterator[Path]:
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as name:
        yield Path(name)


def write_sequences(file: Path, count: int, rng: np.random.Generator) -> None:
    """Attribute lines of `count` short sequences over three labels."""
    lines = []
    for _ in range(count):
        label = 0
        for _ in range(rng.integers(2, 7)):
            label = (label + int(rng.integers(2))) % 3
            word = int(rng.integers(8)) + (4 * label if rng.random() < 0.7 else 0)
            lines.append(f"{'ABC'[label]}\tw={word}\ts={rng.integers(3)}")
        lines.append("")
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of all workers of this session, for runs that are made once and then only copied."""
    base = tmp_path_factory.getbasetemp()
    faults = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "faults"
    faults.mkdir(exist_ok=True)
    return faults


@contextlib.contextmanager
def once(shared: Path, name: str) -> Iterator[bool]:
    """Whether `name` is still to be made, by this worker; the others wait until it is there.

    If that worker fails, the next one finds that it is still to be made, in a folder without what was left half-made.
    """
    done = shared / f"{name} is there"
    with (shared / f"{name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        if not done.exists():
            shutil.rmtree(shared / name, ignore_errors=True)
        yield not done.exists()
        done.touch()


@pytest.fixture(scope="session")
def bench(folder: Path, shared: Path) -> Bench:
    with once(shared, "data") as to_do:
        if to_do:
            (shared / "data").mkdir()
            rng = np.random.default_rng(0)
            write_sequences(shared / "data" / "train.txt", 40, rng)
            write_sequences(shared / "data" / "test.txt", 10, rng)
    data = shared / "data"
    command = [
        *("dataset=sequences_csv", f"dataset.file={data}/train.txt", f"dataset.test_file={data}/test.txt"),
        *("path.eps=0.1", "path.lambda_min=0.3", "solver.rebase_steps=150"),
        *("tracking=none", "compute=serial", "checkpoint.every_seconds=0"),
    ]
    return Bench(folder, command)


@pytest.fixture(scope="session")
def calm(bench: Bench, shared: Path) -> Calm:
    sandbox, clock = Calm(shared / "calm", bench.command), shared / "seconds"
    with once(shared, "calm") as to_do:
        if to_do:
            began = time.monotonic()
            sandbox.finish()
            clock.write_text(str(time.monotonic() - began))
    sandbox.seconds = float(clock.read_text())
    return sandbox


@pytest.fixture(scope="session")
def halfway(bench: Bench, calm: Calm, shared: Path) -> Sandbox:
    """Stopped by SIGTERM with some breakpoints done, two generations and several segments committed."""
    sandbox = Sandbox(shared / "halfway", bench.command)
    with once(shared, "halfway") as to_do:
        if to_do:
            process = sandbox.start()
            wait_for(lambda: sandbox.generation >= calm.generation // 2, process)
            process.send_signal(signal.SIGTERM)
            assert ended(process).code == 143
            assert sandbox.generation < calm.generation
    return sandbox


@pytest.fixture(scope="session")
def solved(bench: Bench, halfway: Sandbox, shared: Path) -> Sandbox:
    """Solved, not verified."""
    sandbox = here(Sandbox(shared / "solved", bench.command))
    with once(shared, "solved") as to_do:
        if to_do:
            shutil.copytree(halfway.root, sandbox.root)
            sandbox.finish("run.until=solve")
    return sandbox


@pytest.fixture
def copy(bench: Bench, request: pytest.FixtureRequest) -> Iterator[Callable[[Sandbox], Here]]:
    """copy(sandbox): its runs, copied to where the test may do as it likes, commands in this process; removed afterwards."""
    made: list[Path] = []

    def make(like: Sandbox) -> Here:
        sandbox = here(bench.sandbox(f"copy-{abs(hash(request.node.nodeid))}-{len(made)}", like))
        made.append(sandbox.root)
        return sandbox

    yield make
    for root in made:
        shutil.rmtree(root, ignore_errors=True)
