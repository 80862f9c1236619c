"""`validation=5`: lambda by the losses of blocks that each were held out once; and weights of classes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from library import blobs, graphs, sentences
from scipy import sparse
from sklearn.base import clone

from gapwise import ChainSVM, MulticlassSVM, SegmentationSVM
from gapwise.pipeline.estimators.held_out import held_out
from gapwise.stages.choice.rules import picked


def test_folds__hold_every_block_out_once_and_choose_by_all_of_them() -> None:
    X, y = blobs()
    model = MulticlassSVM(validation=3, tolerance=0.01)
    folds = held_out(3, len(X), y, 0)
    assert np.sum(folds, axis=0).tolist() == [1] * len(X)
    labels = np.unique(y, return_inverse=True)[1]
    for fold in folds:  # classes in their shares
        assert np.ptp(np.bincount(labels[fold])) <= 1
    model.fit(X, y)
    lams, losses = (model.path_[name].values for name in ("validated_lambda", "validated_loss"))
    assert model.lambda_ == lams[picked("parabola", lams, losses, model.path_["validated_error"].values)]
    assert model.path_.attrs["n"] == model.refit_.attrs["n"] == len(X)
    k = len(lams) // 2
    apart = []
    for fold in folds:  # by hand
        other = MulticlassSVM(lam="path", validation=None).fit(X[~fold], y[~fold])
        apart.append(other.predict(X[fold], lam=float(lams[k])) != y[fold])
    assert losses[k] == pytest.approx(np.mean(np.concatenate(apart)))


def test_folds__of_sequences_and_of_given_lambdas_in_a_folder(tmp_path: Path) -> None:
    X, y = sentences()
    model = ChainSVM(lam=[0.1, 0.01], validation=4)
    with pytest.warns(UserWarning, match="edge of the λ's that were compared"):
        model.fit(X, y, run_dir=tmp_path / "run")
    assert model.refit_ is None
    assert model.path_.attrs["n"] == len(X)
    assert sorted(path.name for path in (tmp_path / "run").glob("fold-*")) == [f"fold-{k}" for k in range(4)]
    assert model.path_["validated_loss"].shape == (2,)


def test_folds__are_two_or_more_and_no_more_than_blocks() -> None:
    X, y = blobs()
    for validation in (1, len(X) + 1, -3, True):
        with pytest.raises(ValueError, match="validation"):
            MulticlassSVM(validation=validation).fit(X, y)


@pytest.mark.parametrize("kind", [np.asarray, pytest.param(sparse.csr_array, marks=pytest.mark.interpreted)])
def test_class_weight__counts_examples_as_often_as_it_says(kind: type) -> None:
    X, y = blobs()
    classes = np.unique(y)
    twice = np.concatenate([np.arange(len(y)), np.flatnonzero(y == classes[0])])
    lam, exact = 0.05, {"tolerance": 1e-9}
    weighted = MulticlassSVM(lam=lam, class_weight={classes[0]: 2.0}, **exact).fit(kind(X), y)
    copied = MulticlassSVM(lam=lam * len(y) / len(twice), **exact).fit(kind(X[twice]), y[twice])
    np.testing.assert_allclose(weighted.coef_, copied.coef_, atol=1e-4)
    np.testing.assert_allclose(weighted.intercept_, copied.intercept_, atol=1e-4)
    plain = MulticlassSVM(lam=lam, **exact).fit(kind(X), y)
    assert np.abs(plain.coef_ - weighted.coef_).max() > 1e-3


@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_sample_weight__of_two_does_what_giving_an_example_twice_does(class_weight: str | None) -> None:
    """A weight of 0 leaves an example out, also one whose class no other has."""
    X, y = blobs()
    X, y, weight = X[:-1], y[:-1], np.where(np.arange(len(y) - 1) % 4 == 0, 2.0, 1.0)
    twice = np.repeat(np.arange(len(y)), weight.astype(int))
    model = MulticlassSVM(lam=0.05, tolerance=1e-9, class_weight=class_weight)
    copied = clone(model).fit(X[twice], y[twice])
    with_one_more = np.concatenate([X, X[:1]]), np.append(y, 7)
    model.fit(*with_one_more, sample_weight=0.5 * np.append(weight, 0.0))
    np.testing.assert_array_equal(model.classes_, [0, 1, 2])
    np.testing.assert_allclose(model.coef_, copied.coef_, atol=1e-4)
    np.testing.assert_allclose(model.intercept_, copied.intercept_, atol=1e-4)
    assert float(model.path_["primal"][0]) == pytest.approx(float(copied.path_["primal"][0]), rel=1e-7)


@pytest.mark.filterwarnings("ignore:.* was chosen at the .* edge")
def test_sample_weight__goes_with_the_examples_into_held_out_parts_and_folds() -> None:
    X, y = blobs(30)
    weight, calibrated = np.linspace(0.2, 3.0, 30), {"calibration": "isotonic", "validation": 0.5}
    for choices in ({"validation": 3}, calibrated):
        model = MulticlassSVM(eps=0.2, random_state=3, **choices).fit(X, y, sample_weight=weight)
        assert model.certificate_.holds
        assert model.refit_.sizes["block"] == 30
    for make, data in ((ChainSVM, sentences(30)), (SegmentationSVM, graphs(30))):
        assert make(eps=0.2).fit(*data, sample_weight=weight).certificate_.holds
