"""Eight doubles at a time: as NumPy has it, and the kernels of chains for few, many and uneven numbers of labels."""

from __future__ import annotations

import numpy as np
import pytest
from numba import config, njit
from numba.core.errors import TypingError

from gapwise.stages.problems import build
from gapwise.stages.problems.chain.sparse import LARGE
from gapwise.stages.problems.moves import score_labels
from gapwise.stages.problems.protocol import JIT, PLAIN
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


@njit(**JIT)
def of_methods(problem, w, theta, y, labels, slots, work, scores):
    """Scores of all labels and of some labellings, and the max-oracle."""
    problem.scores(0, w, theta)
    score_labels(problem, 0, w, labels, slots, work, scores)
    return problem.max_oracle(0, theta, y, problem.scratch())


@pytest.mark.parametrize(
    ("K", "valued", "large"),  # of a large w, rows are fetched early
    [(K, k % 2 == 0, False) for k, K in enumerate(LABELS)] + [pytest.param(33, True, True, marks=pytest.mark.slow)],
)
def test_chain_kernels__are_right_for_any_number_of_labels(K: int, valued: bool, large: bool) -> None:
    rng = np.random.default_rng(K)
    T, p = 5, 12 + (large * LARGE // K if large else 300 * (K % 2))
    counts = np.array([3, 1, 7, 1, 5])
    ids, truth = rng.integers(p - 12, p, size=counts.sum()), rng.integers(0, K, size=T)
    more = {"values": rng.normal(size=ids.size).astype(np.float32)} if valued else {}
    arrays = {"ids": ids, "counts": counts, "labels": truth, "labels_ptr": np.array([0, T]), **more}
    problem = build("chain", arrays, {"classes": K, "attributes": p})
    w = rng.normal(size=p * K + K * K)
    rows = np.zeros((T, p))
    np.add.at(rows, (np.repeat(np.arange(T), counts), ids), more.get("values", np.ones(ids.size)).astype(float))
    nodes, transitions = rows @ w[: p * K].reshape(p, K), w[p * K :].reshape(K, K)

    theta = np.full(T * K + K * K + 3, np.pi)
    labels = rng.integers(0, K, size=(6, T)).astype(np.uint8)
    labels[:, 1], slots = labels[0, 1], np.array([4, 0, 3])
    scores, work, y = np.full(3, np.nan), np.full(T * K + K * K, np.nan), np.zeros(T, np.uint8)
    loss = of_methods(problem, w, theta[:-3], y, labels, slots, work, scores)
    np.testing.assert_allclose(theta[: T * K].reshape(T, K), nodes, atol=1e-12)
    np.testing.assert_array_equal(theta[T * K : -3].reshape(K, K), transitions)
    np.testing.assert_array_equal(theta[-3:], np.pi)
    exact = [nodes[np.arange(T), y].sum() + transitions[y[:-1], y[1:]].sum() for y in labels[slots]]
    np.testing.assert_allclose(scores - scores[0], np.subtract(exact, exact[0]), atol=1e-12)
    costs = np.where(np.arange(K) == truth[:, None], 0.0, 1.0 / T)
    value, best = best_labelling(nodes + costs, transitions)
    assert y.tolist() == best
    assert loss + nodes[np.arange(T), y].sum() + transitions[y[:-1], y[1:]].sum() == pytest.approx(value)
