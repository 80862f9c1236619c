"""What is wrong with a command is said in one line, with the documented exit code, and nothing is left behind."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from configs import composed

from gapwise.pipeline.run import run

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
ORACLES = """
from python_task import Pairs

class Needs(Pairs):
    def __init__(self, split, must):
        super().__init__(split)

class PassesOn(Pairs):
    def __init__(self, split, **arguments):
        super().__init__(split, **arguments)

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
        "ocr_gz/letter.data.gz": b"hello",
        "ocr_cut/letter.data.gz": b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03" + GARBAGE,
        "ocr_npz/ocr_letters.npz": b"",
        "usps/zip.train.gz": b"hello",
        "usps/zip.test.gz": b"hello",
        "conll/train.txt.gz": b"hello",
        "conll/test.txt.gz": b"hello",
        "commas/train.txt": b"He,PRP,B-NP\n",
        "commas/test.txt": b"He,PRP,B-NP\n",
        "horses/weizmann_horses_original.tar": GARBAGE,
        "text/train": b"He PRP B-NP\nreckons VBZ B-VP\n",
        "text/test": b"He PRP B-NP\nsleeps VBZ B-VP\n",
        "text/tabs": b"B-NP\tw=He\nB-VP\tw=reckons\n",
        "text/template": b"U00:%x[0,0]\n",
        "arrays/train.svm": b"+1 1:2\n-1 3:1 2:5\n",
        "arrays/train.csv": b"1,2,a\n3,x,b\n",
        "scenes/classes.yaml": b"classes: [ground, thing]\n",
        "scenes/images/one.png": GARBAGE,
        "scenes/masks/one.png": GARBAGE,
        "scenes/images/two.png": GARBAGE,
        "scenes/masks/two.png": GARBAGE,
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
        (f"{ORACLE}Needs +dataset.arguments.must=1 +dataset.arguments.no=2", "unexpected keyword argument 'no'"),
        (f"{ORACLE}PassesOn +dataset.arguments.no=2", "unexpected keyword argument 'no' (messages_oracles.py, line 10)"),
        (f"{ORACLE}Fails", "FileNotFoundError: [Errno 2] No such file or directory: 'no_such_file.txt' (messages_orac"),
        (f"{ORACLE}Broken", "Broken.features: train block 0: KeyError: 'no such key' (messages_oracles.py, line 18)"),
        ("dataset=ocr dataset.root=ocr", "ocr/letter.data: line 1 has not 134 tab-separated columns"),
        ("dataset=ocr dataset.root=ocr_gz", "ocr_gz/letter.data.gz: cannot be read: Not a gzipped file"),
        ("dataset=ocr dataset.root=ocr_cut", "ocr_cut/letter.data.gz: cannot be read: "),
        ("dataset=ocr dataset.root=ocr_npz", "ocr_npz/ocr_letters.npz: cannot be read as an .npz file"),
        ("dataset=usps dataset.root=usps", "usps/zip.train.gz: expected a digit and 256 numbers a line: Not a gzippe"),
        ("dataset=conll dataset.root=conll", "conll/train.txt.gz: cannot be read: Not a gzipped file"),
        ("dataset=conll dataset.root=commas", "1 columns, expected 3 (word, part of speech, chunk label) separated by"),
        ("dataset=weizmann dataset.root=horses", "horses/weizmann_horses_original.tar: cannot be read as a tar archi"),
        (TEXT, "text/train: line 1: no tab in 'He PRP B-NP'; expected a label and attributes separated by tabs."),
        (f"{TEXT} dataset.file=text/tabs", "text/test: line 1: no tab in 'He PRP B-NP'"),
        ("dataset=multiclass_arrays dataset.file=arrays/train.svm", "train.svm: line 2: index 2 after 3; expected indices"),
        ("dataset=multiclass_arrays dataset.file=arrays/train.csv", "train.csv: line 2: column 1 is 'x'; expected a num"),
        ("dataset=images dataset.root=scenes", ".png: cannot be decoded as an image (cannot identify image file "),
        ("dataset=images dataset.root=lonely", "lonely/images/one.png: has no mask; expected lonely/masks/one.png"),
        (
            "dataset=sequences_csv dataset.file=commas/train.txt dataset.test_file=commas/test.txt "
            "dataset.template=text/template",
            "one column only; expected features and then the label, separated by blanks or tabs",
        ),
    ],
)  # fmt: skip
def test_data__that_cannot_be_used_leave_no_run(folder: Path, capsys, words: str, message: str) -> None:
    assert message in refused(folder, capsys, 1, *words.split())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("path=grid path.lambdas=5", "path.lambdas: expected a list, got 5; write 'path.lambdas=[5]'"),
        ("path=grid path.lambdas=[1,0.5,1]", "path.lambdas: expected different values, got [1.0, 0.5, 1.0]"),
        ("run.root=text/train", "run.root: expected a directory, or one that can be made, but "),
        ("run.root=text/train/below", "text/train is a file"),
        ("dataset=ocr dataset.root=ocr dataset.size=huge", "dataset.size: expected one of small, large, got 'huge'"),
        ("dataset=ocr dataset.root=ocr dataset.fold=77", "dataset.fold: expected a whole number from 0 to 9, got 77"),
        ("dataset=ocr dataset.root=ocr dataset.fold=-1", "dataset.fold: expected a whole number from 0 to 9, got -1"),
        ("dataset=hdseg dataset.root=ocr dataset.size=huge", "dataset.size: expected one of small, medium, large, got"),
        ("dataset=images dataset.root=scenes dataset.unseen_classes=zz", "dataset.unseen_classes: expected one of error, "),
        ("dataset.features=o16", "dataset.features: expected s15, or null, got 'o16'"),
        (
            "dataset=multiclass_arrays dataset.file=arrays/train.csv dataset.bias=0",
            "dataset.bias: expected a number other than 0, or null, got 0",
        ),
        (f"{TEXT} dataset.unseen_labels=zz", "dataset.unseen_labels: expected one of error, count, got 'zz'"),
        (f"{TEXT} dataset.min_count=-1", "dataset.min_count: expected a whole number >= 1, got -1"),
        (f"seed={10**20}", f"seed: expected an integer from 0 to 9223372036854775807, got {10**20}"),
        ("solver=bcfw solver.averaging=weighted", "solver.averaging: expected none, for path.rule=two_sided (path=grid"),
    ],
)  # fmt: skip
def test_options__that_are_wrong_as_such_are_bad_configuration(folder: Path, capsys, words: str, message: str) -> None:
    assert message in refused(folder, capsys, 2, *words.split())
    assert not (folder / "runs").exists()


@pytest.mark.parametrize(
    ("package", "words", "message"),
    [
        ("mlflow", "tracking=mlflow", "tracking=mlflow: mlflow is not installed; pip install mlflow, or choose track"),
        ("dask_jobqueue", "compute=slurm", 'compute=slurm: dask-jobqueue is not installed; pip install "gapwise[slurm]"'),
        ("obstore", "run.root=s3://bucket/runs", 'conditional writes need obstore (for s3://: pip install "gapwise[s3]"'),
        ("h5py", "dataset=hdseg dataset.root=ocr", "dataset.name=hdseg: needs the Python package h5py, which is not ins"),
        ("skimage", "dataset=weizmann dataset.root=ocr", "dataset.name=weizmann: needs the Python package skimage, whi"),
    ],
)  # fmt: skip
def test_package__that_is_not_installed_is_said_before_anything_is_written(
    folder: Path, capsys, monkeypatch: pytest.MonkeyPatch, package: str, words: str, message: str
) -> None:
    real = importlib.util.find_spec

    def find_spec(name: str, *rest: str) -> object:
        return None if name == package else real(name, *rest)

    for module in ("gapwise.pipeline.compute.ready", "gapwise.storage.backend.cloud", "gapwise.stages.datasets"):
        monkeypatch.setattr(f"{module}.find_spec", find_spec)
    given = ["tracking=none", "compute=serial", "solver=bcfw"]
    given = [word for word in given if word.split("=")[0] != words.split("=")[0]]
    assert run(composed(*given, *words.split())) == 2
    assert message in capsys.readouterr().err
    assert not (folder / "runs").exists()


def test_scheduler__that_does_not_answer_is_said_at_once(folder: Path, capsys) -> None:
    began = time.monotonic()
    words = ["dataset=ocr", "dataset.root=ocr", "tracking=none", "compute=cluster"]
    assert run(composed(*words, "compute.address=tcp://127.0.0.1:1")) == 1
    assert time.monotonic() - began < 5.0
    assert "compute.address: no scheduler answers at tcp://127.0.0.1:1 (" in capsys.readouterr().err
    assert not (folder / "runs").exists()


def test_command__refuses_in_one_line(folder: Path) -> None:
    """Through `python -m pipeline`, as a user gives it."""
    command = [sys.executable, "-m", "pipeline", "dataset=ocr", "dataset.root=ocr", "tracking=none"]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"error: {'ocr/letter.data: line 1 has not 134 tab-separated columns'}\n"
    assert not [path for path in folder.glob("runs/*") if path.name != "features"]


def test_failure__keeps_a_run_that_has_something(folder: Path, capsys) -> None:
    """A damaged raw file must not cost what an earlier invocation has left."""
    words = [*f"{TEXT} tracking=none compute=serial dataset.file=text/tabs dataset.test_file=text/tabs".split()]
    assert run(composed(*words, "run.stage=featurize")) == 0
    (manifest,) = folder.glob("runs/*/manifest.json")
    (features,) = folder.glob("runs/features/*/meta.json")
    features.write_text(json.dumps({}))
    assert run(composed(*words, "run.stage=init_path")) == 1
    assert manifest.is_file()
