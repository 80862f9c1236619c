"""A model's folder: whole or not there, checked when it is read, and never in the place of something else."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from harms import HARMS

from gapwise.storage import models
from gapwise.storage.backend import DamagedError
from gapwise.storage.files import read_json, write_json
from gapwise.storage.integrity import sealed
from gapwise.storage.models import read_model, write_model

FACTS = {"lambda": 0.5, "features": {"dataset": "usps"}}
WEIGHTS = np.linspace(-1.0, 1.0, 7)
SHARED = {"vocabulary": np.frombuffer(b"words", np.uint8), "vocabulary_ptr": np.array([0, 5])}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    write_model(tmp_path / "here" / "model", FACTS, WEIGHTS, SHARED)
    return tmp_path / "here" / "model"


def check_whole(model: models.StoredModel) -> None:
    assert model.weights.tobytes() == WEIGHTS.tobytes()
    assert FACTS.items() <= model.facts.items()
    assert model.shared.keys() == SHARED.keys()
    for name, array in SHARED.items():
        assert (model.shared[name].dtype, model.shared[name].tobytes()) == (array.dtype, array.tobytes())


def test_model__is_read_as_it_was_written_also_from_a_folder_that_cannot_be_written_to(model):
    for path in (*model.rglob("*"), model):
        path.chmod(0o555 if path.is_dir() else 0o444)
    before = {path: path.stat().st_mtime_ns for path in (*model.rglob("*"), model)}
    check_whole(read_model(model))
    assert before == {path: path.stat().st_mtime_ns for path in (*model.rglob("*"), model)}
    model.chmod(0o755)
    (model / "shared").chmod(0o755)


@pytest.mark.parametrize("harm", HARMS)
@pytest.mark.parametrize("name", ["weights.npy", "shared/vocabulary.npy", "model.json"])
def test_model__damaged_is_refused_and_the_file_named(model, name, harm):
    HARMS[harm](model / name)
    gone = (name, harm) == ("model.json", "gone")
    with pytest.raises(FileNotFoundError if gone else DamagedError, match=name):
        read_model(model)


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"lambda": 0.25}, DamagedError, "model.json: does not match its own checksum"),
        ({"seal": "again", "kind": "other"}, DamagedError, "does not describe a model"),
        ({"seal": "again", "format_version": 99}, ValueError, "format version 99, expected"),
        ({"seal": "again", "files": "../x.npy"}, DamagedError, "none of a model's"),
        ({"seal": "again", "files": "/x.npy"}, DamagedError, "none of a model's"),
        ({"seal": "again", "files": "shared/../../x.npy"}, DamagedError, "which is outside it"),
    ],
)
def test_model__edited_or_of_another_version_is_refused(model, changed, error, message):
    facts = read_json(model / "model.json") | changed
    write_json(model / "model.json", sealed(facts) if changed.get("seal") == "again" else facts)
    if "files" in changed:
        write_json(model / "model.json", sealed({**facts, "files": {changed["files"]: {}, "weights.npy": {}}}))
    with pytest.raises(error, match=message):
        read_model(model)


def test_model__with_other_arrays_under_right_checksums_is_refused(model):
    np.save(model / "weights.npy", np.array([1.0, np.nan]))
    facts = read_json(model / "model.json")
    facts["files"] = models.checksums(model)
    del facts["files"]["model.json"]
    write_json(model / "model.json", sealed(facts))
    with pytest.raises(DamagedError, match=r"weights\.npy: expected a row of finite float64 numbers"):
        read_model(model)
    (model / "weights.npy").write_bytes(b"\x80\x04K\x01.")  # a pickle
    facts["files"] = {**models.checksums(model)}
    del facts["files"]["model.json"]
    write_json(model / "model.json", sealed(facts))
    with pytest.raises(DamagedError, match="without pickled objects"):
        read_model(model)


def test_write__replaces_a_model_and_nothing_else(model, tmp_path):
    write_model(model, FACTS, 2.0 * WEIGHTS, {})
    assert np.array_equal(read_model(model).weights, 2.0 * WEIGHTS)
    assert not list((model / "shared").iterdir())
    (model / "notes.txt").touch()
    with pytest.raises(ValueError, match=r"holds notes\.txt besides a model; nothing is overwritten"):
        write_model(model, FACTS, WEIGHTS, SHARED)
    assert np.array_equal(read_model(model).weights, 2.0 * WEIGHTS)
    (tmp_path / "file").write_text("mine")
    for target in (tmp_path, tmp_path / "file"):
        with pytest.raises(ValueError, match="exists and is not a model; nothing is overwritten"):
            write_model(target, FACTS, WEIGHTS, SHARED)
    assert (tmp_path / "file").read_text() == "mine"
