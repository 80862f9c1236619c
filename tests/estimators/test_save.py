"""Models of estimators leave as folders that need no pickle, and are loaded with the same predictions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from library import Bits, bits, blobs, graphs, sentences

from gapwise import ChainSVM, MulticlassSVM, SegmentationSVM, StructuredSVM, load_model


def test_chain__is_loaded_for_crfsuites_lines(tmp_path: Path) -> None:
    X, y = sentences()
    model = ChainSVM(lam="path", eps=0.2).fit([[[f"word={t['word']}", "bias"] for t in s] for s in X], y)
    model.save(tmp_path / "model", lam=0.5)
    loaded = load_model(tmp_path / "model")
    predicted = loaded.predict([[["", f"word={t['word']}", "bias"] for t in s] for s in X])
    wanted = model.predict([[[f"word={t['word']}", "bias"] for t in s] for s in X], lam=0.5)
    assert [predicted.named(i) for i in range(len(predicted))] == wanted
    assert (loaded.lambda_, loaded.certificate["verified"]) == (0.5, True)


def test_multiclass__is_loaded_for_rows(tmp_path: Path) -> None:
    X, y = blobs()
    model = MulticlassSVM(lam=0.1, tolerance=0.05).fit(X, np.array(["a", "b", "c"])[y])
    model.save(tmp_path / "model")
    predicted = load_model(tmp_path / "model").predict(X)
    assert [predicted.named(i)[0] for i in range(len(X))] == model.predict(X).tolist()


def test_pictures__are_loaded_for_pictures(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    mask = np.zeros((24, 30), np.uint8)
    mask[6:18, 8:20] = 1
    X = [(rng.integers(0, 60, size=(24, 30, 3)) + 120 * mask[..., None]).astype(np.uint8) for _ in range(2)]
    model = SegmentationSVM(lam="1/n", tolerance=0.05, superpixels=12, colour_words=4, sift_words=4).fit(
        X, [mask, mask]
    )
    model.save(tmp_path / "model")
    predicted = load_model(tmp_path / "model").predict(X)
    for i, ours in enumerate(model.predict(X)):
        np.testing.assert_array_equal(predicted.mask(i), ours)


def test_other_inputs__have_no_form_outside_python(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    columns = [rng.integers(2, size=(3, 2)) for _ in range(6)]
    for model in (
        ChainSVM(lam="1/n", tolerance=0.1).fit(columns, [x[:, 0] for x in columns]),
        SegmentationSVM(lam="1/n", tolerance=0.1).fit(*graphs()),
        StructuredSVM(Bits(), lam="1/n", tolerance=0.1).fit(*bits()),
    ):
        with pytest.raises(ValueError, match=r"^save: a \w+ of such inputs has no form outside Python; pickle it"):
            model.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()
