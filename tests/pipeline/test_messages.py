"""What is wrong with a command is said in one line, with the documented exit code, and nothing is left behind."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import pytest
from configs import composed

from gapwise.pipeline.errors import one_line
from gapwise.pipeline.run import run

ORACLES = """
from python_task import Pairs

class Needs(Pairs):
    def __init__(self, split, must):
        super().__init__(split)

class Fails(Pairs):
    def __init__(self, split):
        open("no_such_file.txt")

class Broken(Pairs):
    def features(self, i, y):
        return {}["no such key"]
"""
GARBAGE = bytes(range(256)) * 20


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory, with data that cannot be used."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GAPWISE_RUNS", raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "messages_oracles.py").write_text(ORACLES)
    for name, data in {
        "ocr/letter.data": GARBAGE,
        "ocr_cut/letter.data.gz": b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03" + GARBAGE,
        "usps/zip.train.gz": b"hello",
        "usps/zip.test.gz": b"hello",
        "commas/train.txt": b"He,PRP,B-NP\n",
        "commas/test.txt": b"He,PRP,B-NP\n",
        "horses/weizmann_horses_original.tar": GARBAGE,
        "text/train": b"He PRP B-NP\nreckons VBZ B-VP\n",
        "text/test": b"He PRP B-NP\nsleeps VBZ B-VP\n",
        "text/tabs": b"B-NP\tw=He\nB-VP\tw=reckons\n",
        "arrays/train.svm": b"+1 1:2\n-1 3:1 2:5\n",
        "arrays/train.csv": b"1,2,a\n3,x,b\n",
        "lonely/classes.yaml": b"classes: [ground, thing]\n",
        "lonely/images/one.png": GARBAGE,
        "lonely/masks/two.png": GARBAGE,
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(data)
    return tmp_path


def refused(folder: Path, capsys: pytest.CaptureFixture[str], code: int, *words: str) -> str:
    """The only line that a command prints, which ends with this code and leaves no run and no features."""
    words = ("tracking=none", "compute=serial", *words)
    assert run(composed(*dict.fromkeys(words))) == code
    said = [line for line in capsys.readouterr().err.splitlines() if not line.startswith("featurize")]
    (line,) = said
    left = {path.name for path in folder.glob("runs/*")} | {path.name for path in folder.glob("runs/features/*/")}
    assert left <= {"features"}, left
    return line.removeprefix("error: ")


ORACLE = "dataset=python_oracle dataset.oracle=messages_oracles:"
TEXT = "dataset=sequences_csv dataset.file=text/train dataset.test_file=text/test"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (f"{ORACLE}Needs", "messages_oracles:Needs cannot be made from split='train' and dataset.arguments={}: "),
        (f"{ORACLE}Fails", "FileNotFoundError: [Errno 2] No such file or directory: 'no_such_file.txt' (messages_orac"),
        (f"{ORACLE}Broken", "Broken.features: train block 0: KeyError: 'no such key' (messages_oracles.py, line 14)"),
        ("dataset=ocr dataset.root=ocr", "ocr/letter.data: line 1 has not 134 tab-separated columns"),
        ("dataset=ocr dataset.root=ocr_cut", "ocr_cut/letter.data.gz: cannot be read: "),
        ("dataset=usps dataset.root=usps", "usps/zip.train.gz: expected a digit and 256 numbers a line: Not a gzippe"),
        ("dataset=conll dataset.root=commas", "1 columns, expected 3 (word, part of speech, chunk label) separated by"),
        ("dataset=weizmann dataset.root=horses", "horses/weizmann_horses_original.tar: cannot be read as a tar archi"),
        (TEXT, "text/train: line 1: no tab in 'He PRP B-NP'; expected a label and attributes separated by tabs."),
        ("dataset=multiclass_arrays dataset.file=arrays/train.svm", "train.svm: line 2: Feature indices"),
        ("dataset=multiclass_arrays dataset.file=arrays/train.csv", "train.csv: line 2: column 1 is 'x'; expected a num"),
        ("dataset=images dataset.root=lonely", "lonely/images/one.png: has no mask; expected lonely/masks/one.png"),
    ],
)  # fmt: skip
def test_data__that_cannot_be_used_leave_no_run(folder: Path, capsys, words: str, message: str) -> None:
    assert message in refused(folder, capsys, 1, *words.split())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("path=grid path.lambdas=5", "path.lambdas: expected a list, got 5; write 'path.lambdas=[5]'"),
        ("run.root=text/train", "run.root: expected a directory, or one that can be made, but "),
        ("dataset=ocr dataset.root=ocr dataset.size=huge", "dataset.size: expected one of small, large, got 'huge'"),
        (f"{TEXT} dataset.min_count=-1", "dataset.min_count: expected a whole number >= 1, got -1"),
        (f"seed={10**20}", f"seed: expected an integer from 0 to 9223372036854775807, got {10**20}"),
        ("solver=bcfw solver.averaging=weighted", "solver.averaging: expected none (method=bcfw; averages of bcfw: "),
    ],
)  # fmt: skip
def test_options__that_are_wrong_as_such_are_bad_configuration(folder: Path, capsys, words: str, message: str) -> None:
    assert message in refused(folder, capsys, 2, *words.split())
    assert not (folder / "runs").exists()


def test_package__that_is_not_installed_is_said_before_anything_is_written(
    folder: Path, capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(
        "gapwise.pipeline.compute.local.find_spec", lambda name, *rest: None if name == "mlflow" else real(name, *rest)
    )
    assert run(composed("tracking=mlflow", "compute=serial", "solver=bcfw")) == 2
    message = "tracking=mlflow: mlflow is not installed; pip install mlflow, or choose track"
    assert message in capsys.readouterr().err
    assert not (folder / "runs").exists()


def test_failure__keeps_a_run_that_has_something(folder: Path, capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error must not cost what an earlier invocation has left."""
    words = [*f"{TEXT} tracking=none compute=serial dataset.file=text/tabs dataset.test_file=text/tabs".split()]
    assert run(composed(*words, "run.until=featurize")) == 0
    (manifest,) = folder.glob("runs/*/manifest.json")

    def fail(*_: object, **__: object) -> None:
        raise ValueError("no")

    monkeypatch.setattr("gapwise.stages.featurize.featurize", fail)
    assert run(composed(*words, "run.until=init_path")) == 1
    assert manifest.is_file()


def test_one_line__says_whose_a_file_is_that_may_not_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = PermissionError(13, "Permission denied", str(tmp_path / "run" / "lock"))
    (tmp_path / "run").mkdir()
    assert "it is yours" in one_line(error)
    monkeypatch.setattr(os, "getuid", lambda: -1)
    monkeypatch.setattr(Path, "owner", lambda self: self.stat() and "alice")
    assert "belongs to alice" in one_line(error)
    assert one_line(ValueError("a\n  b")) == "a b"
