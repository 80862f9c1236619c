"""Eight doubles at a time: as NumPy has it, and the kernels of chains for few, many and uneven numbers of labels."""

from __future__ import annotations

import numpy as np
import pytest
from numba import config, njit
from numba.core.errors import TypingError

from gapwise.stages.problems.chain.kernels import LARGE, chain_scores, viterbi
from gapwise.stages.problems.chain.moves import few_scores
from gapwise.stages.problems.protocol import PLAIN
from gapwise.stages.problems.simd import (
    add,
    broadcast,
    equal_bits,
    larger,
    load,
    multiply,
    store,
    subtract,
)

LABELS = (1, 2, 7, 8, 9, 26, 33, 70)


@njit(**PLAIN)
def combined(a, b, c, out):
    store(out, 3, larger(add(load(a, 1), multiply(broadcast(c), load(b, 2))), subtract(load(b, 0), load(a, 0))))
    return equal_bits(load(out, 3), load(out, 4))


def test_packed__is_what_numpy_computes() -> None:
    rng = np.random.default_rng(0)
    a, b, out = rng.normal(size=11), rng.normal(size=11), np.zeros(13)
    bits = combined(a, b, 0.3, out)
    expected = np.maximum(a[1:9] + 0.3 * b[2:10], b[:8] - a[:8])
    np.testing.assert_array_equal(out, np.concatenate([np.zeros(3), expected, np.zeros(2)]))
    assert bits == 0
    steps = np.array([1.0, 1, 2, 2, 2, 0, 3, 3, 0, 0, 0])
    assert combined(np.zeros(11), steps, 0.0, out) == 0b1001101  # which of them equal the next


@pytest.mark.skipif(bool(config.DISABLE_JIT), reason="types are only checked where there is a compiler")
def test_packed__takes_rows_of_doubles_only() -> None:
    array = np.zeros(9, np.float32)
    with pytest.raises(TypingError, match="contiguous one-dimensional array of float64"):
        combined(array, array, 0.3, np.zeros(13))


def best_labelling(nodes: np.ndarray, transitions: np.ndarray) -> tuple[float, list[int]]:
    """Value and labels of the best sequence, the plain way."""
    values, back = nodes[0], []
    for node in nodes[1:]:
        table = values[:, None] + transitions
        back.append(table.argmax(axis=0))
        values = table.max(axis=0) + node
    labels = [int(values.argmax())]
    for row in back[::-1]:
        labels.append(int(row[labels[-1]]))
    return float(values.max()), labels[::-1]


@pytest.mark.parametrize(
    ("K", "valued", "large"),  # of a large w, rows are fetched early
    [(K, k % 2 == 0, False) for k, K in enumerate(LABELS)] + [pytest.param(33, True, True, marks=pytest.mark.slow)],
)
def test_chain_kernels__are_right_for_any_number_of_labels(K: int, valued: bool, large: bool) -> None:
    rng = np.random.default_rng(K)
    T, p = 5, 12 + large * LARGE // K
    counts = np.array([3, 0, 7, 1, 5])
    row_ptr = np.concatenate([[0], np.cumsum(counts)])
    ids = rng.integers(p - 12, p, size=counts.sum()).astype(np.uint32 if large else np.uint8)
    values = rng.normal(size=ids.size).astype(np.float32) if valued else np.empty(0, np.float32)
    w = rng.normal(size=p * K + K * K)
    rows = np.zeros((T, p))
    for t in range(T):
        entries = slice(row_ptr[t], row_ptr[t + 1])
        np.add.at(rows[t], ids[entries], values[entries].astype(float) if valued else 1.0)
    nodes, transitions = rows @ w[: p * K].reshape(p, K), w[p * K :].reshape(K, K)

    theta = np.full(T * K + K * K + 3, np.pi)
    chain_scores(ids, values, row_ptr, 0, T, K, w, p * K, theta[:-3])
    np.testing.assert_allclose(theta[: T * K].reshape(T, K), nodes, atol=1e-12)
    np.testing.assert_array_equal(theta[T * K : -3].reshape(K, K), transitions)
    np.testing.assert_array_equal(theta[-3:], np.pi)

    labels = rng.integers(0, K, size=(6, T)).astype(np.uint8)
    labels[:, 1], slots = labels[0, 1], np.array([4, 0, 3])
    scores, work = np.full(3, np.nan), np.full(T * K, np.nan)
    few_scores(ids, values, row_ptr, 0, T, K, w, p * K, labels, slots, work, scores)
    exact = [nodes[np.arange(T), y].sum() + transitions[y[:-1], y[1:]].sum() for y in labels[slots]]
    np.testing.assert_allclose(scores - scores[0], np.subtract(exact, exact[0]), atol=1e-12)

    truth = rng.integers(0, K, size=T)
    y, bonus = np.zeros(T, np.int64), 0.7
    viterbi(theta[:-3], T, K, bonus, truth, 0, y, np.full(2 * T * K, np.nan))
    loss = np.full((T, K), bonus)
    loss[np.arange(T), truth] = 0.0
    value, labels = best_labelling(nodes + loss, transitions)
    assert y.tolist() == labels
    scores = (nodes + loss)[np.arange(T), y].sum() + transitions[y[:-1], y[1:]].sum()
    assert scores == pytest.approx(value)
