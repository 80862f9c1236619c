"""Models of estimators leave as folders that need no pickle, and are loaded with the same predictions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from library import Bits, bits, blobs, graphs, sentences

from gapwise import ChainSVM, MulticlassSVM, SegmentationSVM, StructuredSVM, load_model
from gapwise.stages.datasets import NothingKnown
from gapwise.stages.datasets.text.attributes import attributes
from gapwise.stages.prediction import Prediction


def named(predicted: Prediction) -> list[Any]:
    return [predicted.named(i) for i in range(len(predicted))]


def as_text(X: list[Any]) -> str:
    """CRFsuite's lines, without labels."""
    tokens = [
        ["\t".join(["", *(name.replace(":", "\\:") for name, value in attributes(t) if value)]) for t in s] for s in X
    ]
    return "\n\n".join("\n".join(s) for s in tokens)


def test_chain__is_loaded_for_dicts_as_trained_and_for_text(tmp_path: Path) -> None:
    X, y = sentences()
    model = ChainSVM(lam="path", eps=0.2).fit(X, y)
    model.save(tmp_path / "model", lam=0.5)
    loaded = load_model(tmp_path / "model")
    predicted, wanted = loaded.predict(X), model.predict(X, lam=0.5)
    assert wanted != [["D"] * len(s) for s in X]
    assert named(predicted) == named(loaded.predict(as_text(X))) == wanted
    assert (loaded.lambda_, loaded.certificate["verified"]) == (0.5, True)
    every = sum(value != 0 for s in X for t in s for _, value in attributes(t))
    assert predicted.known == (every, every)


def test_chain__of_lists_takes_lists_and_tells_how_much_of_them_it_knows(tmp_path: Path) -> None:
    X, y = sentences()
    lists = [[[f"word={t['word']}", "bias"] for t in s] for s in X]
    model = ChainSVM(lam=0.1, tolerance=0.1).fit(lists, [["DNV".index(label) for label in labels] for labels in y])
    model.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert named(loaded.predict(lists)) == model.predict(lists)  # integers, as in training
    assert loaded.predict([[["word=dog", "bias", "new"], ["bias"]]]).known == (3, 4)
    with pytest.warns(NothingKnown, match=r"^0 of 2 attributes known: "):
        assert loaded.predict([[["a"], ["b"]]]).known == (0, 2)
    with pytest.warns(NothingKnown, match=r"^0 of 2 attributes known: "):
        model.predict([[["a"], ["b"]]])
    for wrong in ([], [lists[0], []], [[1, 2]]):
        with pytest.raises(
            ValueError, match=r"sequence 1 has no tokens|no sequences|sequence 0, token 0: expected a dict"
        ):
            loaded.predict(wrong)


def test_chain__of_arrays_is_loaded_for_arrays(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = [rng.integers(2, size=(3, 2)) for _ in range(6)]
    model = ChainSVM(lam="1/n", tolerance=0.1).fit(X, [x[:, 0] for x in X])
    model.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert named(loaded.predict(X)) == model.predict(X)
    with pytest.raises(ValueError, match="sequence 0: expected an array"):
        loaded.predict([np.ones((3, 3))])
    with pytest.raises(ValueError, match="was trained on arrays of numbers"):
        loaded.predict("\ta\n")


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
    for model in (
        SegmentationSVM(lam="1/n", tolerance=0.1).fit(*graphs()),
        StructuredSVM(Bits(), lam="1/n", tolerance=0.1).fit(*bits()),
    ):
        with pytest.raises(ValueError, match=r"^save: a \w+ of such inputs has no form outside Python; pickle it"):
            model.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()
