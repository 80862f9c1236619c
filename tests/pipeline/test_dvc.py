"""dvc.yaml against the stage graph, and what stages export for DVC. DVC itself runs in `tests/e2e/test_dvc.py`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from configs import composed
from omegaconf import OmegaConf
from waiting import wait_for

from gapwise.pipeline.config.settings import read
from gapwise.pipeline.rundir import locked
from gapwise.pipeline.stage_graph import flow

ROOT = Path(__file__).resolve().parents[2]
COMMAND = "python -m pipeline --config-dir . --config-name from_params run.until="
SAMPLE = "+experiment=regpath_horseseg"


def dvc_yaml() -> dict[str, Any]:
    content: Any = OmegaConf.to_container(OmegaConf.load(ROOT / "dvc.yaml"))
    return dict(content)


def outs(stage: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Path to options, of outs, metrics and plots alike."""
    listed = [*stage.get("outs", []), *stage.get("metrics", []), *stage.get("plots", [])]
    return {name: options for out in listed for name, options in (out if isinstance(out, dict) else {out: {}}).items()}


def test_stages__are_those_of_the_graph_in_its_order() -> None:
    stages = dvc_yaml()["stages"]
    assert list(stages) == list(flow())
    assert all(stage.export is not None for stage in flow().values())
    assert {name: stage["cmd"] for name, stage in stages.items()} == {name: f"{COMMAND}{name}" for name in flow()}


def test_stages__need_those_before_them() -> None:
    made: dict[str, str] = {}
    reached: dict[str, set[str]] = {}
    for name, stage in dvc_yaml()["stages"].items():
        direct = {made[dep] for dep in stage.get("deps", [])}
        reached[name] = direct.union(*(reached[other] for other in direct))
        made |= dict.fromkeys(outs(stage), name)
    names = list(flow())
    assert [reached[name] for name in names] == [set(names[:k]) for k in range(len(names))]


def test_params__are_the_science_of_a_run() -> None:
    settings = read(composed("snapshots.every_passes=1"))
    stages = dvc_yaml()["stages"]
    tracked = [param for stage in stages.values() for param in stage.get("params", [])]
    of_served = {"run.refit", "run.pick", "run.criterion"}  # no number of the path depends on them
    assert set(tracked) == {*settings.science, *of_served}
    assert stages["featurize"]["params"] == ["dataset"]


def test_outs__are_never_state() -> None:
    for name, stage in dvc_yaml()["stages"].items():
        for path, options in outs(stage).items():
            assert path.startswith("results/"), name
            assert set(options) <= {"cache"}, f"{name}: {path}: persist would check old state back in under a new seed"
    ignored = (ROOT / ".dvcignore").read_text().split("\n")
    assert "/runs" in ignored


def run(folder: Path, *words: str) -> subprocess.Popen[str]:
    """Stages of `fake_stages`."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), "GAPWISE_RUNS": str(folder / "runs")}
    script = [sys.executable, str(ROOT / "tests" / "support" / "fake_stages.py"), "tracking=none", *words]
    return subprocess.Popen(script, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def done(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return out


@pytest.mark.slow
def test_export__is_what_dvc_yaml_says_stage_by_stage(tmp_path: Path) -> None:
    results = tmp_path / "results"
    earlier: set[str] = set()
    for name, stage in dvc_yaml()["stages"].items():
        done(run(tmp_path, f"run.until={name}", f"run.export={results}"))
        exported = {f"results/{path.name}" for path in results.iterdir()}
        assert exported - earlier == set(outs(stage))
        earlier = exported
    stored = {path.name for path in (results / "path.zarr").iterdir()}
    assert {"lambda", "gap", "zarr.json"} <= stored
    assert not stored & {"train_loss", "test_loss"}  # evaluate's: solve's copy does not change when it has run
    assert (results / "path.csv").read_text().splitlines()[1].startswith("0,0.5,0.08,")
    assert json.loads((results / "solve.json").read_text())["oracle_calls"] == 10 + 15 + 20


@pytest.mark.long
@pytest.mark.slow
def test_export__of_a_complete_run_runs_nothing(tmp_path: Path) -> None:
    done(run(tmp_path, SAMPLE))
    (run_dir,) = tmp_path.glob("runs/horses_sample-*")
    before = {file: file.stat().st_mtime_ns for file in run_dir.rglob("*")}
    for name in flow():
        assert done(run(tmp_path, SAMPLE, f"run.until={name}", f"run.export={tmp_path / 'results'}")).endswith(
            f"{run_dir}\n"
        )
    assert {file: file.stat().st_mtime_ns for file in run_dir.rglob("*")} == before
    assert len(list((tmp_path / "results").iterdir())) == 10


@pytest.mark.slow
def test_export__of_a_damaged_run_makes_it_again_first(tmp_path: Path) -> None:
    export = f"run.export={tmp_path / 'results'}"
    done(run(tmp_path, export))
    before = (tmp_path / "results" / "verify.json").read_text()
    (file,) = tmp_path.glob("runs/horses_sample-*/verify.json")
    file.write_text(before.replace("0.08", "0.07"))
    done(run(tmp_path, "run.until=verify", export))
    assert (tmp_path / "results" / "verify.json").read_text() == before


@pytest.mark.slow
def test_managed__waits_for_its_run(tmp_path: Path) -> None:
    done(run(tmp_path, "run.until=featurize"))
    (run_dir,) = tmp_path.glob("runs/horses_sample-*")
    with locked(run_dir / "lock"):
        refused = run(tmp_path)
        assert "is in use by" in refused.communicate(timeout=120)[1]
        assert refused.returncode == 1
        waits = run(tmp_path, "run.managed=true")
        assert waits.stderr is not None
        line = waits.stderr.readline()
        assert line.startswith(f"waiting for this run, which process {os.getpid()} on host")
    done(waits)
    assert (run_dir / "result.json").is_file()


ORPHAN = """
import sys, time
from pathlib import Path
from gapwise.pipeline.interrupt import Stop
with Stop(with_parent=sys.argv[1] == "managed", every=0.02) as stop:
    Path("started").touch()
    end = time.monotonic() + 3
    while not stop() and time.monotonic() < end:
        time.sleep(0.01)
    Path("ended").write_text(str(stop.signal if stop() else 0))
"""


@pytest.mark.slow
@pytest.mark.parametrize(("how", "told"), [("managed", signal.SIGTERM), ("alone", 0)])
def test_managed__stops_when_the_program_that_started_it_is_killed(tmp_path: Path, how: str, told: int) -> None:
    child = [sys.executable, "-c", ORPHAN, how]
    starter = f"import subprocess; subprocess.run({child!r})"
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    parent = subprocess.Popen([sys.executable, "-c", starter], cwd=tmp_path, env=env)
    wait_for((tmp_path / "started").is_file)
    parent.kill()
    parent.wait()
    ended = tmp_path / "ended"
    wait_for(lambda: ended.is_file() and ended.read_text())
    assert int(ended.read_text()) == told
