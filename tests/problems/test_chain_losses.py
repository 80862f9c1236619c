"""Losses of chains: what a wrong label costs, in units of the training set, and weights of examples."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from tiny import all_labels, feature_matrix, instance, local

from gapwise.stages.problems import build
from gapwise.stages.problems.chain.losses import balanced_weights
from gapwise.stages.problems.protocol import Problem

COST = np.array([[0.0, 2.0, 0.5], [1.0, 0.0, 0.0], [0.25, 3.0, 0.0]])


def made(labels: list[list[int]], arrays: dict[str, np.ndarray] | None = None, **meta: object) -> Problem:
    """Chains over three labels and one attribute besides the biases, whose training set has 2, 5 and 1 of the labels."""
    flat = np.concatenate([np.array(row) for row in labels])
    ptr = np.cumsum([0, *map(len, labels)])
    sparse = {"counts": np.ones(flat.size, int), "ids": np.arange(flat.size) % 4}
    facts = {"classes": 3, "attributes": 4, "label_counts": [2, 5, 1], "n_train": 2}
    return build("chain", {"labels": flat, "labels_ptr": ptr, **sparse, **(arrays or {})}, {**facts, **meta})


def loss(problem: Problem, i: int, labels: list[int]) -> float:
    return float(problem.loss(i, np.array(labels, problem.truth.dtype)))


def test_loss__per_token_is_measured_in_the_length_of_training_sequences() -> None:
    problem = made([[0, 1, 1], [2]], loss="per_token")
    assert loss(problem, 0, [0, 0, 0]) == 2 / 4  # 8 training tokens in 2 sequences
    assert loss(problem, 1, [0]) == problem.least_loss(1) == 1 / 4
    papers = made([[0, 1, 1], [2]])
    assert loss(papers, 0, [0, 0, 0]) == 2 / 3
    assert loss(papers, 1, [0]) == papers.least_loss(1) == 1.0


def test_loss__per_token_has_the_share_of_wrong_tokens_as_its_mean() -> None:
    rng, lengths = np.random.default_rng(0), (4, 1, 7, 3)
    rows = [rng.integers(3, size=T).tolist() for T in lengths]
    counts = np.bincount(np.concatenate(rows), minlength=3).tolist()
    problem = made(rows, loss="per_token", label_counts=counts, n_train=4)
    other = [rng.integers(3, size=T).tolist() for T in lengths]
    wrong = np.mean(np.concatenate(rows) != np.concatenate(other))
    assert np.mean([loss(problem, i, y) for i, y in enumerate(other)]) == pytest.approx(wrong)


def test_loss__of_a_cost_matrix_has_the_truth_in_the_rows() -> None:
    problem = made([[0, 1, 2]], {"cost": COST})
    assert loss(problem, 0, [1, 2, 1]) == pytest.approx((2.0 + 0.0 + 3.0) / 3)
    assert loss(problem, 0, [2, 0, 2]) == pytest.approx((0.5 + 1.0) / 3)
    assert problem.least_loss(0) == 0.0  # label 2 for label 1
    assert made([[0, 0]], {"cost": COST}).least_loss(0) == 0.5 / 2


def test_loss__balanced_has_mean_one_over_the_training_tokens() -> None:
    weights = balanced_weights(np.array([2, 5, 1]))
    for scale in (1e-300, 1e-8, 0.01, 1e8):
        np.testing.assert_allclose(balanced_weights(scale * np.array([2, 5, 1])), weights)
    np.testing.assert_allclose(balanced_weights(np.array([0.5, 0.0])), 1.0)
    np.testing.assert_allclose(weights, [8 / 6, 8 / 15, 8 / 3])
    assert weights @ [2, 5, 1] == pytest.approx(8)
    problem = made([[0, 1, 2]], balanced=True)
    assert loss(problem, 0, [1, 2, 0]) == pytest.approx((8 / 6 + 8 / 15 + 8 / 3) / 3)
    both = made([[0, 1, 2]], {"cost": COST}, balanced=True)
    assert loss(both, 0, [1, 1, 1]) == pytest.approx((2 * 8 / 6 + 3 * 8 / 3) / 3)


def test_loss__of_a_true_label_that_training_lacks_is_one() -> None:
    late = {"decode_only": np.ones(1), "cost": 7.0 * COST}
    problem = made([[3, 0, 4]], late)
    assert loss(problem, 0, [0, 0, 2]) == pytest.approx(2 / 3)


def test_weights__of_examples_do_what_repeating_them_does() -> None:
    """The weighted mean of hinges at any w is the mean over a list in which examples of weight 2 occur twice."""
    plain = instance("chain_costs")
    weight = np.array([0.5, 2.0, 1.0, 0.5])
    np.testing.assert_allclose(plain.scale[::2] * weight, 10 / 4)  # tokens a sequence
    repeated = np.repeat(np.arange(4), (2 * weight).astype(int))
    alone = plain._replace(scale=np.stack([plain.scale[::2] * weight, np.ones(4)], axis=1).reshape(-1))
    rng = np.random.default_rng(1)
    for _ in range(5):
        w = rng.normal(size=plain.d)
        hinges = np.array([hinge(alone, i, w) for i in range(4)])
        weighted = np.mean([hinge(plain, i, w) for i in range(4)])
        assert weighted == pytest.approx(hinges[repeated].mean())


def hinge(problem: Problem, i: int, w: np.ndarray) -> float:
    """By enumeration; max_oracle must find the same."""
    theta, truth = feature_matrix(problem, i).T @ w, problem.truth[problem.label_ptr[i] : problem.label_ptr[i + 1]]
    rows = all_labels(problem, i)
    best = max(problem.loss(i, y) + theta @ (local(problem, i, y) - local(problem, i, truth)) for y in rows)
    y = np.empty_like(truth)
    value = problem.max_oracle(i, theta, y, problem.scratch()) + problem.value(i, theta, y)
    assert value - problem.value(i, theta, truth) == pytest.approx(best)
    return float(best)


def test_tiny__instances_have_what_they_are_for() -> None:
    costs, constrained = instance("chain_costs"), instance("chain_constrained")
    assert costs.unconstrained
    assert costs.costs.values[1:3].tolist() == [1.9, 0.57]
    assert costs.scale[1::2].mean() == 1.0
    assert not constrained.unconstrained
    for i, (a, b) in enumerate(pairwise(constrained.label_ptr)):
        assert 1 < len(all_labels(constrained, i)) < 3 ** (b - a)


@pytest.mark.parametrize(
    ("arrays", "meta", "message"),
    [
        ({}, {"loss": "hamming"}, "loss must be per_sequence or per_token, is 'hamming'"),
        (
            {},
            {"loss": "per_token", "label_counts": [2, 1, 0], "n_train": 0},
            "label_counts of 0 training sequences must count",
        ),
        ({}, {"loss": "per_token", "label_counts": [0, 0, 0], "n_train": 2}, "must count tokens, they sum to 0"),
        ({"cost": np.ones((3, 3))}, {}, "zero diagonal"),
        ({"cost": np.zeros((3, 3))}, {}, "not all 0"),
        ({"cost": COST[:2]}, {}, r"cost must be \(3, 3\)"),
        ({"cost": -COST}, {}, ">= 0"),
        ({"block_weight": np.array([1.0])}, {}, "block_weight must hold 2 numbers > 0"),
        ({"block_weight": np.array([1.0, 0.0])}, {}, "leave out blocks of weight 0"),
    ],
)
def test_build__refuses_what_is_no_loss(arrays: dict[str, np.ndarray], meta: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        made([[0], [1, 2]], arrays, **meta)
