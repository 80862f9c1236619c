"""Chains over a matrix of tokens beside the same chains over sparse rows."""

from __future__ import annotations

import numpy as np
import pytest
from tiny.chain_instances import dense_arrays

from gapwise.stages.datasets import Blocks
from gapwise.stages.datasets.text.sequences import write_matrix
from gapwise.stages.problems import build
from gapwise.stages.problems.chain import Chain, Dense, Sparse, dense
from gapwise.stages.problems.chain.dense import emissions_of
from gapwise.stages.problems.chain.features import with_biases


def both(width: int = 41) -> tuple[Chain, Chain]:
    """The same blocks: 41 columns are 32, 8 and 1. One block has an example weight."""
    arrays = dense_arrays(width=width)
    lengths, more = np.diff(arrays["labels_ptr"]), {"block_weight": np.array([1.0, 0.5, 2.0, 1.0])}
    rows = np.concatenate([arrays["values"][a : a + T] for a, T in zip(arrays["first"], lengths, strict=True)])
    ids, counts = np.tile(np.arange(width), len(rows)), np.full(len(rows), width)
    flat = with_biases(ids, counts, arrays["labels_ptr"], width + 3, rows.reshape(-1))
    pointers = {name: arrays[name] for name in ("labels", "labels_ptr")}
    facts = {"classes": 3, "attributes": width + 3}
    sparse, dense = build("chain", {**flat, **pointers, **more}, facts), build("chain", {**arrays, **more}, facts)
    assert isinstance(sparse.tokens, Sparse)
    assert isinstance(dense.tokens, Dense)
    return sparse, dense


def stacked(w: np.ndarray) -> np.ndarray:
    """Weights for sparse rows in the order of those for dense ones, with 3 labels."""
    emissions = w[:-9].reshape(-1, 3)
    return np.concatenate([emissions[:-3].T.reshape(-1), emissions[-3:].reshape(-1), w[-9:]])


@pytest.mark.parametrize("width", [3, 41])
def test_scores_norms_and_moves__are_those_of_sparse_rows(width: int) -> None:
    sparse, dense = both(width)
    rng = np.random.default_rng(0)
    w = rng.normal(size=sparse.d)
    np.testing.assert_allclose(dense.gram, sparse.gram, rtol=1e-6)
    square, T = dense.gram[: dense.gram_ptr[1]], int(dense.label_ptr[1])
    rows = dense.tokens.values.reshape(-1, width)[dense.tokens.first[0] : dense.tokens.first[0] + T].astype(np.float64)
    exact = rows @ rows.T + 1.0 + np.diag([float(t == 0) + float(t == T - 1) for t in range(T)])
    np.testing.assert_allclose(square.reshape(T, T), exact, rtol=0.6e-7, err_msg="summed in float64, rounded once")
    for i in range(sparse.n):
        size, T = int(np.diff(sparse.local_ptr)[i]), int(np.diff(sparse.label_ptr)[i])
        theta, other, delta = np.empty(size), np.empty(size), rng.normal(size=size)
        sparse.scores(i, w, theta)
        dense.scores(i, stacked(w), other)
        np.testing.assert_allclose(other, theta, rtol=1e-12, atol=1e-12)
        pushed, ours = np.zeros(sparse.d), np.zeros(sparse.d)
        sparse.push(i, 0.7, delta, pushed)
        dense.push(i, 0.7, delta, ours)
        np.testing.assert_allclose(ours, stacked(pushed), rtol=1e-12, atol=1e-12)
        assert dense.norm2(i, delta) == pytest.approx(ours @ ours / 0.49, rel=1e-5)
        y, z = rng.integers(3, size=(2, T)).astype(np.uint8)
        pushed[:], ours[:] = 0.0, 0.0
        sparse.pair_move(i, 1.3, y, z, delta, pushed)
        dense.pair_move(i, 1.3, y, z, delta, ours)
        np.testing.assert_allclose(ours, stacked(pushed), rtol=1e-12, atol=1e-12)


def test_few_scores__are_those_of_all_labels() -> None:
    _, dense = both()
    w, rng = np.random.default_rng(1).normal(size=dense.d), np.random.default_rng(2)
    for i in range(dense.n):
        size, T = int(np.diff(dense.local_ptr)[i]), int(np.diff(dense.label_ptr)[i])
        labels, slots = rng.integers(3, size=(5, 4)).astype(np.uint8), np.array([4, 1, 2])
        theta, scores = np.empty(size), np.empty(3)
        dense.score_labels(i, w, labels, slots, np.empty(size), scores)
        dense.scores(i, w, theta)
        values = [dense.value(i, theta, labels[k, :T]) for k in slots]
        np.testing.assert_allclose(np.diff(scores), np.diff(values), rtol=1e-12, atol=1e-12)


def test_weights_by_attribute__are_those_of_sparse_rows() -> None:
    w = np.arange(44 * 3 + 9.0)
    np.testing.assert_array_equal(emissions_of(stacked(w), 3, dense=True), emissions_of(w, 3, dense=False))


def test_parts_of_the_blocks__share_the_matrix() -> None:
    rng, start = np.random.default_rng(0), np.array([0, 2, 3, 7])
    matrix, labels = rng.normal(size=(7, 5)).astype(np.float32), np.array([0, 1, 1, 0, 1, 0, 1])
    sink = Blocks("chain")
    write_matrix(sink, lambda *_: None, "train", start, labels, matrix, train=True)
    facts = {"classes": 2, "attributes": 8}
    whole, part = (
        build("chain", arrays, facts)
        for arrays in (sink.arrays("train"), sink.part("train", np.array([False, True, True])))
    )
    assert np.shares_memory(part.tokens.values, matrix)
    assert part.tokens.first.tolist() == [2, 3]
    w, theta, other = rng.normal(size=whole.d), np.empty(12), np.empty(12)
    whole.scores(2, w, theta)
    part.scores(1, w, other)
    np.testing.assert_array_equal(theta, other)
    new = Blocks("chain", decoding=True)
    write_matrix(new, lambda *_: None, "new", start, labels, matrix, train=False)
    assert not build("chain", new.arrays("new"), facts).gram.size


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"values": np.ones((10, 8))},
            r"chain: expected values \(rows, 9\) and first \(4,\), got \(10, 8\) and \(4,\)",
        ),
        ({"first": np.array([0, 3, 4, 9])}, "chain: block 3 has rows that values lacks"),
    ],
)
def test_bad_arrays__are_refused(change: dict[str, np.ndarray], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        build("chain", {**dense_arrays(), **change}, {"classes": 3, "attributes": 12})


def test_long_sequences__have_the_norms_of_short_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    arrays, facts = dense_arrays(), {"classes": 3, "attributes": 12}
    short = build("chain", arrays, facts)
    monkeypatch.setattr(dense, "LONGEST", 1)
    long = build("chain", arrays, facts)
    assert long.gram.size < short.gram.size
    rng = np.random.default_rng(0)
    for i in range(short.n):
        delta = rng.normal(size=int(np.diff(short.local_ptr)[i]))
        np.testing.assert_allclose(long.norm2(i, delta), short.norm2(i, delta), rtol=1e-6)
