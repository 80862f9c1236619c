"""The n best labellings and max-marginals, against enumeration."""

from __future__ import annotations

import numpy as np
import pytest
from tiny import TINY, all_labels, by_all_methods, chain, instance
from tiny.chain_instances import FORBIDDEN

from gapwise.stages.problems.capabilities import optional_of
from gapwise.stages.problems.compiled_methods import compiled
from gapwise.stages.problems.contract import draw_w, local
from gapwise.stages.problems.protocol import Problem

SCORED = by_all_methods(sorted(name for name in TINY if optional_of(instance(name), "max_marginals") is not None))
RANKED = by_all_methods(sorted(name for name in TINY if optional_of(instance(name), "n_best") is not None))


def listed(problem: Problem, i: int, theta: np.ndarray, m: int) -> tuple[list[list[int]], list[float]]:
    """The m best labellings of block i, and their values."""
    length = int(problem.label_ptr[i + 1] - problem.label_ptr[i])
    labels, values = np.full((m, length), 99, problem.truth.dtype), np.full(m, 1e9)
    count = problem.n_best(i, theta, m, labels, values, problem.ranked_scratch(m))
    return labels[:count].tolist(), values[:count].tolist()


def enumerated(problem: Problem, i: int, theta: np.ndarray) -> list[tuple[float, list[int]]]:
    """All labellings of block i by falling value; of equals, the first label read from the last entry back."""
    every = [(float(theta @ local(problem, i, y)), y.tolist()) for y in all_labels(problem, i)]
    return sorted(every, key=lambda pair: (-pair[0], pair[1][::-1]))


@pytest.mark.parametrize("name", RANKED)
def test_n_best__lists_all_labellings_in_order(name: str) -> None:
    problem, rng = compiled(instance(name)), np.random.default_rng(1)
    for i in range(problem.n):
        size = int(problem.local_ptr[i + 1] - problem.local_ptr[i])
        every = enumerated(problem, i, rng.normal(size=size))
        for m in (1, 2, len(every), len(every) + 5):
            theta = rng.normal(size=size)
            every = enumerated(problem, i, theta)
            labels, values = listed(problem, i, theta, m)
            assert labels == [y for _, y in every[:m]]
            np.testing.assert_allclose(values, [value for value, _ in every[:m]], rtol=1e-12, atol=1e-12)
            assert (np.diff(values) <= 0.0).all()


@pytest.mark.interpreted
@pytest.mark.parametrize("name", RANKED)
def test_n_best__breaks_ties_by_labels_from_the_end(name: str) -> None:
    problem, rng = compiled(instance(name)), np.random.default_rng(2)
    for i in range(problem.n):
        size = int(problem.local_ptr[i + 1] - problem.local_ptr[i])
        for theta in (np.zeros(size), *(rng.integers(3, size=(4, size)).astype(float))):
            every = enumerated(problem, i, theta)
            for m in (3, len(every)):
                assert listed(problem, i, theta, m)[0] == [y for _, y in every[:m]]
            y = np.empty(problem.label_ptr[i + 1] - problem.label_ptr[i], problem.truth.dtype)
            problem.decode(i, theta, y, problem.scratch())
            assert y.tolist() == every[0][1]


@pytest.mark.interpreted
def test_n_best__of_one_allowed_labelling_is_that_alone() -> None:
    forbidden = np.ones_like(FORBIDDEN)
    forbidden[0, 1] = forbidden[1, 0] = forbidden[3, 0] = forbidden[4, 1] = 0  # 0 1 0 1
    problem = compiled(chain(lengths=(2, 4), arrays_too={"forbidden": forbidden}))
    for i, expected in enumerate(([0, 1], [0, 1, 0, 1])):
        theta = np.random.default_rng(i).normal(size=int(problem.local_ptr[i + 1] - problem.local_ptr[i]))
        assert listed(problem, i, theta, 3)[0] == [expected]
        y, out = np.empty(len(expected), np.uint8), np.empty((len(expected), 3))
        problem.max_marginals(i, theta, y, out, problem.ranked_scratch(1))
        assert y.tolist() == expected
        assert (np.isfinite(out).sum(axis=1) == 1).all()
        assert (out[~np.isfinite(out)] == -np.inf).all()


def test_n_best__of_many_labels_begins_with_the_best_pairs() -> None:
    wide = 20
    problem = compiled(chain(lengths=(2, 1), width=wide, classes=wide))
    theta = np.random.default_rng(wide).normal(size=2 * wide + wide * wide)
    every = enumerated(problem, 0, theta)
    assert listed(problem, 0, theta, 50)[0] == [y for _, y in every[:50]]


@pytest.mark.parametrize("name", SCORED)
def test_max_marginals__are_those_of_enumeration(name: str) -> None:
    problem, rng = compiled(instance(name)), np.random.default_rng(4)
    for i in range(problem.n):
        theta = np.empty(int(problem.local_ptr[i + 1] - problem.local_ptr[i]))
        problem.scores(i, draw_w(problem, rng), theta)
        every = all_labels(problem, i)
        worth = [problem.value(i, theta, y) for y in every]
        expected = np.full((every[0].size, problem.labels), -np.inf)
        for y, value in zip(every, worth, strict=True):
            entries = np.arange(y.size), y.astype(int)
            expected[entries] = np.maximum(expected[entries], value)
        y, out = np.empty_like(every[0]), np.empty_like(expected)
        problem.max_marginals(i, theta, y, out, problem.ranked_scratch(1))
        best = expected.max()
        np.testing.assert_allclose(out - out.max(), expected - best, atol=1e-9)
        assert best == pytest.approx(worth[[z.tolist() for z in every].index(y.tolist())], abs=1e-9)
