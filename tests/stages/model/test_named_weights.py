"""Weights by name: which is whose, in what order, and the names themselves."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from library import sentences
from pandas import DataFrame

from gapwise import ChainSVM, load_model
from gapwise.stages.datasets import Blocks
from gapwise.stages.datasets.text.vocabulary import put_vocabulary
from gapwise.stages.model.named_weights import NamedWeights, named_weights, readable, strongest
from gapwise.stages.model.predictions import by_label, counts_of
from gapwise.stages.problems import capabilities

A, B, FIRST = "a", "b", "bias:first"


def made() -> NamedWeights:
    """Two labels, one attribute and the biases; no two weights are equal but zeros."""
    emissions = [[0.5, -1.0], [2.0, 0.0], [1.0, 0.25], [0.0, -3.0]]
    return NamedWeights.of(np.array([*np.ravel(emissions), 0.1, -0.2, 0.3, 0.0]), [A, B], ["x"])


def rows(frame: DataFrame) -> list[tuple[object, ...]]:
    return [*frame.itertuples(index=False, name=None)]


def test_frame__has_a_row_for_each_weight_and_those_of_transitions_last() -> None:
    frame = made().frame
    assert rows(frame[frame.label == A]) == [
        *(("x", A, 0.5), ("bias", A, 2.0), (FIRST, A, 1.0), ("bias:last", A, 0.0)),
        *((f"{A} →", A, 0.1), (f"{B} →", A, 0.3)),
    ]
    assert rows(frame.nlargest(1, "weight")) == [("bias", A, 2.0)]
    assert len(frame) == 4 * 2 + 2 * 2


def test_strongest__are_those_of_either_sign_by_falling_weight() -> None:
    frame = made().frame
    own = frame[frame.label == B]
    assert rows(strongest(own, "weight", 1)) == [(FIRST, B, 0.25), ("bias:last", B, -3.0)]
    assert [row[2] for row in rows(strongest(own, "weight", 9))] == [0.25, -0.2, -1.0, -3.0]


def test_estimator_and_loaded_model__have_the_same(tmp_path: Path) -> None:
    X, y = sentences()
    model = ChainSVM(lam=[0.5, 0.05], tolerance=0.05, validation=None).fit(X, y)
    model.save(tmp_path / "model", lam=0.05)
    ours = model.named_weights(lam=0.05)
    assert ours.equals(load_model(tmp_path / "model").named_weights)
    assert not ours.equals(model.named_weights(lam=0.5))
    names = [*(model.vocabulary_ or ()), "bias", FIRST, "bias:last"]
    column = np.concatenate([model.coef_, model.bias_])[:, 0]
    own = ours[ours.label == "D"].set_index("attribute")["weight"]
    assert own[names].tolist() == column.tolist()


def test_columns_and_integers__have_names_of_their_own() -> None:
    X = [np.eye(2)[[0, 1]], np.eye(2)[[1, 0]]]
    frame = ChainSVM(lam=0.1, tolerance=0.05).fit(X, [[3, 7], [7, 3]]).named_weights()
    assert [*frame["attribute"].unique()] == ["x0", "x1", "bias", FIRST, "bias:last", "3 →", "7 →"]
    assert rows(frame[frame.label == 3].nlargest(1, "weight"))[0][:2] == ("x0", 3)


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
    with pytest.raises(ValueError, match=r"^weights of the structure tree have no names; expected chain, multiclass$"):
        named_weights({"structure": "tree"}, {}, np.zeros(3))


def test_by_label__is_what_the_words_mean():
    truth, labels = np.array([0, 0, 0, 1, 1, 3]), np.array([0, 0, 1, 1, 0, 0])
    matrix = np.zeros((4, 4))
    np.add.at(matrix, (truth, labels), 1.0)
    rows = by_label(["a", "b", "c", "d"], *counts_of(matrix))
    assert rows[0] == {
        **{"label": "a", "support": 3, "predicted": 4, "right": 2, "precision": 0.5},
        **{"recall": pytest.approx(2 / 3), "f1": pytest.approx(4 / 7)},
    }
    assert [rows[2][name] for name in ("precision", "recall", "f1")] == [None, None, None]
    assert [rows[3][name] for name in ("precision", "recall", "f1")] == [None, 0.0, 0.0]


def test_potts__confusion_counts_labelled_pixels():
    counts = np.array([[5.0, 1, 0], [0, 2, 2], [1, 0, 7]])
    labels = np.array([0, 2, 2])
    names, matrix = capabilities("potts").confusion(
        SimpleNamespace(classes=3), {"counts": counts}, {"class_names": ["x", "y", "z"]}, labels
    )
    assert names == ["x", "y", "z"]
    assert matrix.tolist() == [[5, 0, 1], [1, 0, 2], [0, 0, 9]]


def test_segmentation__confusion_counts_pixels():
    arrays = {"area": np.array([10.0, 4.0, 6.0]), "foreground": np.array([7.0, 0.0, 6.0])}
    names, matrix = capabilities("segmentation").confusion(None, arrays, {}, np.array([1, 0, 0], np.uint8))
    assert names == ["background", "foreground"]
    assert matrix.tolist() == [[4, 3], [6, 7]]


def test_chain__confusion_has_labels_that_occur_in_the_test_split_only():
    problem = SimpleNamespace(labels=2, truth=np.array([0, 1, 2, 2], np.uint8))
    names, matrix = capabilities("chain").confusion(problem, {}, {}, np.array([0, 0, 1, 1], np.uint8))
    assert (names, matrix.tolist()) == (["0", "1", "2"], [[1, 0, 0], [1, 0, 0], [0, 2, 0]])


def test_multiclass__confusion_names_classes_by_number():
    problem = SimpleNamespace(labels=2, truth=np.array([0, 1, 1], np.uint8))
    names, matrix = capabilities("multiclass").confusion(problem, {}, {}, np.array([1, 1, 0], np.uint8))
    assert (names, matrix.tolist()) == (["0", "1"], [[0, 1], [1, 1]])
