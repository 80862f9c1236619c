"""Several answers of one max-oracle call: the m best loss-augmented labellings, against enumeration."""

from __future__ import annotations

import numpy as np
import pytest
from tiny import ALL_TINY, all_labels, by_all_methods, chain, instance, python_oracle
from tiny.chain_instances import FORBIDDEN

from gapwise.stages.problems import contract
from gapwise.stages.problems.capabilities import lists_several
from gapwise.stages.problems.compiled_methods import compiled
from gapwise.stages.problems.contract import local
from gapwise.stages.problems.protocol import Problem
from gapwise.stages.solver.oracles import answers_at

LISTING = sorted(name for name in ALL_TINY if lists_several(instance(name)))


def listed(problem: Problem, i: int, theta: np.ndarray, m: int) -> tuple[list[tuple[int, ...]], list[float]]:
    """The answers to one call, and what they are worth."""
    length = int(problem.label_ptr[i + 1] - problem.label_ptr[i])
    labels, losses = np.full((m, length), 99, problem.truth.dtype), np.full(m, 1e9)
    count = problem.max_oracles(i, theta, m, labels, losses, problem.max_oracles_scratch(m))
    for y, loss in zip(labels[:count], losses, strict=False):
        assert loss == problem.loss(i, y)
    worth = [float(loss + problem.value(i, theta, y)) for y, loss in zip(labels[:count], losses, strict=False)]
    return [tuple(y) for y in labels[:count].tolist()], worth


def answer(problem: Problem, i: int, theta: np.ndarray) -> tuple[tuple[int, ...], float]:
    """What `max_oracle` says, and its loss."""
    y = np.empty(problem.label_ptr[i + 1] - problem.label_ptr[i], problem.truth.dtype)
    loss = problem.max_oracle(i, theta, y, problem.scratch())
    return tuple(y.tolist()), loss


def thetas(problem: Problem, i: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Scores of random weights, and such with many ties."""
    theta = np.empty(int(problem.local_ptr[i + 1] - problem.local_ptr[i]))
    made = []
    for w in (rng.normal(size=problem.d), np.zeros(problem.d), rng.integers(2, size=problem.d).astype(float)):
        problem.scores(i, np.clip(w, problem.lower, problem.upper) if problem.lower.size else w, theta)
        made.append(theta.copy())
    return made


@pytest.mark.parametrize("name", by_all_methods(LISTING))
def test_max_oracles__are_the_best_of_enumeration(name: str) -> None:
    problem, rng = compiled(instance(name)), np.random.default_rng(1)
    for i in range(problem.n):
        every = all_labels(problem, i)
        for theta in thetas(problem, i, rng):
            best = sorted((problem.loss(i, y) + theta @ local(problem, i, y) for y in every), reverse=True)
            first, loss = answer(problem, i, theta)
            for m in (1, 2, 3, 7, len(every), len(every) + 3):
                labels, worth = listed(problem, i, theta, m)
                assert len(labels) == len({*labels}) == min(m, len(every))
                assert labels[0] == first
                assert loss == problem.loss(i, np.array(labels[0], problem.truth.dtype))
                np.testing.assert_allclose(worth, best[:m], rtol=1e-9, atol=1e-9)


def test_max_oracles__keep_to_constraints() -> None:
    forbidden = np.ones_like(FORBIDDEN)
    forbidden[0, 1] = forbidden[1, 0] = forbidden[1, 1] = forbidden[3, 0] = forbidden[4, 1] = 0
    problem = compiled(chain(lengths=(2, 4), arrays_too={"forbidden": forbidden}))
    for i, allowed in enumerate(({(0, 1)}, {(0, 1, 0, 1), (0, 1, 1, 1)})):
        theta = np.random.default_rng(i).normal(size=int(problem.local_ptr[i + 1] - problem.local_ptr[i]))
        labels, _ = listed(problem, i, theta, 5)
        assert {*labels} == allowed


# -- a user's oracle --------------------------------------------------------------------------------------------------
WRONG = {
    "float": r"ListedPairs\.max_oracles: block 0: its entries must be integers 0, ..., 2, got float64",
    "again": r"ListedPairs\.max_oracles: block 0: the labellings must be different",
    "many": r"ListedPairs\.max_oracles: block 0: the answer must be from 1 to \d labellings, got \d",
    "reversed": r"ListedPairs\.max_oracles: block 0: lists .*; expected 1 to 2 different ones, \[.*\] first",
}


@pytest.mark.parametrize("how", WRONG)
def test_max_oracles__of_a_user_are_checked_one_by_one(how: str) -> None:
    with pytest.raises(ValueError, match=WRONG[how]):
        python_oracle("ListedPairs", how=how)


@pytest.mark.parametrize(
    ("how", "message"),
    [("again", WRONG["again"]), ("reversed", "one of its further labellings scores .* above the first")],
)
def test_max_oracles__of_a_user_are_checked_during_a_run(how: str, message: str, monkeypatch) -> None:
    monkeypatch.setattr("gapwise.stages.problems.oracle_check.try_oracle", lambda problem: 0)
    problem = python_oracle("ListedPairs", how=how)
    with pytest.raises(ValueError, match=message):
        answers_at(problem, np.ones(problem.d), range(problem.n), m=3)


def test_max_oracles__of_a_user_keep_the_contract() -> None:
    problem, rng = python_oracle("ListedPairs"), np.random.default_rng(4)
    assert lists_several(problem)
    assert not lists_several(python_oracle())
    for i in range(problem.n):
        every, theta = all_labels(problem, i), rng.normal(size=problem.d)
        contract.several_answers_are_best(problem, i, every, rng)
        best = sorted((problem.loss(i, y) + theta @ local(problem, i, y) for y in every), reverse=True)
        np.testing.assert_allclose(listed(problem, i, theta, 20)[1], best, atol=1e-12)
