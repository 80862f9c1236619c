"""Margins, gaps and n best labellings of blocks, against enumeration."""

from __future__ import annotations

import numpy as np
import pytest
from tiny import all_labels, instance
from tiny.chain_instances import FORBIDDEN, chain

from gapwise.stages.model.confidence import (
    n_best_of,
    refuse_without_lists,
    refuse_without_margins,
    scores_of,
)
from gapwise.stages.model.predict import predict
from gapwise.stages.problems.contract import draw_w
from gapwise.stages.problems.parallel import Spread
from gapwise.stages.problems.protocol import Problem

KINDS = ("chain", "chain_constrained", "multiclass", "segmentation")


def worths(problem: Problem, i: int, w: np.ndarray) -> list[tuple[float, list[int]]]:
    """Score and labels of all labellings of block i, the best first."""
    theta = np.empty(int(problem.local_ptr[i + 1] - problem.local_ptr[i]))
    problem.scores(i, w, theta)
    every = [(float(problem.value(i, theta, y)), y.tolist()) for y in all_labels(problem, i)]
    return sorted(every, key=lambda pair: -pair[0])


@pytest.mark.parametrize("kind", KINDS)
def test_margins__are_what_the_best_other_labelling_lacks(kind: str) -> None:
    problem = instance(kind)
    w = draw_w(problem, np.random.default_rng(6))
    scores = scores_of(problem, w)
    assert scores.table.shape == (0, problem.labels)
    np.testing.assert_array_equal(scores.labels, predict(problem, w)[0])
    for i in range(problem.n):
        every = worths(problem, i, w)
        best, y = every[0]
        margins = scores.margins[problem.label_ptr[i] : problem.label_ptr[i + 1]]
        for t, margin in enumerate(margins.tolist()):
            others = [value for value, z in every if z[t] != y[t]]
            assert margin == pytest.approx(best - others[0] if others else np.inf, abs=1e-9)
        assert margins.min() == pytest.approx(best - every[1][0], abs=1e-9)


def test_table__has_the_margins_in_it_and_is_the_same_in_pieces() -> None:
    problem = instance("chain_constrained")
    w = draw_w(problem, np.random.default_rng(7))
    scores = scores_of(problem, w, table=True)
    two = -np.sort(-scores.table, axis=1)[:, :2]
    np.testing.assert_array_equal(scores.margins, np.maximum(two[:, 0] - two[:, 1], 0.0))
    halves = Spread(map_ranges=lambda fn, ranges: [fn(start, stop) for start, stop in ranges])
    for one, other in zip(scores, scores_of(problem, w, halves, table=True), strict=True):
        np.testing.assert_array_equal(one, other)


def test_margin__is_infinite_where_no_other_label_is_allowed() -> None:
    forbidden = np.ones_like(FORBIDDEN)
    forbidden[0, 1] = forbidden[1, 0] = forbidden[3, 0] = forbidden[4, 1] = 0
    problem = chain(lengths=(2, 4), arrays_too={"forbidden": forbidden})
    scores = scores_of(problem, draw_w(problem, np.random.default_rng(8)))
    assert scores.labels.tolist() == [0, 1, 0, 1, 0, 1]
    assert (scores.margins == np.inf).all()


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "segmentation"])
def test_n_best__are_the_first_of_all(kind: str) -> None:
    problem, n = instance(kind), 4
    w = draw_w(problem, np.random.default_rng(9))
    lists = n_best_of(problem, w, n)
    for i in range(problem.n):
        every = worths(problem, i, w)
        assert lists[i].tolist() == [y for _, y in every[:n]]
        np.testing.assert_allclose(lists.scores[i, : lists.count(i)], [value for value, _ in every[:n]], atol=1e-9)
        assert (lists.scores[i, lists.count(i) :] == -np.inf).all()
        assert lists.count(i) == min(n, len(every))
        length, first = len(every[0][1]), n * int(problem.label_ptr[i])
        assert not lists.labels[
            first + lists.count(i) * length : first + n * length
        ].any()  # no junk that differs from run to run
    np.testing.assert_array_equal(lists.rank(0), predict(problem, w)[0])
    last = np.concatenate([lists[i][n - 1 if lists.count(i) == n else 0] for i in range(problem.n)])
    np.testing.assert_array_equal(lists.rank(n - 1), last)


def test_structures_without__are_refused_in_one_sentence() -> None:
    refuse_without_margins("segmentation")
    refuse_without_lists("chain", 3)
    with pytest.raises(
        ValueError, match=r"^margins: the structure tree has none, .*; these have: chain, multiclass, segm"
    ):
        refuse_without_margins("tree")
    with pytest.raises(
        ValueError, match=r"^n_best: the structure segmentation lists no .*; these do: chain, multiclass$"
    ):
        refuse_without_lists("segmentation", 3)
    with pytest.raises(ValueError, match=r"^n_best: expected a whole number >= 1, got"):
        refuse_without_lists("chain", 0)
