"""Lipschitz sampling: by fixed weights, whatever the gaps are, in every method that draws blocks."""

from __future__ import annotations

import numpy as np
import pytest
from dense import psi_and_loss
from single import never, solver_of
from tiny import by_all_methods, instance, multiclass

from gapwise.stages.solver.block.sampling import LEAST, draw, lipschitz_weights
from gapwise.stages.solver.objective import Goal
from gapwise.stages.solver.options import Status

LAM = 0.05


def fixed(name: str) -> np.ndarray:
    """The weights of a solver's blocks, from the running sums that its draws read."""
    return np.diff(solver_of(instance(name), LAM, sampler="lipschitz").it.state.sums, prepend=0.0)


@pytest.mark.parametrize("name", by_all_methods())
def test_weights__are_norms_that_some_labelling_has(name: str) -> None:
    psis, _ = psi_and_loss(instance(name))
    norms = [np.sum(psi**2, axis=1) for psi in psis]
    least = LEAST * np.mean(fixed(name))
    for weight, some in zip(fixed(name), norms, strict=True):
        assert weight == pytest.approx(some[np.argmin(np.abs(some - weight))], rel=1e-6) or weight <= 1.01 * least
        assert weight <= max(some.max(), least) * (1.0 + 1e-6)


def test_weights__of_classes_are_those_of_the_largest_norm() -> None:
    """All wrong classes of an example are equally far from its own."""
    psis, _ = psi_and_loss(instance("multiclass"))
    np.testing.assert_allclose(fixed("multiclass"), [np.sum(psi**2, axis=1).max() for psi in psis])


def test_draws__follow_the_weights_and_no_gap() -> None:
    """Of 20,000 draws, each share is within four standard errors; `order` is empty and not read."""
    solver = solver_of(multiclass(n=9), LAM, sampler="lipschitz")
    solver.it.state.gap[:] = [1.0, *([0.0] * 8)]
    solver.it.rebuild_tree()
    state, flags, none = solver.it.state, solver.it.flags(), np.empty(0, np.int64)
    rng, many = np.random.default_rng(0), 20_000
    counts = np.bincount([draw(state, flags, rng, none, k) for k in range(many)], minlength=9)
    share = lipschitz_weights(solver.problem) / lipschitz_weights(solver.problem).sum()
    assert share.max() > 3.0 * share.min(), "equal weights would show nothing"
    assert (np.abs(counts / many - share) < 4.0 * np.sqrt(share * (1.0 - share) / many)).all()


@pytest.mark.interpreted
def test_weights__are_equal_without_features_and_above_zero_of_a_block_without() -> None:
    problem = multiclass(n=4)
    np.testing.assert_array_equal(lipschitz_weights(problem._replace(norms2=np.zeros(4))), np.ones(4))
    some = lipschitz_weights(problem._replace(norms2=np.array([0.0, 1.0, 2.0, 3.0])))
    np.testing.assert_allclose(some, [LEAST * 3.0, 2.0, 4.0, 6.0])  # features of two classes change


@pytest.mark.interpreted
@pytest.mark.parametrize("choices", [{"method": "mpbcfw", "cache": "gap"}, {"line_search": False, "step": "fw"}])
def test_methods__that_plan_no_order_converge(choices: dict) -> None:
    solver = solver_of(multiclass(n=9), LAM, sampler="lipschitz", max_passes=3000.0, **choices)
    status, point = solver.solve(Goal(0.01), never)
    assert status is Status.CONVERGED
    assert point.gap >= -1e-12
