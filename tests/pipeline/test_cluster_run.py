"""Whole commands on the workers of a cluster: killed workers, sweeps, and Slurm through stand-ins for its commands."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import zarr
from waiting import wait_for
from workers import ROOT, Site, site

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with site(tmp_path_factory.mktemp("site"), 3) as made:
        yield made


PIPELINE = (
    "dataset=python_oracle", "dataset.oracle=python_task:Pairs", "+dataset.arguments.n=40",
    "path=single", "path.lambda=0.1", "path.tolerance=0.02", "path.relative=false", "solver=bcpfw_gap", "tracking=none",
    "checkpoint.every_seconds=1000",
)  # fmt: skip


def pipeline(runs: Path, *words: str) -> subprocess.Popen[str]:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests" / "support")])}
    command = [sys.executable, "-m", "pipeline", *PIPELINE, *words, f"run.root={runs}"]
    return subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def arrays_of(runs: Path, name: str = "*") -> dict[str, bytes]:
    (path,) = runs.glob(f"{name}/path.zarr")
    group = zarr.open_group(path, mode="r")
    return {name: np.asarray(array).tobytes() for name, array in group.arrays() if name != "seconds"}


@pytest.mark.long
def test_run__on_a_cluster_that_goes_away_keeps_its_state_and_ends_with_the_same_bits(tmp_path: Path) -> None:
    slow = "+dataset.arguments.delay=0.004"
    with site(tmp_path / "site", 1) as hosts:
        ways = ("compute=cluster", f"compute.address={hosts.address}", "compute.wait_seconds=2", slow)
        first = pipeline(tmp_path / "far", *ways)
        state = tmp_path / "far"
        wait_for(lambda: any(state.glob("*/.tmp-weights/w-*")) and any(state.glob("*/manifest.json")), first)
        hosts.kill(0)
        _, said = first.communicate(timeout=300)
        assert first.returncode == 1, said
        assert "error: compute: no worker at" in said
        assert any(state.glob("*/state/HEAD.json")), "the point where the pass began is committed"
        hosts.add()
        second = pipeline(tmp_path / "far", *ways)
        wait_for(lambda: any(state.glob("*/.tmp-weights/w-*")), second)
        second.send_signal(signal.SIGTERM)
        _, said = second.communicate(timeout=300)
        assert second.returncode == 143, said
        third = pipeline(tmp_path / "far", *ways)
        _, said = third.communicate(timeout=600)
        assert third.returncode == 0, said
        assert not any(state.glob("*/.tmp-weights"))
    near = pipeline(tmp_path / "near", "compute=serial", slow)
    _, said = near.communicate(timeout=600)
    assert near.returncode == 0, said
    assert arrays_of(tmp_path / "far") == arrays_of(tmp_path / "near")


@pytest.mark.long
def test_sweep__does_its_runs_on_the_workers_of_a_cluster(hosts: Site, tmp_path: Path) -> None:
    words = ("-m", "seed=0,1", "compute=cluster", f"compute.address={hosts.address}")
    far = pipeline(tmp_path / "far", *words)
    said, errors = far.communicate(timeout=600)
    assert far.returncode == 0, errors
    assert "2 runs, 0 complete; 2 workers" in errors
    assert said.count("done") >= 2
    (log, _) = sorted((tmp_path / "far").glob("python_oracle-*/invocations/*/.hydra/config.yaml"))
    assert "kind: serial" in log.read_text()
    near = pipeline(tmp_path / "near", "seed=1", "compute=serial")
    _, errors = near.communicate(timeout=600)
    assert near.returncode == 0, errors
    (name,) = (path.name for path in (tmp_path / "near").glob("python_oracle-*"))
    assert arrays_of(tmp_path / "far", name) == arrays_of(tmp_path / "near")


SBATCH = """#!/bin/bash
cp "$1" "$0.$$.sh"  # as Slurm does: the submitter deletes its file as soon as this returns
setsid bash "$0.$$.sh" > "$0.$$.log" 2>&1 &
echo "Submitted batch job $!"
"""
SCANCEL = """#!/bin/bash
kill -KILL -- "-$1"
"""


@pytest.mark.long
def test_run__on_slurm_jobs_by_a_stand_in_for_its_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("dask_jobqueue")
    commands = tmp_path / "bin"
    commands.mkdir()
    for name, text in (("sbatch", SBATCH), ("scancel", SCANCEL)):
        (commands / name).write_text(text)
        (commands / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{commands}{os.pathsep}{os.environ['PATH']}")
    far = pipeline(tmp_path / "far", "compute=slurm", "compute.workers=2", "compute.slurm.interface=lo")
    _, said = far.communicate(timeout=600)
    assert far.returncode == 0, said
    logs = list(commands.glob("sbatch.*.log"))
    assert len(logs) == 2
    assert any("Registered to" in log.read_text() for log in logs)
    near = pipeline(tmp_path / "near", "compute=serial")
    _, said = near.communicate(timeout=600)
    assert near.returncode == 0, said
    assert arrays_of(tmp_path / "far") == arrays_of(tmp_path / "near")
