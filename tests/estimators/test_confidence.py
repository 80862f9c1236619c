"""How sure estimators are: shapes, the blocks that a calibration rests on, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from library import blobs, graphs, sentences

from gapwise import ChainSVM, MulticlassSVM, SegmentationSVM, load_model
from gapwise.pipeline.estimators import fitting
from gapwise.pipeline.estimators.held_out import held_out
from gapwise.stages.model import calibrate
from gapwise.stages.model.calibrate import calibration_of


def test_chain__lists_labellings_and_scores_of_labels() -> None:
    X, y = sentences(20)
    model = ChainSVM(lam=0.05, tolerance=0.05).fit(X, y)
    new = [X[0], [], X[1][:1]]
    labels = model.predict(new)
    listed, tables, margins = model.predict(new, n_best=3), model.decision_function(new), model.margins(new)
    assert [next(iter(some)).labels for some in listed] == labels
    assert listed[1] == [([], 0.0)]
    assert len(listed[2]) == 3  # of three labels
    for k in (0, 2):
        scores = [labelling.score for labelling in listed[k]]
        assert scores == sorted(scores, reverse=True)
        assert tables[k].shape == (len(new[k]), 3)
        assert [model.classes_[c] for c in tables[k].argmax(axis=1)] == labels[k]
        np.testing.assert_allclose(tables[k].max(axis=1), scores[0], atol=1e-12)
        assert margins[k].min() == pytest.approx(scores[0] - scores[1], abs=1e-12)
    assert (tables[1].shape, margins[1].shape) == ((0, 3), (0,))
    assert [table.shape for table in model.decision_function([[]])] == [(0, 3)]
    for wrong in (0, 1.5):
        with pytest.raises(ValueError, match=r"^n_best: expected a whole number >= 1"):
            model.predict(new, n_best=wrong)  # type: ignore[call-overload]


def test_foreground__has_signed_margins() -> None:
    X, y = graphs(12)
    model = SegmentationSVM(lam=0.05, tolerance=0.05).fit(X, y)
    scores = model.decision_function(X[:3])
    for labels, own in zip(model.predict(X[:3]), scores, strict=True):
        assert own.shape == labels.shape
        np.testing.assert_array_equal(labels == 1, own > 0)
    assert model.decision_function([]) == []


@pytest.mark.parametrize("method", ["isotonic", "sigmoid"])
def test_calibration__is_of_the_held_out_blocks_and_leaves_home(method: str, tmp_path: Path) -> None:
    X, y = blobs(120, seed=3)
    points = X + np.random.default_rng(1).normal(size=X.shape)  # so that some are wrong
    model = MulticlassSVM(lam="auto", calibration=method).fit(points, y)
    (chosen,) = held_out(0.2, 120, y, 0)
    held = MulticlassSVM().problem(points[chosen], y[chosen])
    w = model.path_.weights_at(model.lambda_).values
    expected = calibration_of(held, w, method, "the 24 blocks held out in fit", np.ones(24, bool))
    assert model.calibration_ == expected
    assert model.refit_ is not None
    model.save(tmp_path / "model")
    predicted = load_model(tmp_path / "model").answer(points[:9], margins=True)
    assert predicted.calibration == expected
    np.testing.assert_allclose(predicted.probabilities, model.probabilities(points[:9]), atol=1e-9)
    model.save(tmp_path / "other", lam=float(model.path_["lambda"][0]))
    assert load_model(tmp_path / "other").calibration is None  # it was fitted at lambda_


def test_calibration__is_refused_before_anything_is_solved(monkeypatch: pytest.MonkeyPatch) -> None:
    points, labels = blobs()
    with monkeypatch.context() as patch:
        patch.setattr(fitting, "solved", lambda *_, **__: pytest.fail("it was solved"))
        for choices in ({"lam": 0.1}, {"lam": "1/n"}, {"validation": 3}, {"lam": "path", "validation": None}):
            with pytest.raises(ValueError, match=r"^calibration: no blocks are held out to fit it on; give lam="):
                MulticlassSVM(calibration="isotonic", **choices).fit(points, labels)
        with pytest.raises(ValueError, match=r"calibration: expected None or one of isotonic, sigmoid, got 'platt'"):
            MulticlassSVM(lam=0.1, calibration="platt").fit(points, labels)
        for lam in ("auto", "path", [0.1, 0.01]):
            with pytest.raises(
                ValueError, match=r"^calibration: expected at least 10 predicted labels .*, got 6; hold out"
            ):
                MulticlassSVM(lam=lam, validation=0.34, calibration="sigmoid").fit(points, labels)


@pytest.mark.parametrize("method", ["isotonic", "sigmoid"])
def test_calibration__never_costs_a_finished_fit(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = blobs(60)
    model = MulticlassSVM(calibration=method).fit(10.0 * np.eye(3)[y], y)  # all are right
    assert model.calibration_ is not None
    assert model.probabilities(10.0 * np.eye(3)).min() > 0.9

    def refused(*_: Any) -> Any:
        raise ValueError("calibration: too few")

    monkeypatch.setattr(calibrate, "calibration_of", refused)
    with pytest.warns(UserWarning, match=r"^MulticlassSVM: calibration: too few; calibration_ is None$"):
        model.fit(X, y)
    assert (model.calibration_, model.certificate_.holds) == (None, True)
    with pytest.raises(
        ValueError, match=r"^probabilities: none could be fitted, as a warning of fit has said; hold out"
    ):
        model.probabilities(X)


def test_calibration__counts_held_out_blocks_by_their_weights() -> None:
    X, y = blobs(120, seed=3)
    points, weight = X + np.random.default_rng(1).normal(size=X.shape), 1.0 + np.arange(120) % 5
    model = MulticlassSVM(calibration="isotonic", class_weight="balanced").fit(points, y, sample_weight=weight)
    (chosen,) = held_out(0.2, 120, y, 0)
    times = np.repeat(np.flatnonzero(chosen), weight[chosen].astype(int))
    again = MulticlassSVM().problem(points[times], y[times])
    w = model.path_.weights_at(model.lambda_).values
    expected = calibration_of(again, w, "isotonic", "", np.ones(times.size, bool))
    np.testing.assert_allclose(model.calibration_(np.arange(0.0, 2.0, 0.1)), expected(np.arange(0.0, 2.0, 0.1)))
