"""Chains with attributes of pairs of labels: scores by enumeration, the chain that they contain, and compiled methods."""

from __future__ import annotations

import numba
import numpy as np
import pytest
from tiny import all_labels, chain, instance
from tiny.chain_instances import chain_bigram

from gapwise.stages.problems import build
from gapwise.stages.problems.chain import BigramChain, Chain
from gapwise.stages.problems.chain.features import with_always
from gapwise.stages.problems.compiled_methods import compiled
from gapwise.stages.problems.contract import CHECKS, sampled
from gapwise.stages.problems.moves import pair_move, pair_norm2, score_labels
from gapwise.stages.problems.protocol import Problem


def scored(problem: Problem, i: int, w: np.ndarray) -> np.ndarray:
    theta = np.full(int(np.diff(problem.local_ptr)[i]), np.nan)
    problem.scores(i, w, theta)
    return theta


def test_score__is_the_sum_over_attributes_and_pairs_of_labels():
    problem, rng = instance("chain_bigram"), np.random.default_rng(0)
    K, p = problem.labels, 4 + 3
    w = rng.normal(size=problem.d)
    E, W = w[: p * K].reshape(p, K), w[p * K :].reshape(problem.pairs, K, K)
    for i in range(problem.n):
        first, theta = problem.label_ptr[i], scored(problem, i, w)
        for y in all_labels(problem, i):
            total = 0.0
            for t, label in enumerate(y.tolist(), first):
                total += E[problem.ids[problem.row_ptr[t] : problem.row_ptr[t + 1]], label].sum()
                pairs = problem.pair_ids[problem.pair_ptr[t] : problem.pair_ptr[t + 1]]
                assert (pairs.size > 0) == (t > first)
                total += W[pairs, y[t - first - 1], label].sum()
            assert problem.value(i, theta, y) == pytest.approx(total)


@pytest.mark.interpreted
def test_always_alone__is_the_chain_without_pair_attributes():
    lengths, rng = (3, 1, 4), np.random.default_rng(1)
    plain, other = chain(3, lengths), chain_bigram(3, lengths, pairs=1)
    assert (type(plain), type(other), other.d) == (Chain, BigramChain, plain.d)
    w = rng.normal(size=plain.d)
    for i in range(plain.n):
        labels, moves = np.array(all_labels(plain, i)), []
        a, b = labels[rng.integers(len(labels), size=2)]
        answers = []
        for problem in (plain, other):
            theta, y = scored(problem, i, w), np.empty_like(a)
            loss = problem.max_oracle(i, theta, y, problem.scratch())
            few, table, z = np.empty(len(labels)), np.empty((a.size, 3)), np.empty_like(a)
            score_labels(problem, i, w, labels, np.arange(len(labels)), np.empty_like(theta), few)
            problem.max_marginals(i, theta, z, table, problem.ranked_scratch(1))
            mu, moved = np.empty_like(theta), w.copy()
            log_sum, mean = problem.marginals(i, theta, 0.7, mu, problem.scratch())
            rows, values = np.empty((5, a.size), a.dtype), np.empty(5)
            count = problem.n_best(i, theta, 5, rows, values, problem.ranked_scratch(5))
            norm2 = pair_norm2(problem, i, a, b, np.empty_like(theta))
            pair_move(problem, i, 0.3, a, b, np.empty_like(theta), moved)
            moves.append(moved)
            answers.append([loss, log_sum, mean, norm2, *y, *z, *(few - few[0]), *table.flat, *mu[: 3 * a.size]])
            answers[-1] += [*rows[:count].flat, *values[:count]]
        np.testing.assert_allclose(answers[1], answers[0], atol=1e-9)
        np.testing.assert_allclose(moves[1], moves[0], atol=1e-12)


@pytest.mark.slow
@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="tests the compiled methods")
def test_compiled_methods__keep_the_contract():
    problem, rng = compiled(instance("chain_bigram")), np.random.default_rng(2)
    for name in ("features", "oracles", "moves", "scores of few labellings"):  # others are called as of `Chain`
        CHECKS[name](problem, 0, sampled(problem, 0, rng, most=4), rng)


def arrays(**more) -> dict[str, np.ndarray]:
    """A sequence of two tokens and one of one; the second token has the pair attributes 0 and "always", 1."""
    some = {"ids": [0, 0, 0], "counts": [1, 1, 1], "pair_ids": [0, 1], "pair_counts": [0, 2, 0]}
    given = {"labels": [0, 1, 0], "labels_ptr": [0, 2, 3], **some, **more}
    return {name: np.array(array) for name, array in given.items()}


FACTS = {"classes": 2, "attributes": 1, "pair_attributes": 2}


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"pair_ids": [2, 1]}, r"block 0 has a pair attribute outside 0\.\.1"),
        ({"pair_ids": [1, 0]}, r'block 0 has pair attributes at its first token, or lacks "always" at another'),
        ({"pair_counts": [0, 3, 0]}, "pair_ids has 2 entries, expected 3"),
        ({"pair_gram": np.zeros(2), "pair_gram_ptr": [0, 1, 2]}, "pair_gram must hold T"),
    ],
)
def test_build__refuses_pair_attributes_that_cannot_be(more, message):
    assert isinstance(build("chain", arrays(), FACTS), BigramChain)
    with pytest.raises(ValueError, match=message):
        build("chain", arrays(**more), FACTS)


def test_always__comes_last_at_all_but_first_tokens():
    rows = with_always(np.array([0, 1, 0]), np.array([0, 2, 0, 0, 1]), np.array([0, 2, 5]), 3)
    assert rows["pair_ids"].tolist() == [0, 1, 2, 2, 0, 2]
    assert rows["pair_counts"].tolist() == [0, 3, 0, 1, 2]
