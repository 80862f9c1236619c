"""The whole command, killed at any moment and issued again: the same bits as if nothing had happened (DESIGN 3.2).

Three random kills of one run: while it makes features, solves, and thereafter. GAPWISE_KILLS=10 for more of them
in the solve.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from storage.files import read_json
from storage.results import read_path, read_trace

ROOT = Path(__file__).resolve().parents[2]
KILLS = max(3, int(os.environ.get("GAPWISE_KILLS", "3")))
MEASURED = {"seconds", "timestamp_ms"}
COMMAND = [
    *("+experiment=regpath_horseseg", "tracking=none", "compute.workers=2", "checkpoint.every_seconds=0"),
    *("dataset.n_train=8", "dataset.n_test=3", "dataset.superpixels=40", "dataset.colour_words=16"),
    *("dataset.sift_words=16", "dataset.colour_samples=50", "dataset.sift_samples=50"),
    *("solver.rebase_steps=40", "path.lambda_min=1e-3"),
]


@dataclass
class Place:
    """Where one sequence of commands keeps its runs."""

    root: Path

    def start(self) -> subprocess.Popen[str]:
        env = {**os.environ, "PYTHONPATH": str(ROOT), "GAPWISE_RUNS": str(self.root)}
        command = [sys.executable, "-m", "pipeline", *COMMAND]
        self.root.mkdir(exist_ok=True)
        return subprocess.Popen(
            command, cwd=self.root, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def finish(self) -> tuple[str, float]:
        """Issue the command and let it end; (stdout, seconds)."""
        began = time.monotonic()
        process = self.start()
        out, err = process.communicate(timeout=300)
        assert process.returncode == 0, err
        return out, time.monotonic() - began

    @property
    def run(self) -> Path:
        (found,) = self.root.glob("horses_sample-*")
        return found

    @property
    def generation(self) -> int:
        """Number of the committed generation; 0 before there is one."""
        heads = list(self.root.glob("horses_sample-*/state/HEAD.json"))
        return int(read_json(heads[0])["generation"]) if heads else 0


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """In memory, where there is a place: a commit at every rebase point is many files."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as name:
        yield Path(name)


@dataclass
class Whole(Place):
    """The uninterrupted run, with the seconds it takes once everything is compiled: to its first commit, to its end."""

    first: float = 0.0
    seconds: float = 0.0


@pytest.fixture(scope="module")
def whole(folder: Path) -> Whole:
    place = Whole(folder / "whole")
    place.finish()
    shutil.rmtree(place.root)
    began = time.monotonic()
    process = place.start()
    wait_for(process, lambda: place.generation > 0)
    place.first = time.monotonic() - began
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    place.seconds = time.monotonic() - began
    assert out.splitlines()[-1] == f"run: {place.run}"
    assert place.generation >= KILLS
    return place


def assert_same_results(place: Place, expected: Place) -> None:
    (a, a_attrs), (b, b_attrs) = (read_path(at.run / "path.zarr") for at in (place, expected))
    assert a_attrs == b_attrs
    assert a.keys() == b.keys()
    for name in a.keys() - MEASURED:
        assert a[name].dtype == b[name].dtype
        assert a[name].shape == b[name].shape, name
        assert a[name].tobytes() == b[name].tobytes(), name
    trace, other = read_trace(place.run), read_trace(expected.run)
    for name in trace.keys() - MEASURED:
        assert trace[name].tobytes() == other[name].tobytes(), name
    for name in ("metrics.json", "verify.json"):
        assert (place.run / name).read_bytes() == (expected.run / name).read_bytes(), name
    left = [path for path in place.root.rglob("*") if path.name.startswith((".tmp-", ".old-"))]
    assert left == []


def wait_for(process: subprocess.Popen[str], what: Callable[[], bool], seconds: float = 120.0) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert process.poll() is None, f"it ended too early: {process.communicate()[1]}"
        assert time.monotonic() < end, "it never came to that"
        time.sleep(0.01)


def test_kill__at_random_moments_changes_no_bit(folder: Path, whole: Whole) -> None:
    place = Place(folder / "killed")
    rng = np.random.default_rng(0)
    generations = np.sort(rng.choice(np.arange(1, whole.generation), KILLS - 2, replace=False))
    moments: list[tuple[Callable[[], bool], float]] = [
        (lambda: any(place.root.glob("features/.tmp-*")), 0.5 * whole.first),
        *((lambda at=at: place.generation >= at, 0.2) for at in generations.tolist()),
        (lambda: any(place.root.glob("horses_sample-*/path.zarr")), 1.0),
    ]
    reached = []
    for come, longest in moments:
        process = place.start()
        wait_for(process, come)
        time.sleep(longest * rng.random())
        assert process.poll() is None, "it was done before it could be killed"
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert process.returncode == -signal.SIGKILL
        reached.append(place.generation)
    assert reached == sorted(reached)
    place.finish()
    assert_same_results(place, whole)


def test_signals__commit_and_tell_then_go_on_to_the_same_bits(folder: Path, whole: Whole) -> None:
    place = Place(folder / "signals")
    place.root.mkdir()
    shutil.copytree(whole.root / "features", place.root / "features")
    for number, code in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
        process, before = place.start(), place.generation
        wait_for(process, lambda before=before: place.generation > before)
        process.send_signal(number)
        _, err = process.communicate(timeout=60)
        assert process.returncode == code
        assert "the same command goes on from there" in err
        assert place.generation > before
        assert not (place.run / "result.json").exists()
        assert not (place.run / "path.zarr").exists()
    place.finish()
    assert_same_results(place, whole)


def test_complete__is_said_at_once_and_touches_nothing(whole: Whole) -> None:
    before = {file: file.stat().st_mtime_ns for file in whole.root.rglob("*")}
    out, again = whole.finish()
    assert out.splitlines()[-1] == f"run: {whole.run}"
    assert "every certificate holds" in out
    assert {file: file.stat().st_mtime_ns for file in whole.root.rglob("*")} == before
    assert again < max(5.0, 0.5 * whole.seconds)  # no stage and no structure is loaded
