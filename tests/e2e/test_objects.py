"""The whole command with its root on an object store: the same bits as a local run, whether killed in the middle or not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from configs import composed
from equality import assert_same_path
from locations import files_of
from waiting import wait_for

from gapwise.pipeline.config.settings import CONF
from gapwise.pipeline.run import run
from gapwise.storage.backend import Location, UrlPath, location
from gapwise.storage.files import read_json
from gapwise.storage.results import read_path

pytestmark = pytest.mark.slow

WORDS = [
    *("dataset=sequences_csv", "dataset.file=train.txt", "dataset.test_file=train.txt", "tracking=none"),
    *(
        "compute=serial",
        "path.eps=0.02",
        "path.lambda_min=0.02",
        "solver.rebase_steps=150",
        "checkpoint.every_seconds=0",
    ),
]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a data set of 12 short sequences."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    words = [
        "".join(f"{'PQR'[rng.integers(3)]}\tw={'abcde'[rng.integers(5)]}\n" for _ in range(rng.integers(2, 6)))
        for _ in range(12)
    ]
    (folder / "train.txt").write_text("\n".join(words))
    return folder


def here(data: Path, root: str, monkeypatch: pytest.MonkeyPatch) -> Location:
    """Run in this process; the run's location."""
    monkeypatch.chdir(data)
    assert run(composed(*WORDS, f"run.root={root}")) == 0
    return the_run(location(root))


def start(data: Path, root: str) -> subprocess.Popen[str]:
    env = {**os.environ, "PYTHONPATH": str(CONF.parent)}
    command = [sys.executable, "-m", "pipeline", *WORDS, f"run.root={root}"]
    return subprocess.Popen(command, cwd=data, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def the_run(root: Location) -> Location:
    (run,) = root.glob("sequences_csv-*")
    return run


def generation(root: UrlPath) -> int:
    runs = list(root.glob("sequences_csv-*"))
    head = runs[0] / "state" / "HEAD.json" if runs else None
    return int(read_json(head)["generation"]) if head is not None and head.is_file() else 0


@pytest.fixture(scope="module")
def local(data: Path) -> Location:
    """The undisturbed run on this machine's disk."""
    with pytest.MonkeyPatch.context() as patch:
        return here(data, str(data / "runs"), patch)


def assert_same_results(a: Location, b: Location) -> None:
    assert_same_path(a, b)
    assert read_path(a / "path.zarr")[0]["lambda"].size > 5
    for name in ("metrics.json", "verify.json"):
        assert (a / name).read_bytes() == (b / name).read_bytes(), name
    figures = [sorted(path.name for path in (run / "figures").iterdir()) for run in (a, b)]
    assert figures[0] == figures[1]


@pytest.mark.long
def test_memory__gives_the_bits_of_a_disk(local: Location, data: Path, cache: Path, capsys, monkeypatch) -> None:
    run_dir = here(data, "memory://e2e/runs", monkeypatch)
    assert capsys.readouterr().out.splitlines()[-1] == f"run: {run_dir}"
    assert_same_results(local, run_dir)
    (invocation,) = (run_dir / "invocations").iterdir()
    assert "stage solve" in (invocation / "pipeline.log").read_text()
    assert sorted(file.name for file in (invocation / ".hydra").iterdir()) == ["config.yaml"]
    before = files_of(run_dir.parent)
    assert here(data, "memory://e2e/runs", monkeypatch) == run_dir  # complete: at once, and nothing is touched
    assert files_of(run_dir.parent) == before
    assert not [path for path in data.iterdir() if path.name not in ("runs", "train.txt")]


@pytest.mark.long  # tests/storage kills at every request of a commit
def test_s3__killed_in_the_middle_gives_the_bits_of_a_disk(local: Location, data: Path, s3: str, cache: Path) -> None:
    root = UrlPath(f"{s3}/e2e/runs")
    process = start(data, str(root))
    wait_for(lambda: generation(root) >= 2, process)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    reached = generation(root)
    assert not (the_run(root) / "path.zarr").is_dir(), "it was done before it could be killed"
    process = start(data, str(root))
    out, err = process.communicate(timeout=200)
    assert process.returncode == 0, err
    assert "its lease behind; taken over" in err
    assert out.splitlines()[-1] == f"run: {the_run(root)}"
    assert generation(root) > reached
    assert_same_results(local, the_run(root))
    assert len(list((the_run(root) / "invocations").iterdir())) == 2
