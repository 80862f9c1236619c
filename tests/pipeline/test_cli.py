"""Commands on runs that exist: found by discovery, dispatched before Hydra, errors in one line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gapwise.pipeline import entry


@pytest.mark.parametrize(
    ("reader", "code", "says"), [("full", 1, "error: the output cannot be written: [Errno 28]"), ("gone", 0, "")]
)
def test_output__that_cannot_be_written_is_an_error_unless_nobody_reads_it(reader: str, code: int, says: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    if reader == "full":
        out = os.open("/dev/full", os.O_WRONLY)
    else:
        read, out = os.pipe()
        os.close(read)
    command = [sys.executable, "-m", "pipeline", "--version"]
    done = subprocess.run(command, env=environment, stdout=out, stderr=subprocess.PIPE, text=True, check=False)
    os.close(out)
    assert done.returncode == code, done.stderr
    assert done.stderr.startswith(says)
    assert done.stderr.count("\n") == code


def test_words__that_are_no_command_are_refused_with_those_there_are(given) -> None:
    done = given("lss")
    assert done.code == 2
    assert done.err.startswith("error: lss: no such command (did you mean ls?); there are check, ")
    assert " (did you mean --help?)" in given("help").err
    assert given("--eps", "0.1").err.endswith("error: keys have no dashes, as in path.eps=0.1; --help lists them\n")
    assert given("status").err == "error: status: was removed; gapwise ls --state running\n"
    assert given("completion").err.startswith("error: completion: was removed; gapwise --help lists ")
    assert given("--version").out.startswith("gapwise ")


def test_why__says_what_would_be_run_and_which_keys_differ_and_starts_nothing(given, chain) -> None:
    before = sorted(chain.root.rglob("*"))
    words = [*chain.words, f"run.root={chain.root}", "--why"]
    same, other = given(*words), given(*words, "path.eps=0.1", "seed=3")
    assert (same.code, other.code) == (0, 0), same.err + other.err
    assert same.out.startswith("this run is there, complete: it would be shown\nfeatures: reused: ")
    assert other.out.startswith("a new run, which would do featurize, init_path, solve, ")
    assert f"nearest run: {chain.run.name}, complete; it differs in\n  path.eps: 0.05 there, 0.1 here\n" in other.out
    assert "  seed: 0 there, 3 here\n" in other.out
    assert sorted(chain.root.rglob("*")) == before
    refused = given(*words, "sweep.cv=2")
    assert (refused.code, refused.err.startswith("error: --why: explains one run")) == (2, True)


def test_script__alone_says_what_there_is_and_starts_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    codes: list[int] = []
    monkeypatch.setattr(entry, "leave", lambda code: codes.append(code))
    monkeypatch.setattr(sys, "argv", ["gapwise"])
    monkeypatch.setenv("GAPWISE_RUNS", str(tmp_path / "runs"))
    entry.script()
    assert codes == [0]
    assert capsys.readouterr().out.startswith("usage: ")
    assert not (tmp_path / "runs").exists()
