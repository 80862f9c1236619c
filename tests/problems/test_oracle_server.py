"""An oracle in any language: a program that answers lines of JSON, is started again, and named when it fails."""

from __future__ import annotations

import gc
import math
import os
import shlex
import shutil
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from equality import MEASURED, assert_same_path
from memory_sink import read
from real_runs import Sandbox
from solved import options_of, path_of, solved

from gapwise.pipeline.data import contents
from gapwise.stages.datasets import DataError, FeatureMap, OptionError, open_dataset
from gapwise.stages.problems import build, server
from gapwise.stages.problems.certainty import accuracy_of, certainty_of
from gapwise.stages.problems.oracle_server import ServerOracle
from gapwise.stages.problems.python_oracle import decoded
from gapwise.storage.results import read_path

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
    "list": r"train block 0: .* it answered \[1, 2\]; expected one line of JSON",
    "no answer": r"""train block 0: .*its answer to 'truth' has no "answer": \['labels'\]""",
    "error": r"train block 0: .*bad_server.py .*: no such block",
    "float": r"train block 0: .*integers 0, ..., 1, got float64",
    "greets differently": r'train block 0: .*was started again and says {.*"d": 3.*}, but said',
    "no sizes": r"says d = None in its greeting; expected an integer >= 1",
}


@pytest.mark.share(0.4)
@pytest.mark.parametrize("how", WRONG)
def test_server__whose_answer_is_none_is_an_error_that_names_the_block(how: str, bits: Path) -> None:
    with pytest.raises(DataError, match=WRONG[how]):
        read(reader(bad(how, bits)))


def test_server__that_is_approximate_may_declare_its_accuracy(bits: Path) -> None:
    problem = problem_of(bad('{"approximate": true, "accuracy": 0.8}', bits))
    assert (certainty_of(problem), accuracy_of(problem)) == ("estimate", 0.8)
    for greeting, value in (('{"approximate": true, "accuracy": 1.5}', "1.5"), ('{"accuracy": 0.8}', "0.8")):
        expected = rf'says accuracy = {value} in its greeting; expected a number in \(0, 1\], and only with "approx'
        with pytest.raises(server.ServerError, match=expected):
            ServerOracle("train", bad(greeting, bits))


def test_server__may_return_several_labellings(bits: Path) -> None:
    problem, theta = problem_of(f"{GOOD} {bits}"), np.array([0.3, -0.2])
    assert problem.lists
    labels, losses = np.zeros((3, 4), problem.truth.dtype), np.zeros(3)
    for i in range(problem.n):
        assert problem.max_oracles(i, theta, 3, labels, losses, ()) == 3
        worth = [loss + problem.value(i, theta, y) for y, loss in zip(labels, losses, strict=True)]
        y = np.empty(4, problem.truth.dtype)
        assert problem.max_oracle(i, theta, y, ()) == losses[0]
        assert labels[0].tolist() == y.tolist()
        assert (np.diff(worth) <= 1e-12).all()
        flips = [np.where(np.arange(4) == t, 1 - y, y) for t in range(4)]
        ranked = sorted((problem.loss(i, z) + problem.value(i, theta, z) for z in flips), reverse=True)
        np.testing.assert_allclose(worth[1:], ranked[:2])
    plain = problem_of(bad('{"answers": []}', bits))
    assert not plain.lists


def test_server__that_never_answers_is_given_up(bits: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GAPWISE_ORACLE_SECONDS", "0.25")
    with pytest.raises(DataError, match=r"train block 0: .*no answer in 0\.25 s \(GAPWISE_ORACLE_SECONDS=… .*3 times"):
        read(reader(bad("silent", bits)))
    monkeypatch.setenv("GAPWISE_ORACLE_SECONDS", "soon")
    with pytest.raises(DataError, match="GAPWISE_ORACLE_SECONDS: expected a number of seconds > 0, got 'soon'"):
        read(reader(f"{GOOD} {bits}"))


def test_server__that_cannot_be_started_is_named() -> None:
    with pytest.raises(DataError, match=r"nowhere/oracle --x: cannot be started: No such file"):
        read(reader("nowhere/oracle --x"))
    for command in ("", "'unbalanced"):
        with pytest.raises(OptionError, match=r"dataset\.command: "):
            reader(command)


ONE = '{"answer":1}'
ODD = {
    f"echo '{ONE}'; echo '{ONE}'; sleep 9": r'it (answered more than a line:|had already written) {"answer":1}; expected',
    f"echo '{ONE}'; sleep 0.1; echo '{ONE}'; sleep 9": r'it had already written {"answer":1}; expected one line',
    """echo '{"answer":1,"block":8}'""": r'to {"ask": "loss", "block": 7} it answered about block 8; expected',
    """printf '%s\\n' '{"error":"a\\nb \\u001b[31m"}'""": r"sh -c .*: a b \[31m$",
    "head -c 300000 /dev/zero | tr '\\0' '['; echo": r"it answered \[{200} …; expected one line",
    "printf '\\377\\376\\n'": r"it answered \ufffd\ufffd; expected one line",
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


def test_server__that_is_lost_is_counted_and_its_complaints_are_forgotten(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The program answers once after its greeting, and complains at length."""
    monkeypatch.setattr(server, "COMPLAINTS", 1000)
    script = "read q; echo {}; read q; head -c 5000 /dev/zero >&2; echo '{\"answer\":1}'"
    asked = server.Server(shlex.join(["sh", "-c", script]), {"ask": "hello"})
    for _ in range(12):
        assert asked.ask({"ask": "loss", "block": 0}) == {"answer": 1}
        assert os.fstat(asked._program.complaints.fileno()).st_size == 0
    assert asked.starts == 12
    assert [record.message[-2:] for record in caplog.records] == [" 1", "10"]


GREETINGS = {
    '"approximate":"no"': r"says approximate = 'no' in its greeting; expected true or false",
    '"answers":7': r"says answers = 7 in its greeting; expected a list of questions",
}


@pytest.mark.parametrize("said", GREETINGS)
def test_greeting__is_read_strictly(said: str) -> None:
    command = f"""sh -c 'read q; echo "$0"; read q' '{{"blocks":1,"d":1,"labels":2,{said}}}'"""
    with pytest.raises(server.ServerError, match=GREETINGS[said]):
        ServerOracle("train", command)


def test_server__ends_with_its_object(bits: Path) -> None:
    oracle = ServerOracle("train", f"{GOOD} {bits}")
    pid = oracle.server._program.process.pid
    os.kill(pid, 0)
    del oracle
    gc.collect()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_server__gets_the_bits_of_every_number(bits: Path) -> None:
    """A program that answers with the numbers it read: theta arrives and features return exactly."""
    oracle = ServerOracle("train", f"{GOOD} {bits}")
    x = [float(number) for number in (bits / "train.txt").read_text().splitlines()[3].split()[1:]]
    assert oracle.features(3, np.array([0, 1, 0, 0])).tolist() == [x[1], 1]
    assert oracle.least_loss(0) == 0.25
    assert oracle.coordinates(0) is None


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


def test_model__predicts_a_new_split(bits: Path) -> None:
    _, facts = read(reader(f"{GOOD} {bits}"))
    shutil.copy(bits / "test.txt", bits / "new.txt")
    meta = {**facts, "dataset": "oracle_server", "structure": "python_oracle"}
    new = FeatureMap(meta, {}).encode("new")
    labels, start = decoded(new.arrays, meta, np.array([1.0, 0.0]))
    lines = (bits / "new.txt").read_text().splitlines()
    assert labels[start[2] : start[3]].tolist() == [int(float(number) > 0.0) for number in lines[2].split()[1:]]


def test_perl__answers_as_python_does(bits: Path) -> None:
    if shutil.which("perl") is None or os.system("perl -MJSON::PP -e 1 2>/dev/null"):
        pytest.skip("there is no perl with JSON::PP on this machine")
    rng = np.random.default_rng(0)
    ours, theirs = (ServerOracle("test", f"{start} {bits}") for start in (GOOD, f"perl {EXAMPLES}/oracle_server.pl"))
    for i in range(8):
        theta, y = rng.normal(size=2), rng.integers(2, size=4)
        assert [ours.max_oracle(i, theta), ours.decode(i, theta)] == [
            theirs.max_oracle(i, theta),
            theirs.decode(i, theta),
        ]
        np.testing.assert_allclose(ours.features(i, y), theirs.features(i, y), rtol=1e-12)
        assert math.isclose(ours.loss(i, y), theirs.loss(i, y), rel_tol=1e-12)


@pytest.mark.long
@pytest.mark.slow
def test_run__on_workers_whose_servers_die_has_the_bits_of_an_undisturbed_one(bits: Path, tmp_path: Path) -> None:
    """One program per worker; most of the time they are being started again."""
    words = ["dataset=oracle_server", "path.eps=0.2", "tracking=none", "seed=1"]
    experiments = []
    for name, command, compute in (("calm", f"{GOOD} {bits}", "serial"), ("dies", bad("dies", bits), "processes")):
        quoted = "'" + command.replace("'", r"\'") + "'"
        experiment = Sandbox(
            tmp_path / name, [*words, f"dataset.command={quoted}", f"compute={compute}", "compute.workers=2"]
        )
        experiment.finish()
        experiments.append(experiment)
    calm, dies = (read_path(experiment.run / "path.zarr")[0] for experiment in experiments)
    for name in calm.keys() - MEASURED:
        assert calm[name].tobytes() == dies[name].tobytes(), name
