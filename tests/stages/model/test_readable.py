"""Precision, recall and F1 by label, and confusion matrices, against counting one by one."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from gapwise.stages.model.predictions import by_label, counts_of
from gapwise.stages.problems import capabilities


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
