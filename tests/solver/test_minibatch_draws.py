"""Which blocks a mini-batch contains, and which sizes are allowed."""

from __future__ import annotations

import numpy as np
import pytest
from parts_of import method_of
from single import solver_of
from tiny import multiclass

from gapwise.stages.problems.parallel import Spread
from gapwise.stages.solver.methods import method_options
from gapwise.stages.solver.options import SAMPLERS, CacheOptions


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("cache", ["none", "gap"])
def test_batches__are_of_distinct_blocks_and_leave_the_tree_as_the_gaps_say(sampler, cache) -> None:
    problem = multiclass(n=20)
    batches = []

    def call(fn, split, w, parts, places):
        batches.append(np.concatenate(parts))
        return [fn(problem, w, part) for part in parts]

    choices = {"sampler": sampler, "cache": cache, "rebase_steps": 50}
    solver = solver_of(problem, 0.01, refresh_every=0, spread=Spread(elsewhere=call), batch_size=8, **choices)
    solver.rebase()
    if sampler in ("gap", "max_gap"):
        solver.iterate.state.gap[3:] = 0.01
        solver.iterate.rebuild_tree()
    for _ in range(4):
        method_of(solver).take_steps(-1.0)
        tree = solver.iterate.state.tree.copy()
        solver.iterate.rebuild_tree()
        np.testing.assert_array_equal(solver.iterate.state.tree, tree)
    assert {batch.size for batch in batches} >= {8}
    assert all(np.unique(batch).size == batch.size for batch in batches)
    if sampler in ("gap", "max_gap"):
        assert batches[0][:3].tolist() == [0, 1, 2], "blocks whose gap is not known come first"


def test_uniform_batches__are_drawn_without_favour() -> None:
    problem = multiclass(n=5)
    solver = solver_of(problem, 0.01, refresh_every=0, sampler="uniform", step="fw", batch_size=3, rebase_steps=3)
    seen = np.zeros((3, 5))

    def call(fn, split, w, parts, places):
        for number, part in enumerate(parts):
            seen[number, part[0]] += 1.0
        return [fn(problem, w, part) for part in parts]

    solver.rebase()
    solver.ledger.spread = Spread(elsewhere=call)
    for _ in range(600):
        method_of(solver).take_steps(-1.0)
    assert seen.sum(axis=1).tolist() == [600.0] * 3
    np.testing.assert_allclose(seen / 600, 0.2, atol=4.0 * np.sqrt(0.16 / 600))


def test_options__refuse_sizes_that_cannot_be() -> None:
    with pytest.raises(ValueError, match=r"solver\.batch_size: expected an integer >= 1, got 0"):
        method_options(cache=CacheOptions(kind="gap"), batch_size=0).check()
    with pytest.raises(TypeError, match="batch_size"):
        method_options("accelerated", batch_size=2)
