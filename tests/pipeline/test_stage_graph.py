"""Stage records: their order, and a stage that a user adds from a folder of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import gapwise.pipeline.stage_graph as graph
from gapwise.pipeline.stage_graph import Stage, after, before, flow, stages

ROOT = Path(__file__).resolve().parents[2]

TOY = '''
"""A stage of one's own: counts the breakpoints, {when}."""

from gapwise.pipeline.stage_graph import Stage


def run(job):
    from gapwise.pipeline.result import breakpoints
    from gapwise.pipeline.rundir import write_json

    count = len(breakpoints(job.dir.path)[0])
    write_json(job.dir.path / "{name}.json", {{"count": count}})
    with (job.dir.path.parent / "calls.txt").open("a") as file:
        file.write("{name}\\n")
    return {{"count": count}}


def export(to):
    from gapwise.pipeline.rundir import read_json

    to.json("{name}.json", read_json(to.run / "{name}.json"))


def result(settings, directory):
    return {{"{name}": directory.manifest["stages"]["{name}"]["count"]}}


STAGE = Stage("{name}", run, needs=("evaluate",), in_flow={in_flow}, outputs=("{name}.json",), export=export, result=result)
'''


@pytest.fixture
def parts(tmp_path: Path) -> Path:
    """A folder with two stages of one's own: `tally` in the plain run, `tally_again` on request."""
    folder = tmp_path / "parts" / "stages"
    folder.mkdir(parents=True)
    (folder / "tally.py").write_text(TOY.format(name="tally", when="in every run", in_flow=True))
    (folder / "tally_again.py").write_text(TOY.format(name="tally_again", when="on request", in_flow=False))
    return tmp_path / "parts"


def command(folder: Path, *words: str, parts: Path | None = None) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(ROOT), "GAPWISE_RUNS": str(folder / "runs")}
    script = [sys.executable, str(ROOT / "tests" / "support" / "fake_stages.py"), "tracking=none", *words]
    script += [f"parts={parts}"] if parts is not None else []
    return subprocess.run(script, cwd=folder, env=env, capture_output=True, text=True, timeout=120)


def test_flow__is_ordered_by_what_stages_need() -> None:
    assert list(flow()) == ["featurize", "init_path", "solve", "verify", "evaluate", "report"]
    assert set(stages()) - set(flow()) == {"figures", "refit", "sync"}
    assert before("verify") == ["featurize", "init_path", "solve"]
    assert after("solve") == ["verify", "evaluate", "figures", "refit", "report"]
    assert before("sync") == after("figures") == []


def test_stages__know_themselves_without_heavy_imports() -> None:
    script = "import sys; from gapwise.pipeline.stage_graph import stages; stages(); print(*sys.modules)"
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, check=True)
    assert not {"numpy", "zarr", "numba", "hydra", "dask", "mlflow"} & set(done.stdout.split())


@pytest.mark.slow
def test_stage__of_ones_own_runs_in_the_pipeline(tmp_path: Path, parts: Path) -> None:
    assert command(tmp_path).returncode == 0  # complete before the stage is there: only that is then missing
    before = (tmp_path / "runs" / "calls.txt").read_text()
    done = command(tmp_path, f"run.export={tmp_path / 'results'}", parts=parts)
    assert done.returncode == 0, done.stderr
    calls = (tmp_path / "runs" / "calls.txt").read_text()
    assert calls.removeprefix(before).split() == ["tally"]
    (run_dir,) = (tmp_path / "runs").glob("horses_sample-*")
    assert json.loads((run_dir / "result.json").read_text())["tally"] == 3
    manifest = json.loads((run_dir / "manifest.json").read_text())["stages"]
    assert set(manifest["tally"]["outputs"]) == {"tally.json"}
    assert json.loads((tmp_path / "results" / "tally.json").read_text()) == {"count": 3}
    (run_dir / "tally.json").write_text("{}")  # a damaged output is noticed and made again
    assert command(tmp_path, "run.stage=tally", parts=parts).returncode == 0
    assert json.loads((run_dir / "tally.json").read_text()) == {"count": 3}
    for _ in range(2):  # on request: every time, and no part of the run
        assert command(tmp_path, "run.stage=tally_again", parts=parts).returncode == 0
    calls = (tmp_path / "runs" / "calls.txt").read_text()
    assert calls.removeprefix(before).split() == ["tally", "tally", "tally_again", "tally_again"]
    assert "tally_again" not in json.loads((run_dir / "result.json").read_text())
    assert "tally" in command(tmp_path, "run.stage=nonsense", parts=parts).stderr


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('STAGE = Stage("other", print)', "expected STAGE.name 'broken', got 'other'"),
        ('STAGE = Stage("broken", print, needs=("solv",))', "needs 'solv'; a stage of the run is one of .*solve"),
        ('STAGE = Stage("broken", print, needs=("figures",))', "needs 'figures'"),
    ],
)
def test_stages__say_what_is_wrong_with_a_record(
    text: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken.py").write_text(f"from gapwise.pipeline.stage_graph import Stage\n{text}\n")
    monkeypatch.setattr(graph, "__path__", [*graph.__path__, str(tmp_path)])
    monkeypatch.delitem(sys.modules, "gapwise.pipeline.stage_graph.broken", raising=False)
    with pytest.raises(ValueError, match=says):
        stages.__wrapped__()


def test_has_more__for_a_stage_that_is_not_done_or_may_go_on() -> None:
    stage = Stage("a", lambda job: {}, unfinished=lambda facts, settings: facts["left"] > 0)
    assert stage.has_more({}, None)
    assert stage.has_more({"a": {"left": 1}}, None)
    assert not stage.has_more({"a": {"left": 0}}, None)
    assert not Stage("a", lambda job: {}).has_more({"a": {}}, None)
