"""Losses of chains: what a wrong label costs, in units of the training set, and weights of examples."""

from __future__ import annotations

import numpy as np
import pytest

from gapwise.stages.problems import build
from gapwise.stages.problems.chain.costs import balanced_weights
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


@pytest.mark.parametrize(
    ("arrays", "meta", "message"),
    [
        ({}, {"loss": "hamming"}, "loss must be per_sequence or per_token, is 'hamming'"),
        ({"cost": np.zeros((3, 3))}, {}, "not all 0"),
        ({"cost": -COST}, {}, ">= 0"),
        ({"block_weight": np.array([1.0, 0.0])}, {}, "leave out blocks of weight 0"),
    ],
)
def test_build__refuses_what_is_no_loss(arrays: dict[str, np.ndarray], meta: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        made([[0], [1, 2]], arrays, **meta)
