"""Chains beyond the contract suite: compiled drivers, big indices, ties, build errors, metrics."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from numba import njit
from seqeval.metrics.sequence_labeling import precision_recall_fscore_support
from tiny import TINY, all_labels, chain

from gapwise.stages.model.predict import predict
from gapwise.stages.problems import build
from gapwise.stages.problems.chain import derived, metrics, stand_ins
from gapwise.stages.problems.chain.features import with_biases
from gapwise.stages.problems.chain.metrics import chunk_scores, encode_names
from gapwise.stages.problems.protocol import JIT
from gapwise.stages.solver.check import check_choices
from gapwise.stages.solver.methods import method_options
from gapwise.stages.solver.options import PathOptions


@njit(**JIT)
def compiled_round(problem, i, w, theta, delta, y, out):
    """Every method of the protocol once, in compiled code: loss, value, ||B delta||^2 with delta = m(y) - m(truth)."""
    scratch = problem.scratch()
    problem.scores(i, w, theta)
    loss = problem.max_oracle(i, theta, y, scratch)
    truth = problem.truth[problem.label_ptr[i] : problem.label_ptr[i + 1]]
    problem.add(i, y, 1.0, delta)
    problem.add(i, truth, -1.0, delta)
    problem.push(i, 0.5, delta, out)
    return loss, problem.value(i, theta, y), problem.norm2(i, delta), problem.loss(i, y)


def wide(K: int = 29, T: int = 13, p: int = 40, valued: bool = False):
    """One long block over many labels: T K passes 255, rows of more and of fewer than eight attributes."""
    rng = np.random.default_rng(8)
    rows = [np.flatnonzero(rng.random(p) < share) for share in rng.random(T)]
    values = rng.normal(size=sum(row.size for row in rows)) if valued else None
    flat = with_biases(np.concatenate(rows), np.array([row.size for row in rows]), np.array([0, T]), p + 3, values)
    labels = {"labels": rng.integers(K, size=T), "labels_ptr": np.array([0, T])}
    return build("chain", {**flat, **labels}, {"classes": K, "attributes": p + 3})


def dense_viterbi(nodes, transitions):
    """Best value of a chain by plain dynamic programming; nodes (T, K), transitions (K, K)."""
    best = nodes[0]
    for row in nodes[1:]:
        best = (best[:, None] + transitions).max(axis=0) + row
    return best.max()


@pytest.mark.parametrize("valued", [False, True])
def test_chain__compiled_methods_agree_with_dense_algebra(valued):
    problem = wide(valued=valued)
    K, T = problem.labels, int(problem.label_ptr[1])
    rng = np.random.default_rng(0)
    w = rng.normal(size=problem.d)
    theta, delta, out = np.empty(T * K + K * K), np.zeros(T * K + K * K), np.zeros(problem.d)
    y = np.empty(T, dtype=problem.truth.dtype)
    loss, value, norm2, again = compiled_round(problem, 0, w, theta, delta, y, out)
    x = np.zeros((T, problem.d // K - K))
    tokens = problem.tokens
    np.add.at(x, (np.repeat(np.arange(T), np.diff(tokens.row_ptr)), tokens.ids), tokens.values if valued else 1.0)
    emission, transitions = w[: -K * K].reshape(-1, K), w[-K * K :].reshape(K, K)
    np.testing.assert_allclose(theta[: T * K].reshape(T, K), x @ emission, rtol=1e-9, atol=1e-9)
    augmented = x @ emission + (np.arange(K) != problem.truth[:, None]) / T
    assert loss == again == pytest.approx(np.mean(y != problem.truth))
    assert loss + value == pytest.approx(dense_viterbi(augmented, transitions))
    pushed = np.concatenate([(x.T @ delta[: T * K].reshape(T, K)).reshape(-1), delta[T * K :]])
    np.testing.assert_allclose(out, 0.5 * pushed, atol=1e-9)
    assert norm2 == pytest.approx((pushed**2).sum(), rel=1e-6)
    dense = rng.normal(size=delta.size)
    expected = ((x.T @ dense[: T * K].reshape(T, K)) ** 2).sum() + (dense[T * K :] ** 2).sum()
    assert problem.norm2(0, dense) == pytest.approx(expected, rel=1e-6)
    moved = np.zeros(problem.d)
    problem.push(0, 1.0, dense, moved)
    np.testing.assert_allclose(moved[: -K * K].reshape(-1, K), x.T @ dense[: T * K].reshape(T, K), atol=1e-9)


def test_chain__plain_methods_index_beyond_the_label_type():
    """Labels are uint8; T K is not."""
    problem = wide()
    y = np.full(13, 28, dtype=np.uint8)
    m = np.zeros(int(problem.local_ptr[1]))
    problem.add(0, y, 1.0, m)
    assert problem.value(0, np.arange(m.size) * 1.0, y) == pytest.approx(m @ np.arange(m.size))
    assert m.sum() == 13 + 12


def test_chain__norm_of_a_swap_between_equal_tokens_is_exact():
    """Two equal tokens that exchange labels leave the node weights alone: zero curvature must come out as zero."""
    flat = with_biases(np.array([0, 2, 0, 2, 0, 2, 0, 2]), np.full(4, 2), np.array([0, 4]), 6)
    problem = build("chain", {**flat, "labels": np.zeros(4, int), "labels_ptr": np.array([0, 4])},
                    {"classes": 3, "attributes": 6})  # fmt: skip
    delta = np.zeros(int(problem.local_ptr[1]))
    delta[[3 + 0, 6 + 1]], delta[[3 + 1, 6 + 0]] = 1.0, -1.0
    assert problem.norm2(0, delta) == 0.0


def test_chain__ties_are_broken_the_same_way_every_time():
    problem = TINY["chain"]()
    for i in range(problem.n):
        theta = np.zeros(int(problem.local_ptr[i + 1] - problem.local_ptr[i]))
        y = np.full(int(problem.label_ptr[i + 1] - problem.label_ptr[i]), 9, dtype=problem.truth.dtype)
        problem.decode(i, theta, y, problem.scratch())
        assert (y == 0).all()


def test_chain__oracle_is_exact_with_scores_of_very_different_size():
    """The argmax is found again by comparing to the bit: large scores must not lose the path."""
    problem = TINY["chain"]()
    rng = np.random.default_rng(1)
    for scale in (1e-12, 1.0, 1e12):
        for i in range(problem.n):
            theta = rng.normal(size=int(problem.local_ptr[i + 1] - problem.local_ptr[i])) * scale
            y = all_labels(problem, i)[0]
            problem.decode(i, theta, y, problem.scratch())
            top = max(problem.value(i, theta, other) for other in all_labels(problem, i))
            assert problem.value(i, theta, y) == pytest.approx(top, rel=1e-12)


def arrays(**changes):
    flat = {"labels": np.array([0, 1, 1]), "labels_ptr": np.array([0, 1, 3]), "counts": np.array([1, 2, 1]),
            "ids": np.array([0, 1, 3, 3])}  # fmt: skip
    return {**flat, **changes}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"labels": np.array([0, 1, 2])}, "block 1 has a label outside 0..1"),
        ({"ids": np.array([0, 1, 4, 3])}, "block 1 has an attribute outside 0..3"),
        ({"labels_ptr": np.array([0, 0, 3])}, "block 0 has no tokens"),
        ({"values": np.array([1.0, 1.0, np.nan, 1.0])}, "block 1 has a value that is not finite"),
        ({"counts": np.array([1, 2, 2])}, "ids has 4 entries, expected 5"),
        ({"gram": np.zeros(3), "gram_ptr": np.array([0, 1, 3])}, "gram must hold T"),
    ],
)
def test_build__names_the_block_and_what_is_wrong(changes, message):
    with pytest.raises(ValueError, match=message):
        build("chain", arrays(**changes), {"classes": 2, "attributes": 4})


def test_build__a_split_that_is_only_decoded_may_have_labels_of_its_own():
    late = arrays(labels=np.array([0, 1, 2]), decode_only=np.ones(1))
    problem = build("chain", late, {"classes": 2, "attributes": 4})
    y = np.empty(2, dtype=problem.truth.dtype)
    problem.decode(1, np.zeros(8), y, problem.scratch())
    assert problem.loss(1, y) >= 0.5
    assert problem.loss(1, np.array([1, 1], dtype=np.uint8)) == 0.5


def test_derived__gram_counts_common_attributes_and_repeated_ones():
    block = {"ids": np.array([3, 7, 7, 3, 9]), "counts": np.array([2, 3])}
    np.testing.assert_array_equal(derived(**block)["gram"], [2, 2, 2, 3])
    valued = derived(**block, values=np.array([1.0, 2.0, 0.5, -1.0, 3.0], dtype=np.float32))
    np.testing.assert_allclose(valued["gram"], [5, 0, 0, 10.25])


def test_metrics__count_tokens_and_sequences():
    problem = chain(lengths=(3, 1, 4, 2))
    wrong = problem.truth.copy()
    wrong[[0, 1, 9]] = (wrong[[0, 1, 9]] + 1) % 3
    assert metrics(problem, {}, wrong) == {"token_error": 0.3, "sequence_error": 0.5}
    assert metrics(problem, {}, problem.truth) == {"token_error": 0.0, "sequence_error": 0.0}


def test_metrics__chunks_are_counted_as_conlleval_does():
    """A chunk also opens at an I- tag after a tag of another type: 3 true chunks, 4 found, 2 in common."""
    names = ["O", "B-NP", "I-NP", "B-VP", "I-VP"]
    truth = np.array([1, 2, 0, 3, 4, 1])
    predicted = np.array([1, 2, 0, 4, 2, 1])
    scores = chunk_scores(names, np.array([0, 6]), truth, predicted)
    assert scores["chunk_precision"] == pytest.approx(2 / 4)
    assert scores["chunk_recall"] == pytest.approx(2 / 3)
    assert scores["chunk_f1"] == pytest.approx(4 / 7)
    sentence = chain(lengths=(6,), classes=3)
    with_names = metrics(sentence, {"label_names": encode_names(["B-X", "I-X", "O"])}, sentence.truth)
    assert with_names["chunk_f1"] == 1.0


@pytest.mark.parametrize(("truth", "predicted"), [((), ()), ((1, 2), (0, 0)), ((0, 0), (1, 2))])
def test_metrics__of_empty_sets_are_those_of_conlleval(truth: tuple[int, ...], predicted: tuple[int, ...]):
    names, ptr = ["O", "B-X", "I-X"], np.array([0, len(truth)] if truth else [0])
    problem = SimpleNamespace(n=ptr.size - 1, truth=np.array(truth, int), label_ptr=ptr)
    result = metrics(problem, {"label_names": encode_names(names)}, np.array(predicted, int))
    assert [result[f"chunk_{name}"] for name in ("precision", "recall", "f1")] == [0.0, 0.0, 0.0]
    assert result["token_error"] == (np.mean(np.not_equal(truth, predicted)) if truth else 0.0)


@pytest.mark.parametrize(("letters", "kinds"), [("BI", ["-X", "-Y"]), ("BILU", ["-X", "-Y"]), ("BMES", [""])])
def test_metrics__chunks_are_those_of_seqeval_on_all_sequences(letters, kinds):
    """Random sequences, some of them right, some without chunks; seqeval knows the letters of IOBES."""
    names, rng = [letter + kind for letter in letters for kind in kinds] + ["O"], np.random.default_rng(0)
    told = [name.translate(str.maketrans("LUM", "ESI")) for name in names] if letters != "BI" else names
    for wrong in (0.0, 0.1, 0.3, 1.0) * 10:
        ptr = np.concatenate([[0], np.cumsum(rng.integers(1, 7, 8))])
        truth = rng.integers(0, len(names), ptr[-1]).astype(np.uint8)
        other = rng.integers(0, len(names), truth.size)
        predicted = np.where(rng.random(truth.size) < wrong, other, truth).astype(np.uint8)
        both = [[[told[y] for y in labels[a:b]] for a, b in pairwise(ptr)] for labels in (truth, predicted)]
        expected = precision_recall_fscore_support(*both, average="micro", zero_division=0)[:3]
        np.testing.assert_allclose(
            list(chunk_scores(names, ptr, truth, predicted).values()), expected, rtol=0, atol=1e-12
        )


@pytest.mark.parametrize("most", [40, 10_000])
def test_derived__is_the_product_of_all_rows(most):
    """Of few attributes, of many that mostly occur once, and of some that all tokens have, one of them twice in a token."""
    rng = np.random.default_rng(3)
    counts = rng.integers(0, 5, size=12)
    tokens, alone = np.repeat(np.arange(12), counts), {"ids": np.arange(300, 312), "counts": np.ones(12, np.int64)}
    ids = np.where(rng.random(tokens.size) < 0.3, most - 1, rng.integers(0, most, size=tokens.size))
    ids[:2] = most - 1
    rows = np.zeros((12, most))
    np.add.at(rows, (tokens, ids), 1.0)
    gram = derived(ids=ids, counts=counts)["gram"]
    assert gram.dtype == np.float32
    np.testing.assert_array_equal(gram.reshape(12, 12), rows @ rows.T)
    np.testing.assert_array_equal(derived(**alone)["gram"].reshape(12, 12), np.eye(12))


def test_build__blocks_that_are_only_decoded_need_no_gram_matrix():
    tokens = 200_000
    flat = {"labels": np.zeros(tokens, np.uint8), "labels_ptr": np.array([0, tokens])}
    block = {"ids": np.zeros(tokens, np.int32), "counts": np.ones(tokens, np.int32)}
    none = stand_ins(**block)
    assert none["gram"].size == 0
    bare = {**flat, **block, **none, "gram_ptr": np.zeros(2, np.int64)}
    problem = build("chain", bare, {"classes": 2, "attributes": 4})
    w = np.zeros(problem.d)
    w[1] = 1.0
    labels, losses = predict(problem, w)
    assert labels.all()
    assert losses.tolist() == [1.0]
    check_choices(problem, method_options(), PathOptions())


def test_labels_that_training_lacks__are_not_trained_on():
    problem = build("chain", arrays() | {"decode_only": np.ones(1)}, {"classes": 1, "attributes": 4})
    with pytest.raises(ValueError, match="they can only be decoded"):
        check_choices(problem, method_options(), PathOptions())
