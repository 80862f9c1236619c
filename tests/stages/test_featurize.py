"""Featurize: what is stored with the features, and which block an error names."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gapwise import ChainSVM
from gapwise.stages import featurize as module
from gapwise.stages.datasets import DataError
from gapwise.stages.featurize import featurize, open_problem
from gapwise.storage.features import open_features


class Pictures:
    """A reader of `count` training blocks of two superpixels in uint8; training block `bad` has a negative feature."""

    structure = "segmentation"

    def __init__(self, count: int = 3, bad: int = -1):
        self.count, self.bad = count, bad

    def featurize(self, sink, map_blocks, report):
        sink.put("", "unary_scale", np.array([0.5]))
        for split, k in [("test", 0), *(("train", k) for k in range(self.count))]:
            sink.append(
                split,
                unary=np.array([[2, 0], [1, 4]], np.uint8),
                pairwise=np.full((1, 1), -1 if (split, k) == ("train", self.bad) else 1, np.float32),
                edges=np.array([[0, 1]], np.int32),
                labels=np.array([0, 1], np.uint8),
                area=np.ones(2),
            )
        return {"n_train": self.count}


def run(monkeypatch, target, reader):
    monkeypatch.setattr(module, "open_dataset", lambda name, options: reader)
    monkeypatch.setattr(module, "version_of", lambda name, structure: "of no reader")
    featurize({"name": "pictures"}, target, key="k", map_blocks=map, report=lambda done, total, task: None)


def test_featurize__names_split_and_block_that_the_structure_refuses(monkeypatch, tmp_path):
    with pytest.raises(DataError, match=r"^train block 17: segmentation: pairwise is -1\.0 in row 0, feature 0"):
        run(monkeypatch, tmp_path / "store", Pictures(20, bad=17))
    assert list(tmp_path.iterdir()) == []


def test_featurize__derives_from_shared_arrays(monkeypatch, tmp_path):
    run(monkeypatch, tmp_path / "store", Pictures())
    assert open_features(tmp_path / "store").arrays("test")["gram"].tolist() == [1.0, 0.5, 0.5, 4.25]


def test_featurize__spares_opening_a_store_the_scan(monkeypatch, tmp_path):
    run(monkeypatch, tmp_path / "store", Pictures())
    assert open_features(tmp_path / "store").meta["checked"] is True
    monkeypatch.setattr(
        "gapwise.stages.problems.images.graph.check_features", lambda *_: pytest.fail("read the features")
    )
    assert open_problem(tmp_path / "store", "train").n == 3


def test_featurize__makes_damaged_features_again(monkeypatch, tmp_path, caplog):
    run(monkeypatch, tmp_path / "store", Pictures())
    file = tmp_path / "store" / "train" / "unary.npy"
    whole, made = file.read_bytes(), file.stat().st_ino
    run(monkeypatch, tmp_path / "store", Pictures())
    assert file.stat().st_ino == made
    file.write_bytes(whole[:-1] + b"x")
    run(monkeypatch, tmp_path / "store", Pictures())
    assert file.read_bytes() == whole
    assert "unary.npy does not match its checksum; the features are made again" in caplog.text


def test_featurize__refuses_one_label_as_estimators_do(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text("P\ta\nP\tb\n\nP\tb\n")
    options = {"name": "sequences_csv", "file": str(tmp_path / "train.txt"), "test_file": str(tmp_path / "train.txt")}
    said = "expected at least two labels, got one only: 'P'"
    with pytest.raises(DataError, match=said):
        featurize(options, tmp_path / "store", key="k", map_blocks=map, report=lambda *_: None)
    assert not (tmp_path / "store").exists()
    with pytest.raises(ValueError, match=said):
        ChainSVM().fit([[["a"], ["b"]], [["b"]]], [["P", "P"], ["P"]])
