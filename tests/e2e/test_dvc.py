"""DVC itself on a fresh clone: interrupted, queued, killed and queued again; results as if nothing had happened.

The sample data set at its smallest. GAPWISE_DVC=full: also a queued sweep of six, the sample as it is shipped, and OCR.
"""

from __future__ import annotations

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from equality import MEASURED
from waiting import wait_for

from gapwise.storage.files import read_json
from gapwise.storage.results import read_path

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
FULL = os.environ.get("GAPWISE_DVC") == "full"
SAMPLE = "+experiment=regpath_horseseg"  # as conf/for_dvc.yaml has it
SMALL = [
    *("tracking=none", "checkpoint.every_seconds=0", "solver.rebase_steps=100", "path.lambda_min=1e-3"),
    *("dataset.n_train=8", "dataset.n_test=3", "dataset.superpixels=40", "dataset.colour_words=16"),
    *("dataset.sift_words=16", "dataset.colour_samples=50", "dataset.sift_samples=50"),
]


@dataclass
class Clone:
    """A clone of the project, and the commands of a user in it."""

    path: Path
    home: Path

    @property
    def environment(self) -> dict[str, str]:
        own = ("PYTHONPATH", "GAPWISE_RUNS", "DVC_ROOT", "DVC_STAGE")
        env = {name: value for name, value in os.environ.items() if name not in own}
        folders = dict.fromkeys(
            ("DVC_GLOBAL_CONFIG_DIR", "DVC_SYSTEM_CONFIG_DIR", "DVC_SITE_CACHE_DIR"), str(self.home)
        )
        return env | folders | {
            "HOME": str(self.home),
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "DVC_NO_ANALYTICS": "1",
            "MLFLOW_DISABLE_TELEMETRY": "true",
        }  # fmt: skip

    def start(self, *command: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            command, cwd=self.path, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            start_new_session=True,
        )  # fmt: skip

    def do(self, *command: str, code: int = 0) -> str:
        """Run `command` to its end; what it printed."""
        process = self.start(*command)
        out, _ = process.communicate(timeout=1200)
        assert process.returncode == code, out
        return out

    def run_of(self, seed: int) -> Path | None:
        """The directory of the small run with this seed."""
        for manifest in self.path.glob("runs/horses_sample-*/manifest.json"):
            science = read_json(manifest)["science"]
            if science["seed"] == seed and science["dataset"]["n_train"] == 8:
                return manifest.parent
        return None

    def generation(self, seed: int) -> int:
        """Of the committed state; 0 before there is one."""
        run = self.run_of(seed)
        head = run / "state" / "HEAD.json" if run else None
        return int(read_json(head)["generation"]) if head and head.is_file() else 0

    def worker(self, seed: int) -> int:
        """Pid of the process that works on a run: its lock names it."""
        run = self.run_of(seed)
        assert run is not None
        return int((run / "lock").read_text().split()[1])


@pytest.fixture(scope="module")
def clone() -> Iterator[Clone]:
    """A fresh clone of the files as they are, in memory where there is a place, with small parameters committed."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as name:
        origin, home = Path(name) / "origin", Path(name) / "home"
        home.mkdir()
        (home / ".gitconfig").write_text("[user]\n name = Somebody\n email = somebody@example.org\n")
        listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        for file in subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0"):
            if file and (ROOT / file).is_file():
                (origin / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / file, origin / file)
        made = Clone(origin, home)
        made.do("git", "init", "-q")
        made.do("git", "add", "-A")
        made.do("git", "commit", "-qm", "The project")
        fresh = Clone(Path(name) / "clone", home)
        made.do("git", "clone", "-q", str(origin), str(fresh.path))
        yield fresh
        fresh.do("dvc", "queue", "stop", "--kill")


def overrides(*words: str) -> list[str]:
    return [part for word in (*SMALL, *words) for part in ("-S", word)]


def arrays(path: Path) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in read_path(path)[0].items() if name not in MEASURED}


def same(mine: Path, path: Path) -> bool:
    """Whether `found` is the solution of `path`, to the bit; evaluate may have added its losses to either."""
    a, b = arrays(mine), arrays(path)
    return "weights" in a and all(a[name] == b[name] for name in a.keys() & b.keys())


def interrupt(clone: Clone, how: Callable[[subprocess.Popen[str]], None]) -> tuple[int, str]:
    """`dvc repro`, brought to its end by `how` while it solves; its exit code and what was printed."""
    before = clone.generation(0)
    process = clone.start("dvc", "repro")
    wait_for(lambda: process.poll() is not None or clone.generation(0) > before)
    assert process.poll() is None, process.communicate()[0]
    how(process)
    out, _ = process.communicate(timeout=120)
    run = clone.run_of(0)
    assert run is not None
    assert not (run / "path.zarr").exists(), "it was done before it could be stopped"
    return process.returncode, out


@pytest.fixture(scope="module")
def repro(clone: Clone) -> list[tuple[int, str]]:
    """`dvc repro` of small parameters, stopped in the middle of solve some times and then not: how each ended."""
    small = clone.do("python", "-m", "pipeline", "--cfg", "job", "--resolve", SAMPLE, *SMALL)
    (clone.path / "params.yaml").write_text(small)
    ends = [
        interrupt(clone, lambda process: os.killpg(process.pid, signal.SIGINT)),  # as Ctrl-C does
        *([interrupt(clone, lambda process: os.kill(clone.worker(0), signal.SIGKILL))] if FULL else []),
        *([interrupt(clone, subprocess.Popen.terminate)] if FULL else []),  # DVC alone: nobody tells the stage
        (0, clone.do("dvc", "repro")),
    ]
    clone.do("git", "add", "-A")
    clone.do("git", "commit", "-qm", "Small")
    return ends


def direct(root: Path, home: Path, seed: int, *words: str) -> Path:
    """The directory of the same run below `root`, made without DVC and without a pause."""
    before = set(root.glob("horses_sample-*"))
    Clone(ROOT, home).do("python", "-m", "pipeline", SAMPLE, *SMALL, *words, f"seed={seed}", f"run.root={root}")
    (run,) = set(root.glob("horses_sample-*")) - before
    return run


@pytest.mark.long
def test_repro__stopped_in_solve_goes_on_to_the_same_bits(clone: Clone, repro: list[tuple[int, str]]) -> None:
    interrupted, *more, whole = repro
    assert interrupted[0] == 255
    assert "Rerun the same command to resume" in interrupted[1]
    assert [code for code, _ in more] == [255, -signal.SIGTERM] * FULL
    assert all("failed to run: python -m pipeline" in out for _, out in more[:1])
    assert "Running stage 'evaluate'" in whole[1]
    assert all("Running stage 'init_path'" not in out for _, out in (*more, whole))
    assert same(clone.path / "results" / "path.zarr", direct(clone.home / "direct", clone.home, 0) / "path.zarr")
    again = clone.do("dvc", "repro")
    assert all(
        f"Stage '{name}' didn't change, skipping" in again for name in ("init_path", "solve", "verify", "evaluate")
    )
    assert clone.do("git", "status", "--porcelain") == ""


@pytest.mark.long
def test_exp_run__records_a_direct_run_without_running_it(clone: Clone, repro: list[tuple[int, str]]) -> None:
    run = direct(clone.path / "runs", clone.home, 5)
    before = {file: file.stat().st_mtime_ns for file in run.rglob("*")}
    clone.do("dvc", "exp", "run", "-n", "recorded", *overrides("seed=5"))
    assert {file: file.stat().st_mtime_ns for file in run.rglob("*")} == before
    assert same(clone.path / "results" / "path.zarr", run / "path.zarr")
    rows = list(csv.DictReader(clone.do("dvc", "exp", "show", "--csv", "--only-changed").splitlines()))
    (row,) = [row for row in rows if row["Experiment"] == "recorded"]
    metrics = read_json(run / "metrics.json")
    assert float(row["picked_on_validation.test_loss"]) == metrics["test_loss"]
    assert row["seed"] == "5"
    changes = json.loads(clone.do("dvc", "metrics", "diff", "HEAD", "--json"))
    assert changes["results/metrics.json"]["picked_on_validation.test_loss"]["new"] == metrics["test_loss"]
    for number, command in enumerate((["show"], ["diff", "HEAD", "recorded"])):
        folder = clone.home / f"plots-{number}"
        clone.do("dvc", "plots", *command, "-o", str(folder))
        page = (folder / "index.html").read_text()
        assert all(name in page for name in ("certified gap", "work", "losses", "segmentations.png"))
    clone.do("git", "checkout", "-q", ".")
    clone.do("dvc", "checkout")


@pytest.mark.skipif(not FULL, reason="GAPWISE_DVC=full: DVC's queue takes a minute and a half of both cores")
def test_queue__with_a_killed_job_queued_again(clone: Clone, repro: list[tuple[int, str]]) -> None:
    seeds = range(1, 7)
    finer = "path.eps=0.05"
    clone.do("dvc", "exp", "run", "--queue", "-n", "sweep", *overrides(finer, f"seed={','.join(map(str, seeds))}"))
    starts = clone.start("dvc", "queue", "start", "-j", "2")
    wait_for(lambda: clone.generation(1) > 0)
    stage = psutil.Process(clone.worker(1))
    stage.parent().kill()  # the worker's own process of this job
    stage.wait(120)  # it sees that, and stops
    assert "Started '2'" in starts.communicate(timeout=600)[0]  # it may end long after it said so
    reached = clone.generation(1)
    run = clone.run_of(1)
    assert reached > 0
    assert run is not None
    assert not (run / "path.zarr").exists(), "it was done before it could be stopped"
    wait_for(lambda: set(status(clone).values()) == {"Failed", "Success"}, every=4.0)  # asking costs seconds of a core
    assert status(clone) == {f"sweep-{seed}": "Failed" if seed == 1 else "Success" for seed in seeds}
    clone.do("dvc", "exp", "run", "--queue", "-n", "again", *overrides(finer, "seed=1"))
    clone.do("dvc", "queue", "start")
    wait_for(lambda: status(clone)["again"] in ("Failed", "Success"), every=4.0)
    assert status(clone)["again"] == "Success", clone.do("dvc", "queue", "logs", "again")
    assert clone.generation(1) > reached
    assert len(list(clone.path.glob("runs/features/*/meta.json"))) == 1  # shared by all
    assert same(run / "path.zarr", direct(clone.home / "direct", clone.home, 1, finer) / "path.zarr")
    results = [arrays(path / "path.zarr") for seed in seeds if (path := clone.run_of(seed))]
    assert len(results) == len(seeds)
    assert all(a != b for k, a in enumerate(results) for b in results[:k])


def status(clone: Clone) -> dict[str, str]:
    """Of every job of the queue."""
    rows = [line.split() for line in clone.do("dvc", "queue", "status").splitlines()]
    return {row[1]: row[-1] for row in rows if len(row) > 3 and row[0] != "Task" and row[0] != "Worker"}


@pytest.mark.skipif(not FULL, reason="GAPWISE_DVC=full: the sample as shipped, some minutes")
def test_repro__of_the_sample_as_it_is_shipped(clone: Clone) -> None:
    clone.do("git", "stash", "--include-untracked")
    clone.do("git", "checkout", "-q", "origin/HEAD")
    assert "every certificate holds" in clone.do("dvc", "repro")
    picked = read_json(clone.path / "results" / "metrics.json")["picked_on_validation"]
    assert float(picked["test_loss"]) == pytest.approx(0.112, abs=5e-4)


@pytest.mark.skipif(not FULL, reason="GAPWISE_DVC=full: OCR, some minutes")
def test_exp_run__of_ocr(clone: Clone, shared_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GAPWISE_DATA", str(shared_data))
    out = clone.do("dvc", "exp", "run", "-S", "experiment=regpath_ocr", "-S", "seed=2")
    assert "every certificate holds" in out
    assert read_json(clone.path / "results" / "features.json")["d"] == 4082
    assert str(shared_data) not in (clone.path / "params.yaml").read_text()
