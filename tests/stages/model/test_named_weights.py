"""Weights by name: which is whose, in what order, and the names themselves."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from library import sentences

from gapwise import ChainSVM, load_model
from gapwise.stages.datasets import Blocks
from gapwise.stages.datasets.text.vocabulary import put_vocabulary
from gapwise.stages.model.named_weights import NamedWeights, named_weights, readable

A, B, FIRST = "a", "b", "bias:first"


def made() -> NamedWeights:
    """Two labels, one attribute and the biases; no two weights are equal but zeros."""
    emissions = [[0.5, -1.0], [2.0, 0.0], [1.0, 0.25], [0.0, -3.0]]
    return NamedWeights.of(np.array([*np.ravel(emissions), 0.1, -0.2, 0.3, 0.0]), [A, B], ["x"])


def test_top_features__are_those_of_one_sign_by_their_size() -> None:
    weights = made()
    assert weights.top_features(A) == [("bias", A, 2.0), (FIRST, A, 1.0), ("x", A, 0.5)]
    assert weights.top_features(A, 1) == [("bias", A, 2.0)]
    assert weights.top_features(A, against=True) == []
    assert weights.top_features(B, against=True) == [("bias:last", B, -3.0), ("x", B, -1.0)]
    with pytest.raises(ValueError, match=r"^label: there is no 'c'; known: a, b$"):
        weights.top_features("c")


def test_transitions__are_all_pairs_by_falling_weight() -> None:
    assert made().transitions() == [(B, A, 0.3), (A, A, 0.1), (B, B, 0.0), (A, B, -0.2)]


def test_estimator_and_loaded_model__have_the_same(tmp_path: Path) -> None:
    X, y = sentences()
    model = ChainSVM(lam=[0.5, 0.05], tolerance=0.05, validation=None).fit(X, y)
    model.save(tmp_path / "model", lam=0.05)
    loaded = load_model(tmp_path / "model")
    for label in model.classes_:
        rows = model.top_features(label, 5, lam=0.05)
        assert rows == loaded.top_features(label, 5)
        assert rows != model.top_features(label, 5, lam=0.5)
    assert model.transitions(lam=0.05) == loaded.transitions()
    names = [*(model.vocabulary_ or ()), "bias", FIRST, "bias:last"]
    column = np.concatenate([model.coef_, model.bias_])[:, 0]
    for row in model.top_features("D", 100) + model.top_features("D", 100, against=True):
        assert row.weight == column[names.index(row.attribute)]


def test_columns_and_integers__have_names_of_their_own() -> None:
    X = [np.eye(2)[[0, 1]], np.eye(2)[[1, 0]]]
    model = ChainSVM(lam=0.1, tolerance=0.05).fit(X, [[3, 7], [7, 3]])
    assert model.top_features(3, 1)[0][:2] == ("x0", 3)
    assert {row[:2] for row in model.transitions()} == {(3, 3), (3, 7), (7, 3), (7, 7)}


def test_names__of_templates_are_those_of_crfpp() -> None:
    assert readable("U01:%x/%x\tthe\t _B+1") == "U01:the/_B+1"
    assert readable("U0(-1, 0)\tthe\tdog") == "U0(-1, 0) the dog"
    assert readable("U02:") == "U02:"


def test_weights__that_names_do_not_fit_are_refused() -> None:
    sink = Blocks("chain")
    put_vocabulary(sink, ["x"])
    meta, shared = {"structure": "chain", "classes": 2, "label_names": [A, B]}, sink.whole[""]
    assert named_weights(meta, shared, np.ones(2 * 4 + 4)).attributes[0] == "x"
    with pytest.raises(ValueError, match=r"^weights: expected 12, by the names of labels and attributes, got 16"):
        named_weights(meta, shared, np.ones(2 * 4 + 2 * 4))


def test_other_structures__are_refused() -> None:
    with pytest.raises(ValueError, match="only chains have weights by name, this is a model of the structure tree"):
        named_weights({"structure": "tree"}, {}, np.zeros(3))
