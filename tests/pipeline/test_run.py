"""A run from outside: what it leaves, how it ends, how it resumes. The stages are those of `fake_stages`."""

from __future__ import annotations

import json
import math
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from gapwise.pipeline.interrupt import Interrupted, Stop
from gapwise.pipeline.overview.standing import standing
from gapwise.pipeline.rundir import LockedError, locked, read_json, write_json

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
STAGES = ["featurize", "solve", "verify", "evaluate", "figures"]
PATH_FIELDS = {"lambda", "gap", "primal", "dual", "effective_passes", "oracle_calls", "seconds", "status"}


def command(folder: Path, *words: str, fake: str = "", flags: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(ROOT), "FAKE_STAGE": fake, "GAPWISE_RUNS": str(folder / "runs")}
    script = [sys.executable, *flags, str(ROOT / "tests" / "support" / "fake_stages.py"), "tracking=none", *words]
    return subprocess.run(script, cwd=folder, env=env, capture_output=True, text=True, timeout=120)


def calls(folder: Path) -> list[str]:
    """Stages that ran, in order, over all commands."""
    return (folder / "runs" / "calls.txt").read_text().split()


def run_dir(folder: Path) -> Path:
    (run,) = (path for path in (folder / "runs").iterdir() if path.name.startswith("horses_sample-"))
    return run


def test_run__leaves_a_directory_for_people_and_programs(tmp_path: Path) -> None:
    done = command(tmp_path, "+experiment=regpath_horseseg", fake="solve:spread")
    assert done.returncode == 0, done.stderr
    run = run_dir(tmp_path)
    assert done.stdout.splitlines()[-1] == f"run: {run}"
    assert "λ #1 = 5.0e-01 · epoch 2 · gap 8.0e-02, target 9e-02 · 48k oracle calls · 00:0" in done.stderr
    result = json.loads((run / "result.json").read_text())
    assert set(result) >= {"format_version", "key", "experiment", "status", "problem", "path", "verify", "evaluate"}
    assert result["experiment"] == "regpath_horseseg"
    assert result["status"] == "CONVERGED"
    assert result["problem"] == {"name": "horses_sample", "n": 5, "d": 3}
    assert [set(record) for record in result["path"]] == [PATH_FIELDS] * 3
    assert result["evaluate"]["best_lambda"] == 0.25
    assert run.name == f"horses_sample-bcpfw_gap_cache-{result['key'][:8]}"
    (invocation,) = (run / "invocations").iterdir()
    assert sorted(file.name for file in (invocation / ".hydra").iterdir()) == [
        "config.yaml",
        "hydra.yaml",
        "overrides.yaml",
    ]
    assert "stage solve" in (invocation / "pipeline.log").read_text()
    assert calls(tmp_path) == STAGES
    assert sorted(path.name for path in tmp_path.iterdir()) == ["runs"]


def test_run__is_complete_at_once_without_heavy_imports(tmp_path: Path) -> None:
    first = command(tmp_path)
    again = command(tmp_path, "compute=serial", flags=("-X", "importtime"))
    assert again.returncode == 0
    took = [line for line in first.stdout.splitlines(keepends=True) if line.startswith("    time  ")]
    assert again.stdout == first.stdout.replace("".join(took), "")
    assert len(took) == 1
    assert calls(tmp_path) == STAGES
    imported = {line.rsplit("|", 1)[-1].strip().split(".")[0] for line in again.stderr.splitlines()}
    assert "hydra" in imported
    assert not imported & {"numba", "mlflow", "dask", "matplotlib", "zarr"}


@pytest.mark.parametrize(("fake", "code"), [("solve:interrupt", 130), ("solve:sigterm", 143)])
def test_interrupt__has_its_exit_code_and_is_resumed(tmp_path: Path, fake: str, code: int) -> None:
    done = command(tmp_path, fake=fake)
    assert done.returncode == code
    assert "run:" not in done.stdout
    saved = "Interrupted; progress saved: featurize, init_path. Rerun the same command to resume.\n"
    assert done.stderr.endswith(saved), done.stderr
    assert not (run_dir(tmp_path) / "result.json").exists()
    assert command(tmp_path).returncode == 0
    assert calls(tmp_path) == ["featurize", "solve", *STAGES[1:]]


def test_interrupt__before_anything_is_saved_says_so(tmp_path: Path) -> None:
    done = command(tmp_path, fake="featurize:interrupt")
    assert done.returncode == 130, done.stderr
    assert done.stderr.endswith("Interrupted; nothing was saved yet. Rerun the same command to begin again.\n")
    assert standing(run_dir(tmp_path)).why == "by a signal"


def test_certificate__that_fails_ends_with_1_and_is_tried_again(tmp_path: Path) -> None:
    done = command(tmp_path, fake="verify:certificate")
    assert done.returncode == 1
    assert "error: verify: the certificate fails at lambda = 0.25" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (run_dir(tmp_path) / "result.json").exists()
    assert command(tmp_path).returncode == 0
    assert calls(tmp_path) == ["featurize", "solve", "verify", *STAGES[2:]]


def test_bad_data__is_one_line_that_names_the_file(tmp_path: Path) -> None:
    done = command(tmp_path, fake="featurize:data")
    assert done.returncode == 1
    assert "error: horses/mask007.png: expected 160 x 120" in done.stderr
    assert "Traceback" not in done.stderr
    assert not [path for path in (tmp_path / "runs" / "features").iterdir() if path.is_dir()]


def test_root__that_cannot_be_made_is_one_line_that_says_what_to_do(tmp_path: Path) -> None:
    done = command(tmp_path, "run.root=/proc/runs")
    assert done.returncode == 1
    assert "run.root: /proc/runs cannot hold runs: No such file or directory. Give a folder that can" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_bug__is_a_traceback_on_screen_and_in_the_log(tmp_path: Path) -> None:
    done = command(tmp_path, fake="evaluate:bug")
    assert done.returncode == 1
    assert "KeyError: 'a bug'" in done.stderr
    (log,) = run_dir(tmp_path).glob("invocations/*/pipeline.log")
    assert "KeyError: 'a bug'" in log.read_text()


def test_time_limit__is_complete_until_given_more(tmp_path: Path) -> None:
    assert command(tmp_path, "solver.max_seconds=5", fake="solve:time").returncode == 0
    assert json.loads((run_dir(tmp_path) / "result.json").read_text())["status"] == "TIME_LIMIT"
    assert command(tmp_path, "solver.max_seconds=5").returncode == 0
    assert calls(tmp_path) == STAGES
    assert command(tmp_path, "solver.max_seconds=50").returncode == 0
    assert calls(tmp_path) == STAGES + STAGES[1:]
    assert json.loads((run_dir(tmp_path) / "result.json").read_text())["status"] == "CONVERGED"


def test_stages__one_alone_needs_those_before_it(tmp_path: Path) -> None:
    early = command(tmp_path, "run.stage=verify")
    assert early.returncode == 1
    assert "stage featurize has to be done first" in early.stderr
    assert not list((tmp_path / "runs").glob("horses_sample-*")), "nothing was done, so nothing is left"
    for stage in ("featurize", "init_path", "solve", "verify", "evaluate"):
        assert command(tmp_path, f"run.stage={stage}").returncode == 0
        assert not (run_dir(tmp_path) / "result.json").exists()
    assert command(tmp_path, "run.stage=report").returncode == 0
    assert (run_dir(tmp_path) / "result.json").exists()
    assert calls(tmp_path) == STAGES


def test_lock__names_process_and_host(tmp_path: Path) -> None:
    command(tmp_path, fake="verify:certificate")
    with locked(run_dir(tmp_path) / "lock"):
        done = command(tmp_path)
    assert done.returncode == 1
    assert f"process {os.getpid()} on host {socket.gethostname()}" in done.stderr
    assert command(tmp_path).returncode == 0


def test_manifest__of_another_run_is_refused_with_what_differs(tmp_path: Path) -> None:
    command(tmp_path, fake="verify:certificate")
    manifest = run_dir(tmp_path) / "manifest.json"
    content = json.loads(manifest.read_text())
    del content["seal"]
    content["format_version"] = 99
    content["science"]["path"]["eps"] = 0.5
    write_json(manifest, content, seal=True)
    done = command(tmp_path)
    assert done.returncode == 1
    assert "format_version (99 there, 4 here), path.eps (0.5 there, 0.1 here)" in done.stderr


def test_multirun__goes_on_after_a_failed_job_and_skips_what_is_complete(tmp_path: Path) -> None:
    done = command(tmp_path, "-m", "seed=13,2,3")
    assert done.returncode == 1
    assert "FAILED seed=13: segmentation: block 7" in done.stdout
    assert len(list(tmp_path.glob("runs/horses*/result.json"))) == 2
    before = calls(tmp_path)
    assert before.count("solve") == 3
    assert before.count("featurize") == 1
    assert command(tmp_path, "-m", "seed=2,3").returncode == 0
    assert calls(tmp_path) == before
    assert command(tmp_path, "-m", "seed=2", "path.eps=0.1,-1").returncode == 2


def test_locked__can_wait_for_the_other(tmp_path: Path) -> None:
    told: list[str] = []

    def waiting(holder: str) -> None:
        told.append(holder)
        first.__exit__(None, None, None)

    first = locked(tmp_path / "lock")
    first.__enter__()
    with pytest.raises(LockedError, match=f"process {os.getpid()}"), locked(tmp_path / "lock"):
        pass
    with locked(tmp_path / "lock", waiting, seconds=0.01):
        assert len(told) == 1


def test_json__is_strict_and_whole(tmp_path: Path) -> None:
    write_json(tmp_path / "x.json", {"a": math.inf, "b": [1, math.nan]})
    assert read_json(tmp_path / "x.json") == {"a": "inf", "b": [1, "nan"]}
    assert [path.name for path in tmp_path.iterdir()] == ["x.json"]
    assert read_json(tmp_path / "none.json") is None
    (tmp_path / "bad.json").write_text("{")
    with pytest.raises(ValueError, match=r"bad\.json"):
        read_json(tmp_path / "bad.json")


def test_json__keeps_names_of_files_that_are_no_unicode(tmp_path: Path) -> None:
    name = os.fsdecode(b"tr\xe4n.txt")
    write_json(tmp_path / "manifest.json", {"file": name}, seal=True)
    assert read_json(tmp_path / "manifest.json", seal=True) == {"file": name}


def test_stop__raises_once_asked_for() -> None:
    stop = Stop()
    stop.check()
    assert not stop()
    stop.request(15)
    with pytest.raises(Interrupted) as caught:
        stop.check()
    assert caught.value.signal == 15
