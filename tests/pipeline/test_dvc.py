"""dvc.yaml against the stage graph, and what stages export for DVC. DVC itself runs in `tests/e2e/test_dvc.py`."""

from __future__ import annotations

import configparser
import json
import os
import shutil
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from configs import composed
from hydra import compose, initialize_config_dir
from in_process import Here
from omegaconf import OmegaConf
from waiting import wait_for

from gapwise.pipeline import run as commands
from gapwise.pipeline.config.settings import CONF, read
from gapwise.pipeline.rundir import locked
from gapwise.pipeline.stage_graph import flow
from gapwise.pipeline.stage_graph.evaluate import by_split
from gapwise.records import flat

ROOT = CONF.parent
COMMAND = "python -m pipeline --config-dir . --config-name from_params run.until="


def dvc_yaml() -> dict[str, Any]:
    content: Any = OmegaConf.to_container(OmegaConf.load(ROOT / "dvc.yaml"))
    return dict(content)


def outs(stage: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Path to options, of outs, metrics and plots alike."""
    listed = [*stage.get("outs", []), *stage.get("metrics", []), *stage.get("plots", [])]
    return {name: options for out in listed for name, options in (out if isinstance(out, dict) else {out: {}}).items()}


def test_stages__are_those_of_the_graph_in_its_order_and_need_those_before_them() -> None:
    stages, made, reached = dvc_yaml()["stages"], dict[str, str](), dict[str, set[str]]()
    assert {name: stage["cmd"] for name, stage in stages.items()} == {name: f"{COMMAND}{name}" for name in flow()}
    for k, (name, stage) in enumerate(stages.items()):
        direct = {made[dep] for dep in stage.get("deps", [])}
        reached[name] = direct.union(*(reached[other] for other in direct))
        assert reached[name] == {*[*flow()][:k]}
        made |= dict.fromkeys(outs(stage), name)
        for path, options in outs(stage).items():
            assert path.startswith("results/"), name
            assert set(options) <= {"cache"}, f"{name}: {path}: persist would check old state back in under a new seed"
    assert "/runs" in (ROOT / ".dvcignore").read_text().split("\n")


def test_params__are_the_science_of_a_run() -> None:
    tracked = [param for stage in dvc_yaml()["stages"].values() for param in stage.get("params", [])]
    of_served = {"run.refit", "run.pick", "run.criterion"}  # no number of the path depends on them
    assert set(tracked) == {*read(composed("snapshots.every_passes=1")).science, *of_served}
    assert dvc_yaml()["stages"]["featurize"]["params"] == ["dataset"]


def dvc_composes(*words: str) -> dict[str, object]:
    """Values by dotted key, as `dvc exp run -S WORD …` writes them to params.yaml."""
    asked = configparser.ConfigParser()
    asked.read_string("\n".join(line.strip() for line in (ROOT / ".dvc" / "config").read_text().splitlines()))
    assert ROOT / asked["hydra"]["config_dir"] == CONF
    with initialize_config_dir(str(CONF), version_base=None):
        composed: Any = OmegaConf.to_container(compose(asked["hydra"]["config_name"], list(words)), resolve=True)
    return flat(composed)


def test_set_param__changes_one_value_or_the_experiment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GAPWISE_RUNS", raising=False)
    params: Any = OmegaConf.to_container(OmegaConf.load(ROOT / "params.yaml"))
    before, after = flat(params), dvc_composes("path.eps=0.2")
    assert dvc_composes() == before
    assert {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)} == {"path.eps"}
    assert dvc_composes("experiment=regpath_ocr")["dataset.name"] == "ocr"


def test_by_split__gives_numbers_of_two_protocols_different_names() -> None:
    picked = {"best_lambda": 0.1, "train_loss": 0.2, "test_loss": 0.3, "all_zero_test_loss": 0.9}
    held_out = {
        "validation_loss": 0.25,
        "picked_on": "validation",
        "hindsight_lambda": 0.05,
        "hindsight_test_loss": 0.28,
    }
    test, validated = flat(by_split(picked)), flat(by_split(picked | held_out))
    assert test["picked_on_test.test_loss"] == validated["picked_on_validation.test_loss"] == 0.3
    assert validated["picked_on_test.test_loss"] == 0.28  # of the lambda that the other protocol picks
    assert test.keys() & validated.keys() == {
        "picked_on_test.best_lambda", "picked_on_test.test_loss", "all_zero_test_loss",
    }  # fmt: skip


def same_verdict(results: Path, run: Path) -> bool:
    """Whether the exported verify.json says what that of a run says."""
    exported, facts = (json.loads((folder / "verify.json").read_text()) for folder in (results, run))
    return bool(exported["verdict"]["certified"]) and exported == {name: facts[name] for name in exported}


def test_export__is_what_dvc_yaml_says_stage_by_stage(chain, tmp_path: Path) -> None:
    results, earlier = tmp_path / "results", set[str]()
    here = Here(tmp_path / "runs", chain.words)
    for name, stage in dvc_yaml()["stages"].items():
        here.finish(f"run.until={name}", f"run.export={results}")
        exported = {f"results/{path.name}" for path in results.iterdir()}
        assert exported - earlier == set(outs(stage))
        earlier = exported
    stored = {path.name for path in (results / "path.zarr").iterdir()}
    assert {"lambda", "gap", "zarr.json"} <= stored
    assert not stored & {"train_loss", "test_loss"}  # evaluate's: solve's copy does not change when it has run
    assert same_verdict(results, chain.run)


def test_export__of_a_damaged_run_makes_it_again_first_when_its_run_is_free(chain, tmp_path: Path, monkeypatch) -> None:
    shutil.copytree(chain.root, tmp_path / "runs")
    here = Here(tmp_path / "runs", [*chain.words, f"run.export={tmp_path / 'results'}"])
    (here.run / "verify.json").write_text((here.run / "verify.json").read_text().replace("0.", "1.", 1))
    with ExitStack() as held:
        held.enter_context(locked(here.run / "lock"))
        refused = here.issue("run.until=verify")
        assert (refused.code, "is in use by" in refused.err) == (1, True)

        said = commands._wait
        monkeypatch.setattr(commands, "_wait", lambda holder: (said(holder), held.close()))
        waited = here.finish("run.until=verify", "run.managed=true")
    assert waited.err.startswith(f"waiting for this run, which process {os.getpid()} on host")
    assert same_verdict(tmp_path / "results", chain.run)


ORPHAN = """
import sys, time
from pathlib import Path
from gapwise.pipeline.interrupt import Stop
with Stop(with_parent=True, every=0.02) as stop:
    Path("started").touch()
    end = time.monotonic() + 60
    while not stop() and time.monotonic() < end:
        time.sleep(0.01)
    Path("ended").write_text(str(stop.signal if stop() else 0))
"""


def test_managed__stops_when_the_program_that_started_it_is_killed(tmp_path: Path) -> None:
    starter = f"import subprocess; subprocess.run({[sys.executable, '-c', ORPHAN]!r})"
    parent = subprocess.Popen([sys.executable, "-c", starter], cwd=tmp_path)
    wait_for((tmp_path / "started").is_file)
    parent.kill()
    parent.wait()
    ended = tmp_path / "ended"
    wait_for(lambda: ended.is_file() and ended.read_text())
    assert ended.read_text() == "15"
