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
from reseal import reseal, reseal_facts

import gapwise
from gapwise.pipeline.cli import carry_out
from gapwise.stages.model.folders import save_model
from gapwise.storage.features import open_features
from gapwise.storage.files import DamagedError, read_json, write_json
from gapwise.storage.integrity import sealed

Edit = Callable[[Path], object]
GONE = object()


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
        (path / name / "zarr.json").write_text(json.dumps(meta | changes))

    return edit


HUGE = 10**13
MODEL: dict[str, tuple[Edit, str]] = {
    "no classes": (fact("features", "classes"), "model.json: classes: expected a whole number"),
    "no features": (fact("features"), "model.json: features: expected an object, it is missing"),
    "d": (fact("features", "d", value=HUGE), "model.json: d: expected 18"),
    "weights claim": (claims("weights.npy", HUGE), "weights.npy: its header says 80,000,000,000,000 bytes"),
    "weights negative": (claims("weights.npy", -5), "weights.npy: not an .npy file"),
    "weights NaN": (numbers("weights.npy", lambda w: np.nan * w), "weights.npy: expected a row of finite"),
    "too few names": (fact("features", "label_names", value=[]), "model.json: what it says about its features"),
    "vocabulary no text": (numbers("shared/vocabulary.npy", lambda v: 0 * v + 255), "model.json: what it says"),
    "a weight fewer": (numbers("weights.npy", lambda w: w[:-1]), "model.json: d: expected 17"),
}  # fmt: skip
"""Edits of a model's folder; of names and vocabulary only predicting can tell."""

PATH: dict[str, tuple[Edit, str]] = {
    "lambda claims": (zarr_array("lambda", shape=[HUGE]), "path.zarr: lambda: says that it has"),
    "lambda negative": (zarr_array("lambda", shape=[-3]), "path.zarr: an array or attribute"),
    "lambda int8": (zarr_array("lambda", data_type="int8", fill_value=1), "path.zarr: .*lambda: is int8"),
    "a lambda fewer": (zarr_array("lambda", shape=[1]), "path.zarr: .*lambda has 1"),
    "no lambda": (lambda path: shutil.rmtree(path / "lambda"), "path.zarr: .*'lambda'"),
    "version": (fact("attributes", "format_version", value=[], file="zarr.json"), r"path.zarr: format version \[\]"),
    "no JSON": (lambda path: (path / "lambda" / "zarr.json").write_text("{"), "path.zarr"),
}  # fmt: skip


@pytest.fixture
def model(chain, tmp_path: Path) -> Path:
    save_model(chain.run, "best", tmp_path / "model")
    return tmp_path / "model"


@pytest.mark.parametrize("case", MODEL)
def test_model__that_claims_what_its_files_do_not_hold_is_refused(chain, model, case, refused):
    edit, message = MODEL[case]
    edit(model)
    reseal_facts(model / "model.json")
    assert re.search(message, refused("predict", model, chain.text))


def test_model__that_says_no_checksum_is_refused(model):
    facts = read_json(model / "model.json")
    write_json(model / "model.json", sealed({**facts, "files": {**facts["files"], "weights.npy": 3}}))
    with pytest.raises(DamagedError, match=r"weights\.npy, expected its size and checksum"):
        gapwise.load_model(model)


def copied(chain, folder: Path) -> tuple[Path, Path]:
    """A run and its features, to be changed."""
    root = Path(shutil.copytree(chain.root, folder / "runs"))
    (run,), (meta,) = root.glob("*/manifest.json"), root.glob("features/*/meta.json")
    return run.parent, meta.parent


@pytest.mark.parametrize("case", PATH)
def test_path__that_claims_what_its_files_do_not_hold_is_refused(chain, tmp_path, case, refused):
    edit, message = PATH[case]
    run, _ = copied(chain, tmp_path)
    edit(run / "path.zarr")
    with pytest.raises(ValueError, match=message):
        gapwise.open_path(run)
    reseal(run.parent)
    assert re.search(message, refused("predict", run, chain.text))
    assert re.search(message, refused("export", run, "-o", tmp_path / "out"))
    assert not (tmp_path / "out").exists()
    assert carry_out(["ls", str(run)]) == 0


def test_features__that_claim_what_their_files_do_not_hold_are_refused(chain, tmp_path, refused):
    run, store = copied(chain, tmp_path)
    claims("train/labels.npy", HUGE)(store)
    with pytest.raises(DamagedError, match=r"train/labels\.npy: its header says"):
        open_features(store).arrays("train")
    fact("classes", file="meta.json")(store)
    reseal(run.parent)
    assert re.search("meta.json: classes", refused("predict", run, chain.text))
