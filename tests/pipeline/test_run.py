"""A run from outside: what it leaves, how it ends, how it resumes."""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from in_process import Here
from real_runs import Sandbox

from gapwise.pipeline import source_code
from gapwise.pipeline.cli import carry_out
from gapwise.pipeline.rundir import read_json, write_json
from gapwise.pipeline.stage_graph import Stage, after, flow, stages
from gapwise.stages import evaluate, report

PATH_FIELDS = {"lambda", "gap", "primal", "dual", "effective_passes", "oracle_calls", "seconds", "status"}


@pytest.fixture
def sandbox(chain, tmp_path: Path) -> Here:
    """The finished run, copied."""
    shutil.copytree(chain.root, tmp_path / "runs")
    return Here(tmp_path / "runs", chain.words)


def test_run__leaves_a_directory_for_people_and_programs(chain) -> None:
    result = json.loads((chain.run / "result.json").read_text())
    assert set(result) >= {"format_version", "key", "experiment", "status", "problem", "path", "verify", "evaluate"}
    assert result["status"] == "CONVERGED"
    assert (result["problem"]["name"], result["problem"]["n"]) == ("sequences_csv", 4)
    assert all(set(record) == PATH_FIELDS for record in result["path"])
    assert result["evaluate"]["best_lambda"] > 0.0
    assert chain.run.name == f"sequences_csv-bcpfw_gap_cache-{result['key'][:8]}"
    (invocation,) = (chain.run / "invocations").iterdir()
    assert "stage solve" in (invocation / "pipeline.log").read_text()
    assert set(read_json(chain.run / "manifest.json", seal=True)["stages"]) == {*flow()}


def test_run__is_complete_at_once_without_heavy_imports(chain) -> None:
    before = {file: file.stat().st_mtime_ns for file in chain.root.rglob("*")}
    again = Sandbox(chain.root, chain.words, {"PYTHONPROFILEIMPORTTIME": "1"}).finish()
    assert again.out.splitlines()[-1] == f"run: {chain.run}"
    assert "every certificate holds" in again.out
    assert {file: file.stat().st_mtime_ns for file in chain.root.rglob("*")} == before
    imported = {line.rsplit("|", 1)[-1].strip().split(".")[0] for line in again.err.splitlines()}
    assert "hydra" in imported
    assert not imported & {"numba", "mlflow", "dask", "matplotlib", "zarr"}


def test_root__that_cannot_be_made_is_one_line_that_says_what_to_do(chain, given) -> None:
    done = given(*chain.words, "run.root=/proc/runs")
    assert done.code == 1
    assert "run.root: /proc/runs cannot hold runs: No such file or directory. Give a folder that can" in done.err
    assert len(done.err.splitlines()) == 1


def fail(*_: object, **__: object) -> None:
    raise KeyError("a bug")


def test_bug__is_a_traceback_on_screen_and_in_the_log(sandbox: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    (sandbox.run / "metrics.json").unlink()
    before = {*sandbox.run.glob("invocations/*/pipeline.log")}
    monkeypatch.setattr(evaluate, "evaluate", fail)
    done = sandbox.issue()
    assert done.code == 1
    (log,) = {*sandbox.run.glob("invocations/*/pipeline.log")} - before
    for said in (done.err, log.read_text()):
        assert "Traceback" in said
        assert "KeyError: 'a bug'" in said


def test_report__that_cannot_be_made_is_in_no_runs_way_and_is_made_later(
    sandbox: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    (sandbox.run / "report.html").unlink()
    with monkeypatch.context() as patch:
        patch.setattr(report, "write_report", fail)
        done = sandbox.finish()
        assert "the report could not be made: 'a bug'; gapwise report tries again" in done.err
        assert json.loads((sandbox.run / "result.json").read_text())["status"] == "CONVERGED"
    assert not (sandbox.run / "report.html").exists()
    solved = (sandbox.run / "path.zarr" / "zarr.json").stat().st_mtime_ns
    assert carry_out(["report", str(sandbox.run), "--figures", "png,svg"]) == 0
    assert list((sandbox.run / "figures").glob("*.svg"))
    assert (sandbox.run / "report.html").exists()
    assert (sandbox.run / "path.zarr" / "zarr.json").stat().st_mtime_ns == solved


def test_until__ends_after_a_stage_and_the_run_goes_on(chain, tmp_path: Path) -> None:
    sandbox = Here(tmp_path / "runs", chain.words)
    *stages, last = flow()
    for stage in stages:
        sandbox.finish(f"run.until={stage}")
        assert not (sandbox.run / "result.json").exists()
    sandbox.finish(f"run.until={last}")
    assert (sandbox.run / "result.json").exists()
    refused = sandbox.issue("run.until=refit")
    assert (refused.code, "run.until: this run has no refit" in refused.err) == (2, True)


def test_manifest__of_another_run_is_refused_with_what_differs(sandbox: Here) -> None:
    manifest = sandbox.run / "manifest.json"
    content = json.loads(manifest.read_text())
    del content["seal"]
    content["format_version"] = 99
    content["science"]["path"]["eps"] = 0.5
    write_json(manifest, content, seal=True)
    (sandbox.run / "result.json").unlink()
    done = sandbox.issue()
    assert done.code == 1
    assert "format_version (99 there, 4 here), path.eps (0.5 there, " in done.err


def test_json__is_strict_and_whole(tmp_path: Path) -> None:
    write_json(tmp_path / "x.json", {"a": math.inf, "b": [1, math.nan], "c": os.fsdecode(b"tr\xe4n.txt")})
    assert read_json(tmp_path / "x.json") == {"a": "inf", "b": [1, "nan"], "c": os.fsdecode(b"tr\xe4n.txt")}
    assert [path.name for path in tmp_path.iterdir()] == ["x.json"]
    assert read_json(tmp_path / "none.json") is None
    (tmp_path / "bad.json").write_text("{")
    with pytest.raises(ValueError, match=r"bad\.json"):
        read_json(tmp_path / "bad.json")


def test_flow__is_in_order_and_the_refit_is_no_part_of_every_run() -> None:
    assert list(flow()) == ["featurize", "init_path", "solve", "verify", "evaluate", "report"]
    assert set(stages()) - set(flow()) == {"refit"}
    assert after("solve") == ("verify", "evaluate", "refit", "report")


def test_has_more__for_a_stage_that_is_not_done_or_may_go_on() -> None:
    stage = Stage("a", lambda job: {}, unfinished=lambda facts, settings: facts["left"] > 0)
    assert stage.has_more({}, None)
    assert stage.has_more({"a": {"left": 1}}, None)
    assert not stage.has_more({"a": {"left": 0}}, None)
    assert not Stage("a", lambda job: {}).has_more({"a": {}}, None)


def git(root: Path, *words: str) -> str:
    names = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", "-C", str(root), *names, *words], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def test_commit__is_the_one_checked_out_and_says_what_differs(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / "code.py").write_text("x = 1\n")
    git(tmp_path, "add", "code.py")
    git(tmp_path, "commit", "-qm", "first")
    head = git(tmp_path, "rev-parse", "HEAD")
    source_code.commit.cache_clear()
    assert source_code.commit(tmp_path) == head
    (tmp_path / "code.py").write_text("x = 2\n")
    source_code.commit.cache_clear()
    assert source_code.commit(tmp_path) == f"{head}-dirty"
    inside = tmp_path / "site-packages"
    inside.mkdir()
    assert source_code.commit(inside) is None  # installed into another project's checkout


def test_commit__without_git_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".git").mkdir()
    monkeypatch.setenv("PATH", "")
    assert source_code.commit(tmp_path) is None
