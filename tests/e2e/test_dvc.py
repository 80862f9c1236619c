"""DVC itself on a fresh clone: interrupted and repeated as if nothing had happened; what an experiment records."""

from __future__ import annotations

import csv
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from equality import MEASURED
from in_process import Here
from waiting import wait_for

from gapwise.storage.files import read_json
from gapwise.storage.results import read_path

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = "+experiment=regpath_horseseg"  # as conf/for_dvc.yaml has it
SMALL = [
    *("tracking=none", "checkpoint.every_seconds=0", "solver.rebase_steps=100", "path.lambda_min=1e-3"),
    *("dataset.n_train=8", "dataset.n_test=3", "dataset.superpixels=40", "dataset.colour_words=16"),
    *("dataset.sift_words=16", "dataset.colour_samples=50", "dataset.sift_samples=50"),
]


class Clone:
    """A clone of the project's files as they are, and the commands of a user in it."""

    def __init__(self, folder: Path) -> None:
        self.home, self.path = folder / "home", folder / "clone"
        self.home.mkdir()
        (self.home / ".gitconfig").write_text("[user]\n name = Somebody\n email = somebody@example.org\n")
        listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        for file in subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0"):
            if file and (ROOT / file).exists():
                (self.path / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / file, self.path / file, follow_symlinks=False)
        self.do("git", "init", "-q")
        self.commit("The project")

    def start(self, *command: str) -> subprocess.Popen[str]:
        own = ("PYTHONPATH", "GAPWISE_RUNS", "DVC_ROOT", "DVC_STAGE")
        env = {name: value for name, value in os.environ.items() if name not in own}
        env |= dict.fromkeys(("DVC_GLOBAL_CONFIG_DIR", "DVC_SYSTEM_CONFIG_DIR", "DVC_SITE_CACHE_DIR"), str(self.home))
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        return subprocess.Popen(
            command, cwd=self.path, env=env | {"HOME": str(self.home), "PATH": path, "DVC_NO_ANALYTICS": "1"},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
        )  # fmt: skip

    def do(self, *command: str) -> str:
        """Run `command` to its end; what it printed."""
        process = self.start(*command)
        out, _ = process.communicate(timeout=500)
        assert process.returncode == 0, out
        return out

    def commit(self, message: str) -> None:
        self.do("git", "add", "-A")
        self.do("git", "commit", "-qm", message)


def same(mine: Path, path: Path) -> bool:
    """Whether `mine` is the solution of `path`, to the bit; evaluate may have added its losses to either."""
    a, b = ({k: v.tobytes() for k, v in read_path(some)[0].items() if k not in MEASURED} for some in (mine, path))
    return "weights" in a and all(a[name] == b[name] for name in a.keys() & b.keys())


@pytest.mark.slow
def test_dvc__goes_on_after_a_stop_and_records_a_run_without_running_it(tmp_path: Path) -> None:
    clone = Clone(tmp_path)
    runs, results = clone.path / "runs", clone.path / "results"
    direct = Here(tmp_path / "direct", [SAMPLE, *SMALL])
    direct.finish()
    (clone.path / "params.yaml").write_text(
        clone.do("python", "-m", "pipeline", "--cfg", "job", "--resolve", *direct.command)
    )

    process = clone.start("dvc", "repro")
    wait_for(lambda: process.poll() is not None or any(runs.glob("*/state/HEAD.json")))
    os.killpg(process.pid, signal.SIGINT)  # as Ctrl-C does
    said, _ = process.communicate(timeout=120)
    assert process.returncode == 255, said
    assert "Rerun the same command to resume" in said
    assert not any(runs.glob("*/path.zarr")), "it was done before it could be stopped"
    said = clone.do("dvc", "repro")
    assert "Running stage 'evaluate'" in said
    assert "Running stage 'init_path'" not in said
    assert same(results / "path.zarr", direct.run / "path.zarr")
    clone.commit("Small")

    other = Here(runs, [*direct.command, "seed=5"])
    other.finish()
    (run,) = (path.parent for path in runs.glob("*/manifest.json") if read_json(path)["science"]["seed"] == 5)
    before = {file: file.stat().st_mtime_ns for file in run.rglob("*")}
    clone.do("dvc", "exp", "run", "-n", "recorded", *(part for word in (*SMALL, "seed=5") for part in ("-S", word)))
    assert {file: file.stat().st_mtime_ns for file in run.rglob("*")} == before
    assert same(results / "path.zarr", run / "path.zarr")
    rows = list(csv.DictReader(clone.do("dvc", "exp", "show", "--csv", "--only-changed").splitlines()))
    (row,) = [row for row in rows if row["Experiment"] == "recorded"]
    loss = read_json(run / "metrics.json")["test_loss"]
    assert (row["seed"], float(row["picked_on_validation.test_loss"])) == ("5", loss)
