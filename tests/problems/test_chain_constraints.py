"""Constraints of chains: oracles, sums and stored dual points know labellings that keep to them, and no others;
losses, in units of the training set, and weights of examples."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from tiny import all_labels, chain, instance, local

from gapwise.stages.problems import build
from gapwise.stages.problems.chain.costs import balanced_weights, breaks, broken
from gapwise.stages.problems.contract import CHECKS, sampled
from gapwise.stages.problems.protocol import Problem
from gapwise.stages.problems.stored import check_supports


def table(K: int, share: float, seed: int) -> np.ndarray:
    """A random table in which label 0 may always occur."""
    forbidden = (np.random.default_rng(seed).random((K + 2, K)) < share).astype(np.uint8)
    forbidden[:, 0] = 0
    return forbidden


def constrained(K: int, share: float, seed: int) -> Problem:
    """Chains of up to four tokens over K labels."""
    return chain(seed, (3, 1, 4 if K < 5 else 3), max(4, K), K, arrays_too={"forbidden": table(K, share, seed)})


def test_broken__says_which_rule_each_token_breaks() -> None:
    """Against a plain loop, over random tables and labels, some of which training lacks."""
    rng, K = np.random.default_rng(0), 4
    for seed in range(8):
        rules, lengths = table(K, 0.4, seed), rng.integers(1, 5, size=6)
        ptr = np.cumsum([0, *lengths])
        labels = rng.integers(K + 1, size=ptr[-1])
        expected = np.full(labels.size, -1)
        for a, b in pairwise(ptr):
            for t in range(a, b):
                if labels[t] == K:
                    continue
                rows = [K + 1] if t == b - 1 else []
                rows += [K] if t == a else [labels[t - 1]] if labels[t - 1] < K else []
                for row in rows:
                    expected[t] = row if rules[row, labels[t]] else expected[t]
        np.testing.assert_array_equal(broken(rules, labels, ptr), expected)
        rows = [(expected[a:b] >= 0).any() for a, b in pairwise(ptr)]
        np.testing.assert_array_equal(breaks(rules, labels, ptr), rows)


@pytest.mark.parametrize(("K", "share", "size"), [(3, 0.5, 1e-9), (3, 0.5, 1e12), (9, 0.7, 1.0)])
def test_oracles__return_the_best_labelling_that_may_occur(K: int, share: float, size: float) -> None:
    """Nine labels are compared eight at a time. Scores may be of any size."""
    for seed in range(3):
        problem, rng = constrained(K, share, seed), np.random.default_rng(seed)
        for i in range(problem.n):
            rows, theta = all_labels(problem, i), size * rng.normal(size=int(np.diff(problem.local_ptr)[i]))
            assert rows[0].size == 1 or len(rows) < K ** rows[0].size
            values = np.array([theta @ local(problem, i, y) for y in rows])
            y = np.empty_like(rows[0])
            loss = problem.max_oracle(i, theta, y, problem.scratch())
            most = max(value + problem.loss(i, row) for value, row in zip(values, rows, strict=True))
            assert not problem.forbidden(np.array([i]), y, np.array([0, y.size])).any()
            assert loss + problem.value(i, theta, y) == pytest.approx(most, rel=1e-12)
            problem.decode(i, theta, y, problem.scratch())
            assert problem.value(i, theta, y) == pytest.approx(values.max(), rel=1e-12)


@pytest.mark.interpreted
def test_marginals__give_nothing_to_what_may_not_occur() -> None:
    problem, rng = constrained(3, 0.5, 1), np.random.default_rng(0)
    for i in range(problem.n):
        T = int(problem.label_ptr[i + 1] - problem.label_ptr[i])
        theta, mu = 100.0 * rng.normal(size=T * 3 + 9), np.empty(T * 3 + 9)
        problem.marginals(i, theta, 2.0, mu, problem.scratch())
        free = np.sum([local(problem, i, y) for y in all_labels(problem, i)], axis=0) > 0
        assert (mu[~free] == 0.0).all()
        assert mu[: T * 3].sum() == pytest.approx(T)


@pytest.mark.interpreted
def test_contract__is_kept_with_constraints_that_the_checks_do_not_know() -> None:
    """`gapwise check` draws labellings itself; it must draw none that may not occur."""
    problem, rng = instance("chain_constrained"), np.random.default_rng(0)
    for i in range(problem.n):
        rivals = sampled(problem, i, rng)
        assert not any(problem.forbidden(np.array([i]), y, np.array([0, y.size])).any() for y in rivals)
        for check in CHECKS.values():
            check(problem, i, rivals, rng)


def test_supports__with_a_labelling_that_may_not_occur_are_refused() -> None:
    problem = instance("chain_constrained")
    wrong = problem.truth.copy()
    wrong[0] = 2  # an I is first
    for labels, ok in ((problem.truth, True), (wrong, False)):
        offsets = np.arange(problem.n + 1), problem.label_ptr
        arguments = (problem, offsets[0], np.ones(problem.n), np.zeros(problem.n), labels, offsets[1])
        if ok:
            check_supports(*arguments)
            continue
        with pytest.raises(ValueError, match="block 0: holds atom 0, expected labellings that the structure allows"):
            check_supports(*arguments)


def test_build__names_a_block_that_is_left_without_a_labelling() -> None:
    forbidden = np.zeros((5, 3), np.uint8)
    forbidden[3], forbidden[4] = (1, 0, 0), (0, 1, 1)  # 0 may not be first, and nothing else last
    arrays = {"labels": np.array([1, 0, 0]), "labels_ptr": np.array([0, 2, 3]), "counts": np.ones(3, int),
              "ids": np.zeros(3, int), "forbidden": forbidden}  # fmt: skip
    with pytest.raises(ValueError, match="chain: block 1: the constraints allow no labelling of 1 tokens"):
        build("chain", arrays, {"classes": 3, "attributes": 4})
    with pytest.raises(ValueError, match=r"chain: forbidden must be \(5, 3\), is \(3, 3\)"):
        build("chain", {**arrays, "forbidden": forbidden[:3]}, {"classes": 3, "attributes": 4})


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
