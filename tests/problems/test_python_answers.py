"""Answers of an oracle in Python during a run: refused with method and block, never wrapped, cut off or passed on; parts."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from lying import lying
from memory_sink import read
from python_task import Greedy, Lying, Signs

from gapwise import StructuredModel, StructuredSVM
from gapwise.pipeline.estimators import examples
from gapwise.stages.datasets import open_dataset
from gapwise.stages.model.predict import predict
from gapwise.stages.problems import build
from gapwise.stages.problems.oracle import part_of
from gapwise.stages.solver.oracles import answers_at

DURING_A_RUN = {
    "float": r"Lying\.max_oracle: block 2: .*must be integers 0, ..., 2, got float64",
    "wraps": r"Lying\.max_oracle: block 2: .*must be 0, ..., 2, got",
    "exit": r"Lying\.max_oracle: block 2: it called sys\.exit\(0\)",
    "NaN features": r"Lying\.features: block 2: .*must be finite, entry 1 is NaN",
    "negative loss": r"Lying\.loss: block 2: .*must be finite and >= 0, got -",
}


@pytest.mark.parametrize("how", DURING_A_RUN)
def test_call__refuses_what_cannot_be_used(how: str) -> None:
    problem = lying(how, block=2)
    with pytest.raises(ValueError, match=DURING_A_RUN[how]):
        answers_at(problem, np.ones(problem.d), range(problem.n))


def test_labels__reach_the_class_with_a_sign() -> None:
    """They are stored as uint8, of which 2 y - 1 is 255 for y = 0."""
    sink, facts = read(open_dataset("python_oracle", {"oracle": "python_task:Signs"}))
    problem, oracle = build("python_oracle", sink.arrays("train"), facts), Signs("train")
    assert problem.truth.dtype == np.uint8
    for i, y in itertools.product(range(problem.n), itertools.product(range(2), repeat=2)):
        phi = np.zeros(2)
        problem.add(i, np.array(y, np.uint8), 1.0, phi)
        np.testing.assert_array_equal(phi, oracle.x[i] * (2.0 * np.array(y) - 1.0))
        assert problem.loss(i, np.array(y, np.uint8)) == np.mean(np.array(y) != oracle.truths[i])


def test_labels__of_an_estimators_user_reach_the_model_with_a_sign(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    class Sees(StructuredModel):
        d = 1

        def features(self, x, y):
            return [x * (2 * y[0] - 1)]

        def loss(self, y, other):
            seen.append(2 * y[0] - 1)
            return float(y[0] != other[0])

        def max_oracle(self, x, y, w):
            seen.append(2 * y[0] - 1)
            return [1]

        def decode(self, x, w):
            return np.array([1], np.uint8)

        def least_loss(self, x, y):
            seen.append(y[0] - 1)
            return 1.0

    y = np.zeros((1, 1), np.uint8)
    monkeypatch.setitem(examples.LENT, -1, {"train": examples.Lent(Sees(), [3.0], y)})
    oracle = examples.Examples("train", -1)
    oracle.loss(0, np.array([1])), oracle.max_oracle(0, np.zeros(1)), oracle.least_loss(0)
    monkeypatch.setattr(StructuredSVM, "predict", lambda self, X: [np.array([1])])
    assert StructuredSVM(Sees()).score([3.0], y) == 0.0
    assert seen == [-1, -1, -1, -1]


def test_weights__of_another_size_do_not_reach_compiled_code() -> None:
    problem = lying("")
    with pytest.raises(ValueError, match=r"weights: have shape \(3,\), expected \(7,\)"):
        predict(problem, np.ones(3))


@pytest.mark.parametrize("answer", ["x", None, [1.0], True, math.nan, -1.0, 10**400])
def test_least_loss__that_is_no_number_names_method_and_block(answer: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Lying, "least_loss", lambda self, i: answer)
    with pytest.raises(ValueError, match=r"^Lying\.least_loss: block 2: "):
        lying("").least_loss(2)


@pytest.mark.parametrize("answer", [0, 0.5, math.inf])
def test_least_loss__may_be_any_number_from_zero(answer: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Lying, "least_loss", lambda self, i: answer)
    assert lying("").least_loss(2) == answer


def test_part__declares_what_the_whole_declares(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Greedy("train")
    for name, value in {"accuracy": 0.8, "approximate": True, "lower": 0.0, "upper": 2.0}.items():
        monkeypatch.setattr(Greedy, name, value)
    part = part_of(whole, np.array([2, 0]))
    assert (part.d, part.labels) == (whole.d, whole.labels)
    assert (part.accuracy, part.approximate, part.lower, part.upper) == (0.8, True, 0.0, 2.0)


def test_part__answers_for_its_blocks_under_their_new_numbers() -> None:
    whole, w = Greedy("train"), np.linspace(-1.0, 1.0, Greedy("train").d)
    part = part_of(whole, np.array([2, 0]))
    assert len(part) == 2
    for new, old in enumerate([2, 0]):
        np.testing.assert_array_equal(part.truth(new), whole.truth(old))
        np.testing.assert_array_equal(part.max_oracle(new, w), whole.max_oracle(old, w))
