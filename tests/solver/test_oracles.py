"""Oracle calls here, on threads and elsewhere: the same bits whatever the division."""

from __future__ import annotations

import numpy as np
import pytest
from single import take_steps
from spreads import elsewhere
from tiny import TINY, by_all_methods

from gapwise.stages.problems.parallel import FEW, MANY, Spread, block_ranges, task_ranges
from gapwise.stages.solver.exact import exact_gaps
from gapwise.stages.solver.methods import method_options
from gapwise.stages.solver.options import CacheOptions, PathOptions
from gapwise.stages.solver.oracles import answers_at
from gapwise.stages.solver.path.walk import begin


@pytest.mark.parametrize("name", by_all_methods())
def test_exact_pass__is_the_same_to_the_bit_elsewhere(name):
    problem = TINY[name]()
    options = method_options(step="pairwise", cache=CacheOptions(kind="gap"), rebase_steps=3 * problem.n)
    solver = begin(problem, options, PathOptions(rule="single", lam=0.3), None, seed=0)
    solver.it.rebase()
    for _ in range(4):
        take_steps(solver)
        solver.it.rebase()
    S = solver.it.state
    assert (S.pool.counts > 1).any()
    here = exact_gaps(problem, S.w, S.pool)
    spread_out = exact_gaps(problem, S.w, S.pool, elsewhere(problem, threads=1))
    for a, b in zip((*here[:4], *here.answers), (*spread_out[:4], *spread_out.answers), strict=True):
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


@pytest.mark.parametrize("name", by_all_methods())
def test_corners_at__answers_for_any_list_of_blocks(name):
    problem = TINY[name]()
    w = np.random.default_rng(1).normal(size=problem.d)
    w = np.clip(w, problem.lower, problem.upper) if problem.lower.size else w
    every = answers_at(problem, w, range(problem.n))
    blocks = np.array([problem.n - 1, 0, 2, 2])
    for spread in (Spread(), elsewhere(problem, threads=1)):
        for some, all_ in zip(answers_at(problem, w, blocks, spread), every, strict=True):
            np.testing.assert_array_equal(some, all_[blocks])


def test_corners_at__no_blocks_are_none():
    problem = TINY["chain"]()
    answers = answers_at(problem, np.zeros(problem.d), np.empty(0, np.int64))
    every = answers_at(problem, np.zeros(problem.d), range(problem.n))
    for nothing, column in zip(answers, every, strict=True):
        assert nothing.shape == (0, *column.shape[1:])
        assert nothing.dtype == column.dtype


def test_ranges__cover_every_block_once_and_depend_on_n_alone():
    for n in (1, 2, FEW, 1000, 10**6):
        for ranges in (task_ranges(n), block_ranges(n)):
            assert [start for start, _ in ranges[1:]] == [stop for _, stop in ranges[:-1]]
            assert (ranges[0][0], ranges[-1][1]) == (0, n)
        assert len(task_ranges(n)) <= MANY
    assert task_ranges(FEW) == [(k, k + 1) for k in range(FEW)]
