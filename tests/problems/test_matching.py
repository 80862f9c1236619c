"""Matchings: the oracle against linear programs and enumeration, alignment error rate by hand, refusals of bad arrays."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment, linprog
from tiny import all_labels, instance, matching, ragged
from tiny.matching_instances import is_labelling, matching_blocks

from gapwise.stages.problems import build
from gapwise.stages.problems.matching.assignment import best_matching, workspace
from gapwise.stages.problems.matching.labellings import POSSIBLE, TRUE
from gapwise.stages.problems.matching.metrics import scores
from gapwise.stages.problems.stored import check_supports


def best(gain: np.ndarray, fertility: int, second: np.ndarray) -> np.ndarray:
    """The best matching of all pairs of words, as a 0/1 matrix; gain (J, K), second (J + K,)."""
    J, K = gain.shape
    work, y = workspace(J + 1, K + 2, gain.size + 3), np.empty(J * fertility, np.uint8)  # larger ones have been there
    work[0][: gain.size], work[3][: J + K] = gain.ravel(), second
    begin, column = np.arange(0, J * K + 1, K), np.tile(np.arange(K, dtype=np.int32), J)
    best_matching(begin, 0, J, K, column, fertility, y, work)
    matching = np.zeros((J, K), int)
    for j, entries in enumerate(y.reshape(J, fertility)):
        used = entries[entries > 0].astype(int)
        assert (np.diff(used) > 0).all()
        assert not entries[used.size :].any()
        matching[j, used - 1] = 1
    return matching


def worth(matching: np.ndarray, gain: np.ndarray, second: np.ndarray) -> float:
    twice = np.concatenate([matching.sum(axis=1), matching.sum(axis=0)]) > 1
    return float((matching * gain).sum() - second[twice].sum())


@pytest.mark.parametrize(("shape", "scale"), [((1, 1), 1.0), ((6, 9), 1e-9), ((9, 6), 1e9), ((12, 12), 1.0)])
def test_matching__with_one_link_a_word_is_that_of_scipy(shape, scale):
    rng = np.random.default_rng(0)
    for shift in (-2.0, -0.5, 0.0, 1.0):
        gain = scale * (rng.normal(size=shape) + shift)
        matching = best(gain, 1, np.zeros(sum(shape)))
        assert matching.sum(axis=0).max() <= 1
        padded = np.hstack([gain, np.zeros((shape[0], shape[0]))])  # each word of the first sentence has a null
        rows, columns = linear_sum_assignment(padded, maximize=True)
        assert worth(matching, gain, np.zeros(sum(shape))) == pytest.approx(padded[rows, columns].sum(), rel=1e-12)


@pytest.mark.parametrize("shape", [(3, 2), (5, 7)])
def test_matching__with_two_links_a_word_is_the_best_of_a_linear_program(shape):
    rng = np.random.default_rng(1)
    (J, K), E = shape, shape[0] * shape[1]
    incidence = np.vstack([np.kron(np.eye(J), np.ones(K)), np.kron(np.ones(J), np.eye(K))])
    for price in (0.0, 0.3, 1.0, 5.0):
        gain, second = rng.normal(size=shape), price * rng.random(J + K)
        matching = best(gain, 2, second)
        assert matching.sum(axis=0).max() <= 2
        # links in [0, 1]; second links in [0, 1] make room for one more each
        result = linprog(
            np.concatenate([-gain.ravel(), second]),
            A_ub=np.hstack([incidence, -np.eye(J + K)]),
            b_ub=np.ones(J + K),
            bounds=[(0, 1)] * (E + J + K),
        )
        assert worth(matching, gain, second) == pytest.approx(-result.fun, abs=1e-9)


def test_matching__ties_go_to_null():
    assert not best(np.zeros((3, 4)), 1, np.zeros(7)).any()
    assert not best(np.zeros((3, 4)), 2, np.zeros(7)).any()


def test_matching__refuses_scores_that_it_cannot_maximise():
    problem = matching(seed=6, n=4, fertility=2)
    theta, y = np.zeros(int(problem.local_ptr[1])), np.empty(int(problem.label_ptr[1]), np.uint8)
    theta[0] = np.nan
    with pytest.raises(ValueError, match="a score is not finite"):
        problem.max_oracle(0, theta, y, problem.scratch())
    theta[0], theta[-1] = 0.0, 0.1
    with pytest.raises(ValueError, match="clip its weights to <= 0"):
        problem.decode(0, theta, y, problem.scratch())


@pytest.mark.parametrize("choices", [{"possible": True}, {"seed": 6, "n": 4, "fertility": 2}])
def test_oracle__finds_the_largest_sum_of_loss_and_score(choices):
    problem, rng = matching(**choices), np.random.default_rng(7)
    for i in range(problem.n):
        rows = all_labels(problem, i)
        losses = np.array([problem.loss(i, y) for y in rows])
        theta, y = np.empty(int(np.diff(problem.local_ptr)[i])), np.empty_like(rows[0])
        for scale in (0.0, 0.1, 0.3, 1.0):
            w = scale * rng.normal(size=problem.d)
            w[problem.x.shape[1] :] = -np.abs(w[problem.x.shape[1] :])
            problem.scores(i, w, theta)
            worth = losses + [problem.value(i, theta, row) for row in rows]
            loss = problem.max_oracle(i, theta, y, problem.scratch())
            assert loss + problem.value(i, theta, y) == pytest.approx(worth.max(), abs=1e-12)
            if scale == 0.0:
                assert loss == pytest.approx(losses.max(), abs=1e-12)


def test_loss__charges_each_kind_of_mistake_its_cost():
    costs = {"missed": 3.0, "extra": 1.0, "possible": 0.25}
    block = {
        "x": np.zeros((4, 1), np.float32), "counts": np.array([2, 2]), "column": np.array([0, 1, 0, 1]),
        "role": np.array([TRUE, 0, POSSIBLE, 0], np.uint8), "labels": np.array([1, 0], np.uint8),
        "kind": np.zeros(4, np.uint8),
    }  # fmt: skip
    problem = build("matching", ragged([block]), {"fertility": 1, "kinds": 1, "costs": costs})
    losses = {tuple(y): 4 * problem.loss(0, y) for y in all_labels(problem, 0)}
    assert losses == {(0, 0): 3, (1, 0): 0, (1, 2): 1, (2, 0): 4, (2, 1): 4.25, (0, 1): 3.25, (0, 2): 4}
    assert 4 * problem.least_loss(0) == 0.25


def test_aer__of_a_sentence_by_hand():
    # Och and Ney 2003: S = {00, 11}, P adds 12, 22; found 00, 12, 21, of which one is sure and two are possible
    sure, possible = {(0, 0, 0), (0, 1, 1)}, {(0, 0, 0), (0, 1, 1), (0, 1, 2), (0, 2, 2)}
    predicted = {(0, 0, 0), (0, 1, 2), (0, 2, 1)}
    assert scores(predicted, sure, possible) == {"aer": 1 - 3 / 5, "precision": 2 / 3, "recall": 1 / 2}
    assert scores(predicted, sure, possible - sure) == scores(predicted, sure, possible)
    assert scores(set(), sure, possible) == {"aer": 1.0, "precision": 0.0, "recall": 0.0}
    assert scores(set(), set(), set()) == {"aer": 0.0, "precision": 0.0, "recall": 0.0}
    assert scores(sure, sure, possible)["aer"] == 0.0


@pytest.mark.parametrize("fertility", [1, 2])
def test_forbidden__are_the_rows_that_are_no_matchings(fertility):
    problem = matching(seed=6, n=4, fertility=fertility)
    for i in range(problem.n):
        length = int(np.diff(problem.label_ptr)[i])
        rows = np.array(list(itertools.product(range(problem.labels), repeat=length)))
        forbidden = problem.forbidden(np.full(len(rows), i), rows.ravel(), np.arange(len(rows) + 1) * length)
        np.testing.assert_array_equal(forbidden, [not is_labelling(problem, i, y) for y in rows])
        assert forbidden.any() or length == problem.columns[i] == 1


def test_stored_dual_points__with_two_links_at_one_word_are_refused():
    problem = matching(seed=6, n=4)
    sizes = np.diff(problem.label_ptr)
    i = next(i for i in range(problem.n) if sizes[i] > 1 and all(np.diff(problem.begin)[problem.word_ptr[i] :][:2] > 0))
    label = problem.truth.copy()
    supports = np.arange(problem.n + 1), np.ones(problem.n), np.zeros(problem.n)
    check_supports(problem, *supports, label, problem.label_ptr)
    first, word = problem.label_ptr[i], problem.word_ptr[i]
    here = [problem.column[problem.begin[word + j] : problem.begin[word + j + 1]].tolist() for j in (0, 1)]
    k = next(k for k in here[0] if k in here[1])
    label[first : first + 2] = here[0].index(k) + 1, here[1].index(k) + 1
    with pytest.raises(ValueError, match=f"support_label: block {i}: holds atom {i}, expected labellings that the str"):
        check_supports(problem, *supports, label, problem.label_ptr)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels": [2, 1, 0]}, "labels must name the candidates whose role is true"),
        ({"column": [1, 0, 0, 1, 0, 1]}, "rising within each word"),
        ({"counts": [1, 1, 1]}, "counts name 3 candidates"),
    ],
)
def test_build__names_the_block_that_is_wrong(change, message):
    blocks = matching_blocks()
    wrong = {
        "x": np.zeros((6, 4), np.float32), "counts": np.array([2, 2, 2]), "column": np.array([0, 1, 0, 1, 0, 1]),
        "role": np.array([1, 0, 0, 1, 0, 0], np.uint8), "labels": np.array([1, 2, 0], np.uint8),
        "kind": np.zeros(5, np.uint8),
    }  # fmt: skip
    build("matching", ragged([blocks[0], wrong]), {"fertility": 1, "kinds": 2})
    wrong |= {name: np.array(value, wrong[name].dtype) for name, value in change.items()}
    with pytest.raises(ValueError, match=rf"matching: block 1: .*({message})"):
        build("matching", ragged([blocks[0], wrong]), {"fertility": 1, "kinds": 2})


def test_supports__are_checked_some_blocks_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gapwise.stages.problems.stored.PIECE", 2)
    problem = instance("chain")
    n, last = problem.n, int(problem.label_ptr[-2])
    whole = np.arange(n + 1), np.ones(n), np.zeros(n), problem.truth, problem.label_ptr
    check_supports(problem, *whole)
    for k, name, place, value, block in (
        (1, "support_alpha", 1, np.nan, 1),
        (2, "support_loss", n - 1, -1.0, n - 1),
        (3, "support_label", last, problem.labels, n - 1),
        (4, "label_offset", n - 1, problem.label_ptr[-2] - 1, n - 2),
    ):
        broken = [array.copy() for array in whole]
        broken[k][place] = value
        with pytest.raises(ValueError, match=f"^{name}: block {block}: holds "):
            check_supports(problem, *broken)
