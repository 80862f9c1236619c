"""Commands on runs that exist: found by discovery, dispatched before Hydra, errors in one line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOY = """
from gapwise.pipeline.cli import Command

def arguments(parser):
    parser.add_argument("word")

def run(asked):
    if asked.word == "bad":
        raise ValueError("expected a good word,\\ngot 'bad'")
    print("said", asked.word)
    return 0

COMMAND = Command("Says a word.", arguments, run)
"""


@pytest.fixture
def said(tmp_path: Path):
    """said(*words): the process `python -m pipeline *words`, where the folder of parts of one's own has a command `toy`."""
    own = tmp_path / "commands"
    own.mkdir()
    (own / "toy.py").write_text(TOY, encoding="utf-8")

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "GAPWISE_PARTS": str(tmp_path)}
        command = [sys.executable, "-m", "pipeline", *words]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    return run


def test_commands__are_found_carried_out_and_explained(said):
    done = said("toy", "hello")
    assert (done.returncode, done.stdout) == (0, "said hello\n"), done.stderr
    assert "usage: gapwise toy" in said("toy", "--help").stdout
    assert "Says a word." in said("--help").stdout


def test_commands__come_from_the_folder_that_a_word_before_them_names(said, tmp_path: Path):
    (tmp_path / "other" / "commands").mkdir(parents=True)
    (tmp_path / "other" / "commands" / "shout.py").write_text(TOY.replace('"said"', '"SAID"'), encoding="utf-8")
    assert said("parts=other", "shout", "hello").stdout == "SAID hello\n"
    assert said("shout", "hello").returncode == 2


def test_commands__refuse_in_one_line_without_traceback(said):
    done = said("toy", "bad")
    assert (done.returncode, done.stderr) == (1, "error: toy: expected a good word, got 'bad'\n")
    assert said("toy").returncode == 2


def test_commands__end_quietly_when_nobody_reads_on(said, tmp_path: Path):
    toy = tmp_path / "commands" / "toy.py"
    toy.write_text(TOY.replace('print("said", asked.word)', 'print("\\n".join(["said"] * 100_000))'), encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "GAPWISE_PARTS": str(tmp_path)}
    process = subprocess.Popen(
        [sys.executable, "-m", "pipeline", "toy", "hello"], env=environment, cwd=tmp_path, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stderr is not None
    with process:
        assert process.stdout.readline() == "said\n"
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 0


def test_output__that_cannot_be_written_is_an_error():
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment.pop("PYTHONUNBUFFERED", None)
    command = [sys.executable, "-m", "pipeline", "--version"]
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run(
            command, env=environment, stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=30
        )
    assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
    assert done.stderr.startswith("error: the output cannot be written: [Errno 28]")


def test_words__that_are_no_command_are_refused_with_those_there_are(said):
    done = said("lss")
    assert done.returncode == 2
    assert done.stderr.startswith(
        "error: lss: no such command (did you mean ls?); there are check, completion, diff, evaluate, explain, export, gc, "
    )
    assert said("--version").stdout.startswith("gapwise ")


def test_script__alone_says_what_there_is_and_starts_nothing(tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "GAPWISE_RUNS": str(tmp_path / "runs")}
    command = [sys.executable, "-m", "gapwise.pipeline.cli"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=30)
    assert (done.returncode, done.stdout.startswith("usage: ")) == (0, True), done.stderr
    assert not (tmp_path / "runs").exists()
