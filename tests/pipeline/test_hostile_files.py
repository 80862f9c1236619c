"""Files that somebody changed, every checksum made again: one message that names the file, no traceback, nothing allocated.

The sizes that files claim are compared with what they hold before anything is made of them.
"""

from __future__ import annotations

import io
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from in_process import Here
from reseal import reseal

import gapwise
from gapwise.pipeline.cli import carry_out
from gapwise.stages.model.folders import save_model
from gapwise.storage.features import open_features
from gapwise.storage.files import DamagedError, read_json, write_json
from gapwise.storage.integrity import checksums, sealed

pytestmark = pytest.mark.slow

WORDS = "P\tw=a\tw=b\nQ\tw=b\n\nQ\tw=c\n\nP\tw=a\nP\tw=c\nQ\tw=b\n\nQ\tw=b\nP\tw=d\n"
Edit = Callable[[Path], object]
GONE = object()


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run of ours in ``runs``, its model, and its text."""
    folder = tmp_path_factory.mktemp("honest")
    (folder / "train.txt").write_text(WORDS)
    asked = ["dataset=sequences_csv", f"dataset.file={folder}/train.txt", f"dataset.test_file={folder}/train.txt"]
    sandbox = Here(folder / "runs", [*asked, "path.eps=0.05", "tracking=none", "compute=serial"])
    sandbox.finish()
    save_model(sandbox.run, "best", folder / "model")
    return folder


def fact(*keys: str, value: object = GONE, file: str = "model.json") -> Edit:
    """Another value of a fact in a JSON file; without one it is left out."""

    def edit(folder: Path) -> None:
        facts: Any = read_json(folder / file)
        part = facts
        for key in keys[:-1]:
            part = part[key]
        if value is GONE:
            del part[keys[-1]]
        else:
            part[keys[-1]] = value
        write_json(folder / file, facts)

    return edit


def claims(name: str, *shape: int) -> Edit:
    """An .npy file whose header has another shape, with the same numbers."""

    def edit(folder: Path) -> None:
        array, head = np.load(folder / name), io.BytesIO()
        np.lib.format.write_array_header_1_0(head, {"descr": array.dtype.str, "fortran_order": False, "shape": shape})
        (folder / name).write_bytes(head.getvalue() + array.tobytes())

    return edit


def numbers(name: str, change: Callable[[np.ndarray], np.ndarray]) -> Edit:
    return lambda folder: np.save(folder / name, change(np.load(folder / name)))


def zarr_array(name: str, **changes: Any) -> Edit:
    """Other metadata of an array of path.zarr."""

    def edit(path: Path) -> None:
        meta = json.loads((path / name / "zarr.json").read_text())
        if "chunk" in changes:
            meta["chunk_grid"]["configuration"]["chunk_shape"] = changes["chunk"]
        meta |= {key: value for key, value in changes.items() if key != "chunk"}
        (path / name / "zarr.json").write_text(json.dumps(meta))

    return edit


def attribute(name: str, value: object = GONE) -> Edit:
    return fact("attributes", name, value=value, file="zarr.json")


HUGE = 10**13
MODEL: dict[str, tuple[Edit, str]] = {
    "no classes": (fact("features", "classes"), "model.json: classes: expected a whole number"),
    "a million classes": (fact("features", "classes", value=10**6), "model.json: classes: .*, got '1000000'"),
    "-1 classes": (fact("features", "classes", value=-1), "model.json: classes"),
    "classes as a word": (fact("features", "classes", value="many"), "model.json: classes"),
    "classes as a list": (fact("features", "classes", value=[2]), "model.json: classes"),
    "attributes": (fact("features", "attributes", value=HUGE), "model.json: attributes"),
    "no features": (fact("features"), "model.json: features: expected an object, it is missing"),
    "features as a list": (fact("features", value=[]), "model.json: features"),
    "no structure": (fact("features", "structure"), "model.json: structure"),
    "structure as a path": (fact("features", "structure", value="../x"), "model.json: structure: unknown"),
    "dataset as a number": (fact("features", "dataset", value=3), "model.json: dataset"),
    "d": (fact("features", "d", value=HUGE), "model.json: d: expected 18"),
    "d as a word": (fact("features", "d", value="x"), "model.json: d"),
    "names as a number": (fact("features", "label_names", value=7), "model.json: label_names"),
    "lambda as a word": (fact("lambda", value="x"), "model.json: lambda"),
    "lambda NaN": (fact("lambda", value=float("nan")), "model.json: lambda"),
    "certificate as a list": (fact("certificate", value=[]), "model.json: certificate"),
    "origin as a word": (fact("origin", value="x"), "model.json: origin"),
    "weights claim": (claims("weights.npy", HUGE), "weights.npy: its header says 80,000,000,000,000 bytes"),
    "weights claim fewer": (claims("weights.npy", 2), "weights.npy: its header says 16 bytes"),
    "weights negative": (claims("weights.npy", -5), "weights.npy: not an .npy file"),
    "weights float32": (numbers("weights.npy", lambda w: w.astype("f4")), "weights.npy: expected a row of finite"),
    "weights NaN": (numbers("weights.npy", lambda w: np.nan * w), "weights.npy: expected a row of finite"),
    "weights in rows": (numbers("weights.npy", lambda w: w[None]), "weights.npy: expected a row of finite"),
    "a weight fewer": (numbers("weights.npy", lambda w: w[:-1]), "model.json: d: expected 17"),
    "vocabulary claims": (claims("shared/vocabulary_ptr.npy", HUGE), "vocabulary_ptr.npy: its header says"),
}  # fmt: skip
"""Edits of a model's folder that loading refuses."""

PREDICTED: dict[str, tuple[Edit, str]] = {
    "too few names": (fact("features", "label_names", value=[]), "model.json: what it says about its features"),
    "no text": (fact("features", "text", value=None), "model.json: what it says about its features"),
    "another structure": (fact("features", "structure", value="segmentation"), "model.json: what it says .*unary"),
    "vocabulary no text": (numbers("shared/vocabulary.npy", lambda v: 0 * v + 255), "model.json: what it says"),
}
"""Edits that only predicting can find."""

PATH: dict[str, tuple[Edit, str]] = {
    "lambda claims": (zarr_array("lambda", shape=[HUGE]), "path.zarr: lambda: says that it has"),
    "lambda claims in a chunk": (zarr_array("lambda", shape=[10**9], chunk=[10**9]), "path.zarr: lambda: says"),
    "weights claim": (zarr_array("weights", shape=[2, HUGE]), "path.zarr: weights: says that it has"),
    "lambda negative": (zarr_array("lambda", shape=[-3]), "path.zarr: an array or attribute"),
    "lambda int8": (zarr_array("lambda", data_type="int8", fill_value=1), "path.zarr: .*lambda is int8"),
    "weights float32": (zarr_array("weights", data_type="float32"), "path.zarr: .*weights is float32"),
    "a lambda fewer": (zarr_array("lambda", shape=[1]), "path.zarr: .*lambda has 1"),
    "no lambda": (lambda path: shutil.rmtree(path / "lambda"), "path.zarr: .*'lambda'"),
    "no weights": (lambda path: shutil.rmtree(path / "weights"), "path.zarr: .*'weights'"),
    "no gap": (lambda path: shutil.rmtree(path / "gap"), "path.zarr: .*'gap'"),
    "no scale": (lambda path: shutil.rmtree(path / "cell_scale"), "path.zarr: .*'cell_scale'"),
    "no eps": (attribute("eps"), "path.zarr: .*eps is None"),
    "eps as a word": (attribute("eps", "x"), "path.zarr: .*eps is 'x'"),
    "no relative": (attribute("relative"), "path.zarr: .*relative None"),
    "version as a list": (attribute("format_version", []), r"path.zarr: format version \[\]"),
    "a list": (lambda path: (path / "zarr.json").write_text("[]"), "path.zarr: the metadata"),
    "no JSON": (lambda path: (path / "lambda" / "zarr.json").write_text("{"), "path.zarr"),
}  # fmt: skip

FEATURES: dict[str, tuple[Edit, str]] = {
    "no classes": (fact("classes", file="meta.json"), "meta.json: classes"),
    "classes": (fact("classes", value=HUGE, file="meta.json"), "meta.json: classes"),
    "no structure": (fact("structure", file="meta.json"), "meta.json: structure"),
    "no dataset": (fact("dataset", file="meta.json"), "meta.json: dataset"),
    "d as a word": (fact("d", value="x", file="meta.json"), "meta.json: d"),
    "vocabulary claims": (claims("shared/vocabulary.npy", HUGE), "vocabulary.npy: its header says"),
}


def refused(capsys: pytest.CaptureFixture[str], words: list[str], message: str) -> None:
    """The command ends with exit code 1 and one line."""
    capsys.readouterr()
    assert carry_out(words) == 1
    err = capsys.readouterr().err
    assert re.search(message, err), err
    assert err.count("\n") == 1


@pytest.fixture
def model(honest: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(honest / "model", tmp_path / "model"))


def resealed(model: Path, edit: Edit) -> Path:
    edit(model)
    facts = read_json(model / "model.json")
    files = {name: of for name, of in checksums(model).items() if name != "model.json"}
    write_json(model / "model.json", sealed({**facts, "files": files}))
    return model


@pytest.mark.parametrize("case", MODEL)
def test_model__that_claims_what_its_files_do_not_hold_is_refused(honest, model, case, capsys):
    edit, message = MODEL[case]
    resealed(model, edit)
    with pytest.raises(DamagedError, match=message):
        gapwise.load_model(model)
    refused(capsys, ["predict", str(model), str(honest / "train.txt")], message)


@pytest.mark.parametrize("case", PREDICTED)
def test_model__whose_facts_do_not_fit_its_arrays_predicts_nothing(honest, model, case, capsys):
    edit, message = PREDICTED[case]
    resealed(model, edit)
    refused(capsys, ["predict", str(model), str(honest / "train.txt")], message)


@pytest.mark.parametrize("entry", [3, None, []])
def test_model__that_says_no_checksum_is_refused(model, entry):
    facts = read_json(model / "model.json")
    write_json(model / "model.json", sealed({**facts, "files": {**facts["files"], "weights.npy": entry}}))
    with pytest.raises(DamagedError, match=r"weights\.npy, expected its size and checksum"):
        gapwise.load_model(model)


def copied(honest: Path, folder: Path) -> tuple[Path, Path]:
    """A run and its features, to be changed."""
    root = Path(shutil.copytree(honest / "runs", folder / "runs"))
    (run,), (meta,) = root.glob("*/manifest.json"), root.glob("features/*/meta.json")
    return run.parent, meta.parent


@pytest.mark.parametrize("case", PATH)
def test_path__that_claims_what_its_files_do_not_hold_is_refused(honest, tmp_path, case, capsys):
    edit, message = PATH[case]
    run, _ = copied(honest, tmp_path)
    edit(run / "path.zarr")
    with pytest.raises(ValueError, match=message):
        gapwise.open_path(run)
    reseal(run.parent)
    refused(capsys, ["predict", str(run), str(honest / "train.txt")], message)
    refused(capsys, ["export", str(run), "-o", str(tmp_path / "out")], message)
    assert not (tmp_path / "out").exists()
    assert carry_out(["show", str(run)]) == 0


@pytest.mark.parametrize("case", FEATURES)
def test_features__that_claim_what_their_files_do_not_hold_are_refused(honest, tmp_path, case, capsys):
    edit, message = FEATURES[case]
    run, store = copied(honest, tmp_path)
    edit(store)
    reseal(run.parent)
    refused(capsys, ["predict", str(run), str(honest / "train.txt")], message)
    refused(capsys, ["export", str(run), "-o", str(tmp_path / "out")], message)
    assert carry_out(["show", str(run)]) == 0


def test_features__of_a_header_that_claims_more_are_not_mapped(honest, tmp_path):
    _, store = copied(honest, tmp_path)
    claims("train/labels.npy", HUGE)(store)
    with pytest.raises(DamagedError, match=r"train/labels\.npy: its header says"):
        open_features(store).arrays("train")
