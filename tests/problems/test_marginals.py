"""Sums over all labellings, against enumeration."""

from __future__ import annotations

import numpy as np
import pytest
from tiny import ALL_TINY, all_labels, by_all_methods, instance, local

from gapwise.stages.problems.capabilities import optional_of
from gapwise.stages.problems.protocol import Problem

SUMMABLE = by_all_methods(sorted(name for name in ALL_TINY if optional_of(instance(name), "marginals") is not None))


def enumerated(problem: Problem, i: int, theta: np.ndarray, c: float) -> tuple[np.ndarray, float, float]:
    """(mean of m_i(y), log of the sum, mean loss) with weights exp(c L_i(y) + <theta, m_i(y)>)."""
    labels = all_labels(problem, i)
    m = np.array([local(problem, i, y) for y in labels])
    losses = np.array([problem.loss(i, y) for y in labels])
    scores = m @ theta + c * losses
    top = scores.max()
    log_sum = top + np.log(np.exp(scores - top).sum())
    weights = np.exp(scores - log_sum)
    return weights @ m, log_sum, weights @ losses


@pytest.mark.parametrize("name", SUMMABLE)
@pytest.mark.parametrize("size", [1.0, 1000.0])
def test_marginals__equal_those_of_enumeration(name: str, size: float) -> None:
    """Of scores of a thousand, too, whose exponentials no number holds."""
    problem, rng = instance(name), np.random.default_rng(1)
    for i in range(problem.n):
        theta = size * rng.normal(size=int(problem.local_ptr[i + 1] - problem.local_ptr[i]))
        c = size * float(rng.normal())
        mu = np.full(theta.size, np.nan)
        log_sum, loss = problem.marginals(i, theta, c, mu, problem.scratch())
        expected, expected_log, expected_loss = enumerated(problem, i, theta, c)
        np.testing.assert_allclose(mu, expected, atol=1e-11)
        assert log_sum == pytest.approx(expected_log, rel=1e-12, abs=1e-12)
        assert loss == pytest.approx(expected_loss, abs=1e-11)


@pytest.mark.parametrize("size", [1.0, 300.0])
def test_marginals__of_chains_are_those_of_a_markov_chain(size: float) -> None:
    """Each token's weights sum to 1 and to those of its pairs, however large the scores."""
    problem, rng = instance("chain"), np.random.default_rng(2)
    K, T = problem.labels, int(problem.label_ptr[3] - problem.label_ptr[2])
    theta, mu = size * rng.normal(size=T * K + K * K), np.empty(T * K + K * K)
    problem.marginals(2, theta, 5.0, mu, problem.scratch())
    nodes, pairs = mu[: T * K].reshape(T, K), mu[T * K :].reshape(K, K)
    np.testing.assert_allclose(nodes.sum(axis=1), 1.0, atol=1e-14)
    np.testing.assert_allclose(pairs.sum(axis=1), nodes[:-1].sum(axis=0), atol=1e-13)
    np.testing.assert_allclose(pairs.sum(axis=0), nodes[1:].sum(axis=0), atol=1e-13)
