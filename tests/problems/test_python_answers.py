"""Answers of an oracle in Python during a run: refused with method and block, never wrapped, cut off or passed on; parts."""

from __future__ import annotations

import itertools
import logging
import math

import numpy as np
import pytest
import python_task
from memory_sink import read
from python_task import Greedy, Lying, Signs
from tiny.python_oracle_instances import lying

from gapwise import StructuredModel, StructuredSVM
from gapwise.pipeline.estimators import examples
from gapwise.stages.datasets import DataError, open_dataset
from gapwise.stages.datasets.python_oracle import PythonOracleReader
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


def features(**arguments: object) -> tuple:
    return read(open_dataset("python_oracle", {"oracle": "python_task:Lying", "arguments": arguments}))


REFUSED = {
    "truth": r"Lying\.max_oracle: block 0: at w = 0 \[.*\] is worth .* but the method's own answer 0; .* let `features` or",
    "least": r"Lying\.max_oracle: block 0: at w = 0 \[.*\] is worth",
    "without loss": r"Lying\.max_oracle: block \d: at .* \[.*\] is worth",
    "random": r"Lying\.max_oracle, decode: block 0: gave different answers for the same theta",
    "wraps": r"Lying\.max_oracle: block 0: .*must be 0, ..., 2, got",
    "exit": r"Lying\.max_oracle: block 0: it called sys\.exit\(0\)",
    "complex features": r"Lying\.features: train block 0: .*must be real numbers, got complex128",
    "NaN features": r"Lying\.features: train block 0: .*must be finite, entry 1 is NaN",
}


@pytest.mark.parametrize("how", REFUSED)
def test_reader__refuses_an_oracle_that_cannot_be_right(how: str) -> None:
    with pytest.raises(DataError, match=rf"dataset\.oracle: {REFUSED[how]}"):
        features(how=how, n=6)


@pytest.mark.parametrize("block", [0, 5])
def test_reader__tries_the_first_and_the_last_block(block: int) -> None:
    with pytest.raises(DataError, match=f"max_oracle: block {block}: at w = 0"):
        features(how="truth", n=6, block=block)


def test_reader__takes_labellings_without_features_for_none_of_the_block() -> None:
    sink, facts = features(how="only the truth has features", n=6)
    assert facts["d"] == 7
    assert len(sink.arrays("train")["labels"]) == 12


@pytest.mark.parametrize("declares", [False, True])
def test_reader__says_that_files_are_not_seen_unless_they_are_declared(caplog, monkeypatch, declares: bool) -> None:
    if declares:
        monkeypatch.setattr(python_task.Lying, "files", classmethod(lambda cls, **arguments: ()), raising=False)
    with caplog.at_level(logging.WARNING, logger="gapwise"):
        features(n=6)
    assert ("python_task:Lying does not define files()" in caplog.text) is not declares


@pytest.mark.parametrize("given", ["new.txt", "../new", "", "two words"])
def test_new_input__that_cannot_be_a_split_is_refused(given: str) -> None:
    reader, meta = PythonOracleReader, {"oracle": "my:Own"}
    assert reader.read_new(["new-1"], meta).raw == "new-1"
    assert reader.read_new(['{"split": "new"}'], meta).raw == {"split": "new"}
    with pytest.raises(DataError, match=r"my:Own reads its inputs itself; expected the name of a split"):
        reader.read_new([given], meta)
