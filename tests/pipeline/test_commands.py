"""Commands that look at runs: ls, sync; on runs written by hand, or parts of a real one."""

from __future__ import annotations

import io
import json
import os
import shutil
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from fake_runs import fake_run
from harms import flip

from gapwise.pipeline.cli import carry_out
from gapwise.pipeline.overview.find import named
from gapwise.pipeline.overview.run_state import run_state
from gapwise.pipeline.rundir import RunDir, read_json, write_json
from gapwise.storage.files import locked, remove

Said = Callable[..., str]


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Said:
    """said(*words): what the command prints; it must succeed."""

    def run(*words: object) -> str:
        code = carry_out([str(word) for word in words])
        out, err = capsys.readouterr()
        assert (code, err) == (0, "")
        return out

    return run


def changed(run: Path, **parts: object) -> None:
    """Change the manifest of a run, checksum included."""
    manifest = read_json(run / "manifest.json", seal=True)
    write_json(run / "manifest.json", {**manifest, **parts}, seal=True)


def half_way(real: Path, root: Path, stage: str) -> Path:
    """The real run without its result and without what came from `stage` on, long ago."""
    run = root / real.name
    shutil.copytree(real, run)
    (run / "result.json").unlink()
    stages = read_json(run / "manifest.json", seal=True)["stages"]
    changed(run, stages=dict(list(stages.items())[: [*stages].index(stage)]))
    for old in (run / "manifest.json", run / "state" / "HEAD.json", *run.glob("invocations/*/pipeline.log")):
        os.utime(old, (1.7e9, 1.7e9))
    return run


def test_state__of_a_killed_run_is_interrupted_and_of_a_held_one_running(chain, said: Said, tmp_path: Path) -> None:
    run = half_way(chain.run, tmp_path, "solve")
    (run / "lock").write_text("process 999999999 on host nowhere-else (since 2026-11-21 10:00:00)\n")
    assert run_state(run).state == "silent", "nobody here can tell, and its log is old"
    (file,) = run.glob("invocations/*/pipeline.log")
    os.utime(file)
    assert run_state(run).why == "process 999999999 on host nowhere-else, which cannot be looked up from here"
    (run / "lock").write_text(f"process 999999999 on host {socket.gethostname()} (since 2026-11-21 10:00:00)\n")
    state = run_state(run)
    assert (state.state, state.why, state.stage) == ("interrupted", "killed in solve", "solve")
    assert state.commit is not None
    facts = state.facts()
    assert facts["lambda"] == state.commit["counts"]["lam"]
    assert "   go on  the command that began it: " in said("ls", run)
    with locked(run / "lock"):
        text, (held,) = said("ls", run), json.loads(said("ls", "--root", tmp_path, "--json", "--state", "running"))
        assert (held["state"], held["lambdas"], held["lambda"]) == ("running", facts["lambdas"], facts["lambda"])
    assert text.startswith(f"{run.name}: running\n held by  process ")
    assert f"     log  {file}, last written " in text
    newest = read_json(run / "state" / "HEAD.json")["generation"]
    assert f"  commit  number {newest} at λ " in text
    assert run_state(run).state == "interrupted"


@pytest.mark.parametrize("state", ["interrupted", "failed", "partial"])
def test_state__is_how_the_last_invocation_ended(chain, tmp_path: Path, state: str) -> None:
    run = half_way(chain.run, tmp_path, "verify")
    RunDir.opened(run).ended(state, "as told")
    assert (run_state(run).state, run_state(run).why, run_state(run).stage) == (state, "as told", "verify")


def cut(run: Path) -> None:
    whole = (run / "metrics.json").read_bytes()
    (run / "metrics.json").write_bytes(whole[: len(whole) // 2])


@pytest.mark.parametrize(
    ("harm", "why"),
    [
        (cut, "metrics.json has changed since the run wrote it"),
        (lambda run: remove(run / "path.zarr"), "path.zarr is missing"),
        (lambda run: remove(run / "path.zarr/weights/c/0/0"), "path.zarr: a chunk of weights is missing"),
        (lambda run: remove(run / "figures/path.png"), "figures/path.png is missing"),
    ],
)
def test_commands__say_of_a_harmed_run_what_the_same_command_would_make_again(
    said: Said, chain, tmp_path: Path, harm: Callable[[Path], None], why: str
) -> None:
    run = tmp_path / chain.run.name
    shutil.copytree(chain.run, run)
    assert run_state(run).state == "complete"
    harm(run)
    (listed,) = json.loads(said("ls", "--root", tmp_path, "--json"))
    assert (listed["state"], listed["why"]) == ("damaged", why)
    assert said("ls", run).startswith(f"{run.name}: damaged, resumable ({why})\n")
    with locked(run / "lock"):
        assert run_state(run).state == "running", "its process may be making the file"


def damage(root: Path) -> dict[str, str]:
    """Folders that no command may stumble over, and the state of each."""
    for name in ("photos", "web", "list", "features", "sweeps", "mlruns", ".hydra"):
        (root / name).mkdir()
    (root / "web" / "manifest.json").write_text('{"name": "a web page"}')
    (root / "list" / "manifest.json").write_text("[1]")
    (root / "file.txt").write_text("x")
    flip(fake_run(root, "flipped-1") / "manifest.json")
    (fake_run(root, "cut-1") / "manifest.json").write_text('{"key": ')
    (fake_run(root, "lost-1") / "manifest.json").unlink()
    flip(fake_run(root, "result-1") / "result.json")
    changed(fake_run(root, "old-1"), format_version=1)
    changed(fake_run(root, "odd-1", done=("featurize",)), stages=["featurize"], science=None)
    (fake_run(root, "head-1", done=("featurize",)) / "state" / "HEAD.json").write_text("{}")
    link = fake_run(root, "link-1", done=("featurize",))
    (link / "lock").unlink()
    (link / "lock").symlink_to(root / "file.txt")
    binary = fake_run(root, "binary-1", done=("featurize",))
    (binary / "invocations" / "2026-11-21T10-00-00" / "pipeline.log").write_bytes(bytes(range(256)))
    return {
        "photos": "foreign", "web": "foreign", "list": "foreign", "flipped-1": "damaged", "cut-1": "damaged",
        "lost-1": "damaged", "result-1": "damaged", "old-1": "other version", "odd-1": "damaged",
        "head-1": "interrupted", "link-1": "damaged", "binary-1": "interrupted",
    }  # fmt: skip


def test_ls__lists_damaged_and_foreign_folders_as_such(said: Said, tmp_path: Path) -> None:
    expected = damage(tmp_path)
    fake_run(tmp_path)
    states = {facts["name"]: facts["state"] for facts in json.loads(said("ls", "--root", tmp_path, "--json"))}
    assert states == {**expected, "toy-bcfw-00000001": "complete"}
    text = said("ls", "--root", tmp_path)
    assert "toy-bcfw-00000001  complete       2 λ's · CONVERGED" in text
    assert text.splitlines()[-1].startswith(f"{len(states)} in {tmp_path}: 1 complete, ")
    assert "head-1" in said("ls", "--root", tmp_path, "--state", "interrupted")
    for name in states:
        assert name in said("ls", tmp_path / name) if (tmp_path / name / "lock").exists() else True


def test_ls__repeats_the_summary_of_a_run_and_says_what_was_asked(said: Said, chain) -> None:
    text, result = said("ls", chain.run), json.loads((chain.run / "result.json").read_text())
    for words in (
        "problem  sequences_csv: 4 training examples, ", "verify  every certificate holds, for every λ > 0",
        "next  path.eps=0.025 certifies half the gap (a new run; it reuses these features)",
        "path  rule two_sided · eps 0.05", "time  ",
    ):  # fmt: skip
        assert words in text, words
    assert text.splitlines()[-1] == f"run: {chain.run}"
    (shown,) = json.loads(said("ls", chain.run.name[:-2], "--root", chain.root, "--json"))
    assert (shown["lambdas"], shown["solve_status"]) == (len(result["path"]), result["status"])
    assert (shown["gap"], shown["best_lambda"]) == (result["verify"]["max_gap"], result["evaluate"]["best_lambda"])
    assert shown["manifest"]["key"] == shown["key"]


def test_ls__names_the_keys_in_which_runs_differ(said: Said, tmp_path: Path) -> None:
    fake_run(tmp_path)
    fake_run(tmp_path, "toy-bcfw-00000002", path_eps=0.05, seed=1)
    first, other = sorted(line for line in said("ls", "--root", tmp_path).splitlines() if line.startswith("toy"))
    assert first.endswith("seed 0 · path.eps 0.1")
    assert other.endswith("seed 1 · path.eps 0.05")
    assert said("ls", "@latest", "--root", tmp_path).splitlines()[-1] == f"run: {tmp_path / 'toy-bcfw-00000002'}"


def test_named__is_a_path_or_the_beginning_of_a_name_or_key(tmp_path: Path, capsys) -> None:
    first, other = fake_run(tmp_path, "toy-bcfw-00000001"), fake_run(tmp_path, "toy-bcfw-0000ffff")
    assert named(str(first), None) == first
    assert named("0000ffff", str(tmp_path)) == named("toy-bcfw-0000f", str(tmp_path)) == other
    for word, message in (("toy", "2 runs begin with that: toy-bcfw-00000001, "), ("no", "has such a name or key")):
        assert carry_out(["ls", word, "--root", str(tmp_path)]) == 1
        assert message in capsys.readouterr().err


def test_sync__shows_runs_in_the_users_own_store_and_goes_on_past_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    notes: list[tuple[str, str, str]] = []

    def tracker(options, directory):
        def sync(status: str) -> None:
            if directory.path.name.endswith("2"):
                raise OSError("not there")
            notes.append((options.uri, directory.path.name, status))

        return SimpleNamespace(uri=options.uri, sync=sync)

    monkeypatch.setattr("gapwise.pipeline.tracking.mlflow.Tracker", tracker)
    monkeypatch.setenv("GAPWISE_RUNS", str(tmp_path))
    monkeypatch.delenv("DVC_ROOT", raising=False)
    own, runs = f"sqlite:///{tmp_path}/mlflow.db", [fake_run(tmp_path, f"toy-bcfw-{k}") for k in (1, 2, 3)]
    assert carry_out(["sync", *map(str, runs[:2])]) == 1
    said = capsys.readouterr().out.splitlines()
    assert said == [f"{runs[0]}: shown in {own} as FINISHED", f"{runs[1]}: error: not there"]
    assert carry_out(["sync", str(runs[2]), "--uri", "sqlite:///theirs.db"]) == 0
    assert notes == [(own, "toy-bcfw-1", "FINISHED"), ("sqlite:///theirs.db", "toy-bcfw-3", "FINISHED")]


@pytest.mark.parametrize(("encoding", "shown"), [("ascii", "\\u03bb"), ("utf-8", "λ")])
def test_commands__print_an_escape_for_what_the_terminal_cannot_show(
    given, chain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, encoding: str, shown: str
) -> None:
    (tmp_path / "λ.txt").write_text("\tw=λ\n", encoding="utf-8")
    screen, out = io.TextIOWrapper(io.BytesIO(), encoding), tmp_path / "out.txt"
    monkeypatch.setattr(sys, "stdout", screen)
    for words in (("ls", chain.run), ("predict", chain.run, tmp_path / "λ.txt")):
        assert given(*words).code == 0
        screen.flush()
        assert shown in screen.buffer.getvalue().decode(encoding)  # type: ignore[attr-defined]
        screen.buffer.truncate(0)
    assert given("predict", chain.run, tmp_path / "λ.txt", "-o", out).code == 0
    assert out.read_bytes() == "\tw=λ\tQ\n".encode()
