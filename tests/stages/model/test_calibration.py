"""Margins as probabilities: scikit-learn's numbers, what a model's file holds of them, and what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from gapwise.stages.model.calibration import METHODS, fitted, read
from gapwise.storage.files import DamagedError

MARGINS = np.array([0.1, 0.2, 0.2, 0.4, 0.5, 0.7, 0.9, 1.1, 1.5, 2.0, 3.0, np.inf])
RIGHT = np.array([0, 1, 0, 0, 1, 1, 0, 1, 1, 1, 1, 0], bool)
NEW = np.array([0.0, 0.15, 0.3, 0.6, 1.0, 2.5, 9.0])


def test_isotonic__is_that_of_sklearn_and_ends_at_its_ends() -> None:
    theirs = IsotonicRegression(out_of_bounds="clip").fit(MARGINS[:-1], RIGHT[:-1])
    ours = fitted("isotonic", MARGINS, RIGHT, "some blocks")
    np.testing.assert_allclose(ours(NEW), theirs.predict(NEW), atol=1e-12)
    assert ours(np.array([np.inf])) == ours(np.array([3.0]))
    assert (ours.entries, ours.split) == (11, "some blocks")


def test_sigmoid__is_the_unpenalised_logistic_regression() -> None:
    theirs = LogisticRegression(C=np.inf, tol=1e-10).fit(MARGINS[:-1, None], RIGHT[:-1])
    ours = fitted("sigmoid", MARGINS, RIGHT, "some blocks")
    np.testing.assert_allclose(ours(NEW), theirs.predict_proba(NEW[:, None])[:, 1], atol=1e-3)
    np.testing.assert_allclose(fitted("sigmoid", 1e-6 * MARGINS, RIGHT, "")(1e-6 * NEW), ours(NEW), atol=1e-9)
    assert ours(np.array([np.inf])) == 1.0


@pytest.mark.parametrize("method", METHODS)
def test_facts__are_read_as_they_were_written(method: str) -> None:
    calibration = fitted(method, MARGINS, RIGHT, "some blocks")
    facts = json.loads(json.dumps(calibration.facts))
    assert read(facts, "model.json") == calibration
    assert read(None, "model.json") is None
    for harm in (
        {"method": "magic"},
        {"entries": None},
        {"method": "isotonic", "margins": [1.0, 2.0], "probabilities": [0.2, 0.1]},
        {"method": "isotonic", "margins": [0.0, 1.0], "probabilities": [0.5, 1.5]},
        {"method": "sigmoid", "slope": float("nan")},
    ):
        with pytest.raises(DamagedError, match=r"^model\.json: calibration: expected a rising map .* make it again$"):
            read({**facts, **harm}, "model.json")
    with pytest.raises(DamagedError):
        read([1.0], "model.json")


@pytest.mark.parametrize(("right", "share"), [(True, 12 / 13), (False, 1 / 13)])
def test_sigmoid__of_predictions_that_are_all_alike_has_platts_smoothed_share(right: bool, share: float) -> None:
    ours = fitted("sigmoid", MARGINS, np.full(12, right), "some blocks")
    np.testing.assert_allclose(ours(np.array([0.0, 2.0, np.inf])), share)
    assert read(json.loads(json.dumps(ours.facts)), "model.json") == ours


@pytest.mark.parametrize("method", METHODS)
def test_weights__are_repetitions_at_any_scale(method: str) -> None:
    weight = np.arange(12) % 3 + 1
    again = fitted(method, np.repeat(MARGINS, weight), np.repeat(RIGHT, weight), "")
    for scale in (1e-8, 1.0, 1e8):
        ours = fitted(method, MARGINS, RIGHT, "", scale * weight)
        np.testing.assert_allclose(ours(NEW), again(NEW), atol=1e-3)


def test_refused__are_unknown_methods_and_too_few_labels() -> None:
    with pytest.raises(ValueError, match=r"^calibration: expected isotonic or sigmoid, got 'platt'$"):
        fitted("platt", MARGINS, RIGHT, "")
    with pytest.raises(
        ValueError, match=r"^calibration: expected at least 10 predicted labels .*, got 9; hold out more$"
    ):
        fitted("isotonic", MARGINS[:9], RIGHT[:9], "")
    assert fitted("isotonic", MARGINS, np.ones(12, bool), "")(NEW).tolist() == [1.0] * 7
