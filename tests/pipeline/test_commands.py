"""Commands that look at runs: ls, show, diff, completion; mostly on run directories written by hand."""

from __future__ import annotations

import contextlib
import gc
import io
import json
import os
import shlex
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fake_runs import ERROR, LOG, fake_run
from harms import flip
from in_process import Here

from gapwise.pipeline.cli import carry_out, known
from gapwise.pipeline.cli.ls import gap
from gapwise.pipeline.entry import main
from gapwise.pipeline.overview.find import named
from gapwise.pipeline.overview.standing import standing
from gapwise.pipeline.overview.states import RESUMABLE, STATES
from gapwise.pipeline.overview.words import ago, as_json, duration, number, size
from gapwise.pipeline.rundir import read_json, shell_line, write_json
from gapwise.storage.backend import UrlPath, location
from gapwise.storage.files import locked, remove

Said = Callable[..., str]
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Said:
    """said(*words): what the command prints; it must succeed."""

    def run(*words: object) -> str:
        code = carry_out([str(word) for word in words])
        out, err = capsys.readouterr()
        assert (code, err) == (0, "")
        return out

    return run


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real run directory, complete; tests that change it copy it."""
    folder = tmp_path_factory.mktemp("real")
    words = "P\tw=a\tw=b\nQ\tw=b\n\nQ\tw=c\n\nP\tw=a\nP\tw=c\nQ\tw=b\n\nQ\tw=b\nP\tw=d\n"
    (folder / "train.txt").write_text(words)
    asked = ["dataset=sequences_csv", f"dataset.file={folder}/train.txt", f"dataset.test_file={folder}/train.txt"]
    sandbox = Here(
        folder / "runs", [*asked, "path.eps=0.2", "tracking=none", "compute=serial", "checkpoint.every_seconds=0"]
    )
    sandbox.finish()
    return sandbox.run


def changed(run: Path, **parts: object) -> None:
    """Change the manifest of a run, checksum included."""
    manifest = read_json(run / "manifest.json", seal=True)
    write_json(run / "manifest.json", {**manifest, **parts}, seal=True)


def half_way(real: Path, root: Path, stage: str, log: str = "") -> Path:
    """The real run without its result and without what came from `stage` on; `log` ends the log of its invocation."""
    run = root / real.name
    shutil.copytree(real, run)
    (run / "result.json").unlink()
    stages = read_json(run / "manifest.json", seal=True)["stages"]
    before = dict(list(stages.items())[: [*stages].index(stage)])
    changed(run, stages=before)
    (file,) = run.glob("invocations/*/pipeline.log")
    lines = file.read_text().splitlines(keepends=True)
    cut = next(k for k, line in enumerate(lines) if f"DEBUG stage {stage}" in line)
    file.write_text("".join(lines[: cut + 1]) + log)
    for old in (run / "manifest.json", run / "state" / "HEAD.json"):
        os.utime(old, (1.7e9, 1.7e9))
    return run


@contextlib.contextmanager
def held(run: Path) -> Iterator[None]:
    with locked(run / "lock"):
        yield


def test_standing__of_a_real_run_is_complete_with_its_numbers(real: Path) -> None:
    run = standing(real)
    result = json.loads((real / "result.json").read_text())
    facts = run.facts()
    assert (run.state, run.why, run.holder) == ("complete", "", None)
    assert (facts["lambdas"], facts["solve_status"]) == (len(result["path"]), result["status"])
    assert facts["gap"] == result["verify"]["max_gap"]
    assert facts["best_lambda"] == result["evaluate"]["best_lambda"]


def test_standing__of_a_killed_run_is_interrupted_and_of_a_held_one_running(real: Path, tmp_path: Path) -> None:
    run = half_way(real, tmp_path, "solve", LOG.splitlines(keepends=True)[-1])
    (run / "lock").write_text("process 999999999 on host nowhere-else (since 2026-11-21 10:00:00)\n")
    assert standing(run).state == "silent", "nobody here can tell, and its log is a day old"
    (file,) = run.glob("invocations/*/pipeline.log")
    file.write_text(file.read_text() + time.strftime("%Y-%m-%d %H:%M:%S,000 INFO λ 13\n"))
    assert (standing(run).state, standing(run).why) == (
        "running", "process 999999999 on host nowhere-else, which cannot be looked up from here",
    )  # fmt: skip
    file.write_text("".join(file.read_text().splitlines(keepends=True)[:-1]))
    (run / "lock").write_text(f"process 999999999 on host {socket.gethostname()} (since 2026-11-21 10:00:00)\n")
    state = standing(run)
    assert (state.state, state.why, state.stage) == ("interrupted", "killed in solve", "solve")
    assert state.commit is not None
    assert state.facts()["lambda"] == state.commit["counts"]["lam"]
    with held(run):
        state = standing(run)
        facts = state.facts()
        assert (state.state, state.stage, facts["lambdas"], facts["lambda"], facts["gap"]) == (
            "running",
            "solve",
            12,
            27.0,
            "7.1e-02",
        )
    assert standing(run).state == "interrupted"


def test_standing__tells_signals_errors_and_ends_that_were_asked_for_apart(real: Path, tmp_path: Path) -> None:
    stamp = "2026-11-21 10:00:09,100"
    signal = f"{stamp} WARNING Interrupted; progress saved: featurize. Rerun the same command to resume.\n"
    assert standing(half_way(real, tmp_path / "a", "solve", signal)).why == "by a signal"
    state = standing(half_way(real, tmp_path / "b", "solve", ERROR))
    assert (state.state, state.why) == ("failed", "ValueError: dataset.file: train.txt is empty")
    solved = half_way(real, tmp_path / "c", "verify")
    (file,) = solved.glob("invocations/*/pipeline.log")
    file.write_text(file.read_text().rsplit("\n", 2)[0] + "\n")
    state = standing(solved)
    assert (state.state, state.why, state.stage, state.lambdas) == (
        "partial",
        "ended after solve",
        "verify",
        standing(real).facts()["lambdas"],
    )
    again = half_way(real, tmp_path / "d", "solve", f"{ERROR}{stamp} DEBUG stage solve\n")
    assert standing(again).state == "interrupted", "the error was that of an earlier stage of the log"


def metrics_cut(run: Path) -> None:
    whole = (run / "metrics.json").read_bytes()
    (run / "metrics.json").write_bytes(whole[: len(whole) // 2])


def another_digit(run: Path) -> None:
    text = (run / "metrics.json").read_text()
    (run / "metrics.json").write_text(text.replace("0.", "1.", 1))


def gone(name: str) -> Callable[[Path], None]:
    return lambda run: remove(run / name)


@pytest.mark.parametrize(
    ("harm", "why"),
    [
        (metrics_cut, "metrics.json has changed since the run wrote it"),
        (another_digit, "metrics.json has changed since the run wrote it"),
        (gone("metrics.json"), "metrics.json is missing"),
        (gone("verify.json"), "verify.json is missing"),
        (gone("predictions.npz"), "predictions.npz is missing"),
        (gone("path.zarr"), "path.zarr is missing"),
        (gone("path.zarr/weights/c/0/0"), "path.zarr: a chunk of weights is missing"),
        (gone("figures/path.png"), "figures/path.png is missing"),
    ],
)
def test_commands__say_of_a_harmed_run_what_the_same_command_would_make_again(
    said: Said, real: Path, tmp_path: Path, harm: Callable[[Path], None], why: str
) -> None:
    run = tmp_path / real.name
    shutil.copytree(real, run)
    assert standing(run).state == "complete"
    harm(run)
    (listed,) = json.loads(said("ls", "--root", tmp_path, "--json"))
    assert (listed["state"], listed["why"]) == ("damaged", why)
    assert why in said("ls", "--root", tmp_path)
    shown = said("show", run)
    assert shown.startswith(f"{run.name}: damaged, resumable ({why})\n")
    assert "   go on  the command that began it: " in shown
    assert said("diff", run, real).endswith(f"{run.name} is damaged: {why}\n")
    with held(run):
        assert standing(run).state == "running", "its process may be making the file"


def damage(root: Path) -> dict[str, str]:
    """Folders that no command may stumble over, and the state of each."""
    (root / "photos").mkdir()
    (root / "web").mkdir()
    (root / "web" / "manifest.json").write_text('{"name": "a web page"}')
    (root / "list").mkdir()
    (root / "list" / "manifest.json").write_text("[1]")
    (root / "features").mkdir()
    (root / "sweeps").mkdir()
    (root / ".hydra").mkdir()
    (root / "file.txt").write_text("x")
    flip(fake_run(root, "flipped-1") / "manifest.json")
    (fake_run(root, "cut-1") / "manifest.json").write_text('{"key": ')
    (fake_run(root, "lost-1") / "manifest.json").unlink()
    flip(fake_run(root, "result-1") / "result.json")
    changed(fake_run(root, "old-1"), format_version=1)
    changed(fake_run(root, "odd-1", done=("featurize",)), stages=["featurize"], science=None)
    head = fake_run(root, "head-1", done=("featurize",)) / "state" / "HEAD.json"
    head.write_text("{}")
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
    for name in ("features", "sweeps", "papers", "practice", "mlruns"):  # what commands and MLflow make there
        (tmp_path / name).mkdir(exist_ok=True)
    states = {facts["name"]: facts["state"] for facts in json.loads(said("ls", "--root", tmp_path, "--json"))}
    assert states == {**expected, "toy-bcfw-00000001": "complete"}
    text = said("ls", "--root", tmp_path)
    assert "toy-bcfw-00000001  complete       2 λ's · CONVERGED" in text
    assert text.splitlines()[-1].startswith(f"{len(states)} in {tmp_path}: 1 complete, ")
    for name in states:
        assert name in said("show", "--brief", tmp_path / name) if (tmp_path / name / "lock").exists() else True


def test_ls__lists_two_hundred_runs(said: Said, tmp_path: Path) -> None:
    for number_ in range(200):
        done = None if number_ % 4 else ("featurize", "init_path")
        fake_run(tmp_path, f"toy-bcfw-{number_:08d}", done=done, generations=(4,))
    runs = json.loads(said("ls", "--root", tmp_path, "--json"))
    assert [facts["state"] for facts in runs].count("complete") == 150
    assert len(said("ls", "--root", tmp_path).splitlines()) == 202
    only = said("ls", "--root", tmp_path, "--state", "interrupted").splitlines()
    assert len(only) == 52
    assert "next: solve · at λ 5 (15.9)" in only[1]


def test_ls__imports_nothing_heavy(tmp_path: Path) -> None:
    fake_run(tmp_path)
    fake_run(tmp_path, "toy-bcfw-00000002", done=("featurize",))
    code = (
        "import sys; from gapwise.pipeline.cli import carry_out; "
        f"carry_out(['ls', '--root', {str(tmp_path)!r}]); carry_out(['show', '--root', {str(tmp_path)!r}]); "
        "print([m for m in ('numpy', 'numba', 'zarr', 'xarray', 'hydra', 'omegaconf', 'mlflow') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_commands__read_object_stores(said: Said, tmp_path: Path, cache: Path) -> None:
    root = UrlPath(f"memory://commands-{tmp_path.name}")
    for run in (fake_run(tmp_path), fake_run(tmp_path, "toy-bcfw-00000002", done=("featurize", "init_path"))):
        for file in (path for path in run.rglob("*") if path.is_file() and path.name != "lock"):
            location(f"{root}/{file.relative_to(tmp_path)}").write_bytes(file.read_bytes())
    runs = json.loads(said("ls", "--root", root, "--json"))
    assert [(facts["state"], facts["lambdas"]) for facts in runs] == [("complete", 2), ("interrupted", 6)]
    with locked(root / "toy-bcfw-00000002" / "lock"):
        assert said("show", "--root", root).startswith("toy-bcfw-00000002: running\n held by  process ")
    assert "path.eps" not in said("diff", "00000001", "00000002", "--root", root)


def test_show__says_who_holds_a_run_where_it_is_and_when_it_committed(said: Said, real: Path, tmp_path: Path) -> None:
    run = half_way(real, tmp_path, "solve", LOG.splitlines(keepends=True)[-1])
    assert said("show", "--root", tmp_path) == f"no run is running; resumable: {run.name}\n"
    text = said("show", "--brief", run)
    assert text.startswith(f"{run.name}: interrupted, resumable (killed in solve)\n")
    assert "   go on  the command that began it: " in text
    with held(run):
        text = said("show", "--root", tmp_path)
        (facts,) = json.loads(said("show", "--root", tmp_path, "--json"))
    assert text.startswith(f"{run.name}: running\n held by  process ")
    assert "  stages  in solve, for " in text
    assert "      at  λ #12 = 2.7e+01 · epoch 1 · gap 7.1e-02, target 9e-02 · 3517 oracle calls · said " in text
    newest = read_json(run / "state" / "HEAD.json")["generation"]
    assert f"  commit  number {newest} at λ " in text
    assert (facts["at"]["passes"], facts["commit"]["generation"]) == ("1", newest)
    with held(run):  # nobody has taken the lock
        pass


def test_show__repeats_the_summary_and_says_what_was_asked(said: Said, real: Path) -> None:
    text = said("show", real)
    for words in (
        "problem  sequences_csv: 4 training examples, ", "verify  every certificate holds, for every λ > 0",
        "next  path.eps=0.1 certifies half the gap (a new run; it reuses these features)",
        "path  rule two_sided · descend paper · eps 0.2", "time  ",
    ):  # fmt: skip
        assert words in text, words
    assert text.splitlines()[-1] == f"run: {real}"
    shown = json.loads(said("show", real.name[:-2], "--root", real.parent, "--json"))
    assert shown["result"]["status"] == "CONVERGED"
    assert shown["manifest"]["key"] == shown["key"]


def test_diff__says_which_keys_and_which_results_differ(said: Said, tmp_path: Path) -> None:
    first = fake_run(tmp_path)
    other = fake_run(tmp_path, "toy-bcfw-00000002", path_eps=0.05, seed=1)
    result = read_json(other / "result.json", seal=True)
    result["path"][1]["primal"], result["evaluate"]["test_loss"] = 0.7, 0.15
    write_json(other / "result.json", result, seal=True)
    differ = json.loads(said("diff", first, other, "--json"))
    assert differ["configuration"] == {"path.eps": [0.1, 0.05], "seed": [0, 1]}
    assert differ["results"] == {
        "evaluate.test_loss": [0.2, 0.15], "path primal: 1 of 2 differ, first at λ 2": [0.5, 0.7],
    }  # fmt: skip
    text = said("diff", "00000001", "00000002", "--root", tmp_path)
    assert "  path.eps " in text
    assert text.endswith("machine and versions: the same\ncost: the same\n")
    assert "configuration and data: the same" in said("diff", first, first)


def test_named__is_a_path_or_the_beginning_of_a_name_or_key(tmp_path: Path, capsys) -> None:
    first, other = fake_run(tmp_path, "toy-bcfw-00000001"), fake_run(tmp_path, "toy-bcfw-0000ffff")
    assert named(str(first), None) == first
    assert named("0000ffff", str(tmp_path)) == named("toy-bcfw-0000f", str(tmp_path)) == other
    for word, message in (("toy", "2 runs begin with that: toy-bcfw-00000001, "), ("none", "has such a name or key")):
        assert carry_out(["show", word, "--root", str(tmp_path)]) == 1
        assert message in capsys.readouterr().err
    assert carry_out(["show", str(tmp_path)]) == 1
    assert "expected a run directory; gapwise ls lists the runs" in capsys.readouterr().err
    (other / "summary.json").write_text("{}")
    for word, message in (
        ("", "expected a run: its directory, or"),
        (str(other), "is a sweep; gapwise report shows it"),
    ):
        with pytest.raises(ValueError, match=message):
            named(word, str(tmp_path))
    assert carry_out(["ls", "--root", str(tmp_path / "gone")]) == 1
    assert "name it with --root or $GAPWISE_RUNS" in capsys.readouterr().err


def completed(line: str, runs: Path, shell: Path) -> list[str]:
    """What bash offers at the end of `line`, by the script that the command prints."""
    ask = f"COMP_LINE={shlex.quote(line)}; COMP_POINT=${{#COMP_LINE}}; COMP_TYPE=9; COMP_WORDBREAKS=' =:'"
    env = {"GAPWISE_RUNS": str(runs), "PATH": f"{shell.parent}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    code = f'source {shell.parent}/script; {ask}; _python_argcomplete gapwise; printf "%s\\n" "${{COMPREPLY[@]}}"'
    done = subprocess.run(["bash", "-c", code], env=env, capture_output=True, text=True, check=True)
    return sorted(word.strip() for word in done.stdout.splitlines() if word.strip())


def test_completion__knows_every_command_option_run_and_choice(said: Said, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    fake_run(runs, "toy-bcfw-00000001")
    (runs / "no-run").mkdir()
    shell = tmp_path / "bin" / "gapwise"
    shell.parent.mkdir()
    shell.write_text(f'#!/bin/sh\nexec {sys.executable} -m gapwise.pipeline.cli "$@"\n')
    shell.chmod(0o755)
    (shell.parent / "script").write_text(said("completion", "bash"))
    assert completed("gapwise g", runs, shell) == ["gc"]
    assert {*known()} <= {*completed("gapwise ", runs, shell)}
    assert {"--root", "--yes", "--json"} <= {*completed("gapwise gc --", runs, shell)}
    assert completed("gapwise show toy-b", runs, shell) == ["toy-bcfw-00000001"]
    assert completed("gapwise show ", runs, shell) == ["toy-bcfw-00000001"]
    assert completed("gapwise diff toy-bcfw-00000001 t", runs, shell) == ["toy-bcfw-00000001"]
    assert completed("gapwise show --root /nowhere toy-b", runs, shell) == []
    assert completed(f"gapwise ls --root {tmp_path}/ru", runs, shell) == [f"{runs}/"]
    assert {"bcfw", "accelerated"} <= {*completed("gapwise solver=", runs, shell)}
    assert completed("gapwise completion ", runs, shell) == ["bash", "fish", "zsh"]
    for name in ("zsh", "fish"):
        assert f"--shell-completion install={name}" in said("completion", name)


def test_status__is_refused_with_what_does_its_work_now() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "gapwise.pipeline.cli", "status"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: status: no such command any more; gapwise show does its work\n"


@pytest.mark.parametrize(("kind", "said"), [("upper-bounded", "0.1 (upper-bounded)"), ("exact", "0.1"), (None, "0.1")])
def test_ls__says_which_gaps_are_not_exact(kind: str | None, said: str) -> None:
    assert gap({"gap": 0.1, "certainty": kind}) == said


def test_words__are_short() -> None:
    assert [duration(s) for s in (0, 42, 99, 100, 7000, 9000, 200_000)] == [
        "0 s",
        "42 s",
        "99 s",
        "1.7 min",
        "117 min",
        "2.5 h",
        "2.3 days",
    ]
    assert [ago(None), ago(10.0, 52.0), ago(52.0, 10.0)] == ["–", "42 s ago", "0 s ago"]
    assert ago(7200.0, 0.0) == "2.0 h ahead", "a clock was set back"
    assert [size(b) for b in (12, 12_345, 12_345_678, 3 * 10**9)] == ["12 B", "12.3 kB", "12.3 MB", "3.0 GB"]
    assert [number(v) for v in (None, "inf", 0.12345, True, 3)] == ["–", "inf", "0.123", "True", "3"]
    assert [number(v) for v in ("nan", float("nan"))] == ["–", "–"], "of a method without a dual point"
    assert json.loads(as_json({"a": float("inf"), "b": (1,)})) == {"a": "inf", "b": [1]}
    assert {*RESUMABLE} < {*STATES}


class FakeTracker:
    """Notes what it was asked to show."""

    def __init__(self, uri: str, where: Path, notes: list[tuple[str, str, str]]) -> None:
        self.uri, self.where, self.notes = uri, where, notes

    def sync(self, status: str) -> None:
        if self.where.name.endswith("2"):
            raise OSError(f"MLflow at {self.uri}: not there")
        self.notes.append((self.uri, self.where.name, status))


def test_sync__shows_runs_in_the_users_own_store_and_goes_on_past_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    notes: list[tuple[str, str, str]] = []
    monkeypatch.setattr(
        "gapwise.pipeline.tracking.mlflow.open_tracker",
        lambda options, directory: FakeTracker(options.uri, directory.path, notes),
    )
    monkeypatch.setenv("GAPWISE_RUNS", str(tmp_path))
    monkeypatch.delenv("DVC_ROOT", raising=False)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://mine")
    own, done = f"sqlite:///{tmp_path}/mlflow.db", {3: ("featurize",)}
    shown, unshown, begun, theirs = (fake_run(tmp_path, f"toy-bcfw-{k}", done=done.get(k)) for k in (1, 2, 3, 4))
    write_json(shown / "tracking.json", {"uri": own, "run_id": "1"})
    for run, uri in ((begun, "http://mine"), (theirs, "sqlite:///theirs.db")):
        hydra = run / "invocations" / "2026-11-21T10-00-00" / ".hydra"
        hydra.mkdir()
        (hydra / "config.yaml").write_text(f"tracking:\n  uri: {uri}\n")
    assert carry_out(["sync", *map(str, (shown, unshown, begun, theirs))]) == 1
    assert notes == [(own, shown.name, "FINISHED"), ("http://mine", begun.name, "KILLED")]
    said = capsys.readouterr().out.splitlines()
    assert said[0] == f"{shown}: shown in {own} as FINISHED"
    assert said[1] == f"{unshown}: error: MLflow at {own}: not there"
    assert "such as --uri sqlite:///theirs.db" in said[3]
    assert carry_out(["sync", str(theirs), "--uri", "sqlite:///theirs.db"]) == 0
    assert notes.pop() == ("sqlite:///theirs.db", theirs.name, "FINISHED")
    capsys.readouterr()
    with held(begun):
        assert carry_out(["sync", str(begun), "--uri", "sqlite:///c"]) == 1
    assert "is in use by process" in capsys.readouterr().out
    assert notes[2:] == []


def test_command_of_a_run__is_shown_as_it_is_typed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        sys, "orig_argv", ["/venv/bin/python3", "/venv/bin/gapwise", "path.eps=0.1", "dataset.root=a b"]
    )
    assert shell_line() == "gapwise path.eps=0.1 'dataset.root=a b'"
    monkeypatch.setattr(sys, "orig_argv", ["python", "-m", "gapwise", "seed=1"])
    assert shell_line() == "python -m gapwise seed=1"


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "utf-8"])
@pytest.mark.parametrize("words", [("ls", "--root"), ("show",), ("predict",)])
def test_commands__print_an_escape_for_what_the_terminal_cannot_show(
    real: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], encoding: str
) -> None:
    (tmp_path / "λ.txt").write_text("\tw=λ\n", encoding="utf-8")
    more = {"ls": [real.parent], "show": [real], "predict": [real, tmp_path / "λ.txt"]}[words[0]]
    screen = io.TextIOWrapper(io.BytesIO(), encoding)
    monkeypatch.setattr(sys, "stdout", screen)
    monkeypatch.setattr(sys, "argv", ["gapwise", *words, *map(str, more)])
    monkeypatch.setattr(gc, "set_threshold", lambda *given: None)
    assert main() == 0
    assert {"utf-8": "λ"}.get(encoding, "\\u03bb") in screen.buffer.getvalue().decode(encoding)
    out = tmp_path / "out.txt"
    if words == ("predict",):
        sys.argv += ["-o", str(out)]
        assert main() == 0
        assert out.read_bytes() == "\tw=λ\tQ\n".encode()
