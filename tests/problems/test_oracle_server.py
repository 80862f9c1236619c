"""An oracle in any language: a program that answers lines of JSON, is started again, and named when it fails."""

from __future__ import annotations

import gc
import os
import shlex
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from equality import assert_same_path
from memory_sink import read
from solved import options_of, path_of, solved

from gapwise.pipeline.data import contents
from gapwise.stages.datasets import DataError, open_dataset
from gapwise.stages.problems import build, server
from gapwise.stages.problems.oracle_server import ServerOracle

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES, SUPPORT = ROOT / "tests" / "examples", ROOT / "tests" / "support"
GOOD = f"{sys.executable} {EXAMPLES}/oracle_server.py"


@pytest.fixture
def bits(tmp_path: Path) -> Path:
    """A folder with the data of the example."""
    folder = tmp_path / "bits"
    folder.mkdir()
    for split in ("train", "test"):
        rng = np.random.default_rng(len(split))
        lines = []
        for _ in range(8):
            y = (np.cumsum(rng.random(4) < 0.3) + rng.integers(2)) % 2
            numbers = 2.0 * y - 1.0 + rng.normal(size=4)
            lines.append(" ".join(["".join(map(str, y)), *map(repr, numbers.tolist())]))
        (folder / f"{split}.txt").write_text("\n".join(lines) + "\n")
    return folder


@pytest.fixture(autouse=True)
def _ended():
    """No program outlives its object."""
    yield
    gc.collect()


def bad(how: str, folder: Path) -> str:
    return f"{sys.executable} {SUPPORT}/bad_server.py '{how}' {folder} {EXAMPLES}"


def reader(command: str, **options):
    return open_dataset("oracle_server", {"command": command, "files": [], **options})


def problem_of(command: str):
    sink, facts = read(reader(command))
    return build("python_oracle", sink.arrays("train"), facts)


def test_server__that_dies_again_and_again_leaves_the_same_bits(bits: Path, tmp_path: Path) -> None:
    path, options = path_of(eps=0.2), options_of()
    for name, command in (("calm", f"{GOOD} {bits}"), ("dies", bad("dies", bits))):
        solved(problem_of(command), tmp_path / name, options, path)
    assert_same_path(tmp_path / "dies", tmp_path / "calm")


def test_server__is_started_again_and_asked_again(bits: Path) -> None:
    oracle = ServerOracle("train", bad("dies", bits))
    answers = [oracle.max_oracle(i % 8, np.array([0.1, 0.2])) for i in range(100)]
    assert answers == answers[8:16] * 12 + answers[:4]
    assert oracle.server.starts == 3


WRONG = {
    "always dies": r"train block 0: .*ended with 7 without an answer \(its last words: out of memory\); started 3 times",
    "babbles": r'train block 0: .* to {"ask": "truth", "block": 0} it answered reading data \.\.\.; expected one line',
    "float": r"train block 0: .*integers 0, ..., 1, got float64",
}


@pytest.mark.parametrize("how", WRONG)
def test_server__whose_answer_is_none_is_an_error_that_names_the_block(how: str, bits: Path) -> None:
    with pytest.raises(DataError, match=WRONG[how]):
        read(reader(bad(how, bits)))


def test_server__that_never_answers_is_given_up(bits: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GAPWISE_ORACLE_SECONDS", "0.25")
    with pytest.raises(DataError, match=r"train block 0: .*no answer in 0\.25 s \(GAPWISE_ORACLE_SECONDS=… .*3 times"):
        read(reader(bad("silent", bits)))
    monkeypatch.setenv("GAPWISE_ORACLE_SECONDS", "soon")
    with pytest.raises(DataError, match="GAPWISE_ORACLE_SECONDS: expected a number of seconds > 0, got 'soon'"):
        read(reader(f"{GOOD} {bits}"))


ODD = {
    """echo '{"answer":1}'; sleep 0.1; echo '{"answer":1}'; sleep 9""": r'it had already written {"answer":1}; expected',
    """echo '{"answer":1,"block":8}'""": r'to {"ask": "loss", "block": 7} it answered about block 8; expected',
    "exec yes | tr -d '\\n'": r"wrote 1,0.* bytes without the end of a line; started 3 times",
}


@pytest.mark.parametrize("script", ODD)
def test_server__that_breaks_the_protocol_is_told_apart(script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "LONGEST", 1_000_000)
    asked = server.Server(shlex.join(["sh", "-c", f"read q; echo {{}}; read q; {script}"]), {"ask": "hello"})

    def twice() -> None:
        asked.ask({"ask": "loss", "block": 7})
        time.sleep(0.25)  # for what comes late
        asked.ask({"ask": "loss", "block": 7})

    with pytest.raises(server.ServerError, match=ODD[script]) as refused:
        twice()
    assert "\n" not in str(refused.value)


def test_server__ends_with_its_object(bits: Path) -> None:
    oracle = ServerOracle("train", f"{GOOD} {bits}")
    pid = oracle.server._program.process.pid
    os.kill(pid, 0)
    del oracle
    gc.collect()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_reader__knows_the_program_and_the_declared_files(bits: Path, tmp_path: Path, caplog) -> None:
    command = f"{GOOD} {bits}"
    files = [str(bits / "train.txt"), str(bits / "test.txt")]
    files_by_name = reader(command, files=files).files()
    assert {file.name for file in files_by_name.values()} == {
        Path(sys.executable).name,
        "oracle_server.py",
        "train.txt",
        "test.txt",
    }
    before = contents(files_by_name, tmp_path)
    (bits / "test.txt").write_text((bits / "train.txt").read_text())
    assert contents(files_by_name, tmp_path) != before
    with pytest.raises(DataError, match="which is no file"):
        reader(command, files=["nowhere.txt"]).files()
    read(reader(command, files=files))
    assert "names no files" not in caplog.text
    read(reader(command))
    assert "dataset.files names no files" in caplog.text
