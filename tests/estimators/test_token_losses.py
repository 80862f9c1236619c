"""`ChainSVM`: losses, weights and constraints, in training and in predictions."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from library import sentences

from gapwise import ChainSVM, load_model

X, Y = sentences()
NAMES = ["D", "N", "V"]
CLOSE = {"lam": 0.05, "tolerance": 1e-7}


def fitted(X: Any = X, y: Any = Y, **choices: Any) -> ChainSVM:
    weight = choices.pop("sample_weight", None)
    return ChainSVM(**CLOSE, **choices).fit(X, y, sample_weight=weight)


def value(model: ChainSVM) -> float:
    return float(model.path_["primal"][0])


def test_loss__per_token_is_the_default_and_another_model() -> None:
    problem = ChainSVM().problem(X, Y)
    np.testing.assert_allclose(problem.scale[::2], np.mean([len(y) for y in Y]))
    np.testing.assert_array_equal(ChainSVM(loss="per_sequence").problem(X, Y).scale[::2], [len(y) for y in Y])
    assert value(fitted()) != pytest.approx(value(fitted(loss="per_sequence")), rel=1e-3)


def test_weights__of_two_are_those_of_sequences_given_twice() -> None:
    """The weight 0 leaves a sequence out, also one whose label no other has."""
    weight = np.array([2.0, 1.0] * 6)
    twice = [i for i, w in enumerate(weight) for _ in range(int(w))]
    for loss in ({}, {"loss": "per_sequence", "label_weights": "balanced"}):
        model = fitted([*X, X[0]], [*Y, ["Z"] * len(Y[0])], sample_weight=3.0 * np.append(weight, 0.0), **loss)
        other = fitted([X[i] for i in twice], [Y[i] for i in twice], **loss)
        assert model.classes_ == NAMES
        assert value(model) == pytest.approx(value(other), rel=1e-6)
        np.testing.assert_allclose(model.transitions_, other.transitions_, atol=1e-3)


def test_weights__of_held_out_sequences_weigh_their_losses() -> None:
    weight = np.linspace(0.1, 3.0, len(X))
    model = ChainSVM(lam=[0.1], tolerance=0.01, validation=0.4, label_weights={"V": 2.0})
    model.fit(X, Y, sample_weight=weight)
    held = np.random.default_rng(0).permutation(len(X))[: round(0.4 * len(X))]
    rest = np.setdiff1d(np.arange(len(X)), held)
    mean_length = np.average([len(Y[i]) for i in rest], weights=weight[rest])
    costs = [
        sum((1 + (b == "V")) * (a != b) for a, b in zip(model.predict([X[i]])[0], Y[i], strict=True)) for i in held
    ]
    expected = np.average(costs, weights=weight[held]) / mean_length
    assert float(model.path_["validation_loss"][0]) == pytest.approx(expected)


def chunks() -> tuple[list[Any], list[list[str]]]:
    """Words that often have the tag I-x, but never after O; alone they say little."""
    rng, X, y = np.random.default_rng(5), [], []
    for _ in range(14):
        tags: list[str] = []
        while len(tags) < 5:
            kind = rng.choice(["x", "z"])
            tags += ["O"] if rng.random() < 0.4 else [f"B-{kind}", f"I-{kind}"]
        y.append(tags)
        X.append([[f"w={tag[-1]}{rng.integers(2)}" if rng.random() < 0.6 else "w=?"] for tag in tags])
    return X, y


def breaks_bio(labels: list[str]) -> bool:
    return any(b[0] == "I" and a[2:] != b[2:] for a, b in pairwise(["O", *labels]))


@pytest.mark.parametrize("constraints", ["bio", "pairs"])
def test_constraints__hold_in_predictions_after_saving_too(tmp_path: Path, constraints: str) -> None:
    X, y = chunks()
    pairs = [(None, "I-x"), (None, "I-z")] + [
        (a, f"I-{kind}") for kind in "xz" for a in ("O", f"B-{'xz'['zx'.index(kind)]}", f"I-{'xz'['zx'.index(kind)]}")
    ]
    rng = np.random.default_rng(1)
    new = [[[f"w={rng.choice(list('xzO?'))}{rng.integers(2)}"] for _ in range(6)] for _ in range(40)]
    free = ChainSVM(lam=0.3, tolerance=0.01).fit(X, y)
    assert any(breaks_bio(labels) for labels in free.predict(new))
    model = ChainSVM(lam=0.3, tolerance=0.01, constraints="bio" if constraints == "bio" else pairs).fit(X, y)
    assert model.certificate_.holds
    assert model.certificate_.verified
    predicted = model.predict(new)
    assert not any(breaks_bio(labels) for labels in predicted)
    model.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model").predict([[["", *token] for token in sentence] for sentence in new])
    assert loaded == predicted


@pytest.mark.parametrize(
    ("choices", "says"),
    [
        ({"loss": "hamming"}, "loss: expected 'per_token' or 'per_sequence', got 'hamming'"),
        ({"label_weights": "even"}, "label_weights: expected 'balanced', a dict from labels to weights, or None"),
        ({"label_weights": {"Z": 1}}, "label_weights: the label 'Z' does not occur in y; known: 'D', 'N', 'V'"),
        ({"costs": np.eye(3)}, r"costs: expected \(3, 3\) numbers >= 0 with a zero diagonal"),
        ({"constraints": "bio"}, "constraints=bio: the label 'D' is none of B-..., I-..., O"),
        ({"constraints": [("D", "N")]}, r"y: sequence \d+, token \d+: the label 'N' may not come right after 'D'"),
    ],
)
def test_choices__that_cannot_be_used_are_named(choices: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        ChainSVM(**choices).fit(X, Y)


@pytest.mark.parametrize(
    ("weight", "says"),
    [
        ([1.0], r"sample_weight: expected 12 numbers, one for each block, got shape \(1,\)"),
        ([1.0] * 11 + [-1.0], "sample_weight: entry 11 is -1; expected a number >= 0"),
        ([0.0] * 12, "sample_weight: all weights are zero"),
    ],
)
def test_weights__that_cannot_be_used_are_named(weight: list[Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        ChainSVM().fit(X, Y, sample_weight=weight)
