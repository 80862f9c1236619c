"""The contract suite: every structure against brute force over all labellings."""

from __future__ import annotations

import numba
import numpy as np
import pytest
from tiny import ALL_TINY, LABELS, all_labels, feature_matrix, local, multiclass, potts_tree, ranking

from gapwise.stages.problems.capabilities import optional_of
from gapwise.stages.problems.contract import CHECKS, ContractError, checked_shapes, draw_w, sampled
from gapwise.stages.problems.multiclass import Multiclass

EXACT = {**ALL_TINY, "ranking": ranking, **({"potts_tree": potts_tree} if numba.config.DISABLE_JIT else {})}
"""Potts oracles are exact on trees; compiling them for these tests alone would take longer than all of the tests. Queries
of a ranking have thousands of labellings, too many for the tests that solve every tiny instance."""


AGAIN = {
    "chain_constrained", "chain_costs", "chain_sparse", "matching_two", "multiclass_cone",
    "python_oracle_sparse", "segmentation_u8",
}  # fmt: skip
"""Instances of classes of which another one is compiled."""


def marks(name):
    """Compiling the oracle of trees takes a quarter of a minute, each time."""
    if name == "tree" and not numba.config.DISABLE_JIT:
        return pytest.mark.slow
    return pytest.mark.interpreted if name in AGAIN else ()


@pytest.fixture(params=[pytest.param(name, marks=marks(name)) for name in sorted(EXACT)])
def problem(request):
    return EXACT[request.param]()


def test_contract__oracles_equal_brute_force(problem):
    rng = np.random.default_rng(3)
    for i in range(problem.n):
        w = draw_w(problem, rng)
        B = feature_matrix(problem, i)
        theta = np.empty(B.shape[1])
        problem.scores(i, w, theta)
        np.testing.assert_allclose(theta, B.T @ w, rtol=1e-6, atol=1e-6)
        labels = all_labels(problem, i)
        values = np.array([theta @ local(problem, i, y) for y in labels])
        losses = np.array([problem.loss(i, y) for y in labels])
        y = np.empty_like(labels[0])
        loss = problem.max_oracle(i, theta, y, problem.scratch())
        assert loss == pytest.approx(problem.loss(i, y), abs=1e-12)
        assert loss + problem.value(i, theta, y) == pytest.approx((values + losses).max(), abs=1e-9)
        problem.decode(i, theta, y, problem.scratch())
        assert problem.value(i, theta, y) == pytest.approx(values.max(), abs=1e-9)


def test_contract__labels_are_as_many_as_the_structure_says(problem):
    assert problem.labels == LABELS[type(problem).__name__](problem)
    assert problem.truth.max() < problem.labels
    assert isinstance(optional_of(problem, "unconstrained"), bool)


def test_contract__least_loss_is_below_that_of_every_wrong_labelling(problem):
    for i in range(problem.n):
        truth = problem.truth[problem.label_ptr[i] : problem.label_ptr[i + 1]]
        other = [y for y in all_labels(problem, i) if not np.array_equal(y, truth)]
        if type(problem).__name__ == "Ranking":  # several rows are the labelling without a swapped pair
            other = [y for y in other if local(problem, i, y).any()]
        wrong = [problem.loss(i, y) for y in other]
        assert 0.0 <= problem.least_loss(i) <= min(wrong) * (1 + 1e-12)
        assert problem.least_loss(i) > 0.0 or min(wrong) == 0.0


def test_contract__holds_against_all_labellings(problem):
    checked_shapes(problem)
    for check in CHECKS.values():
        rng = np.random.default_rng(5)
        for i in range(problem.n):
            check(problem, i, all_labels(problem, i), rng)


def changed(change):
    """A method of a structure that answers, and then changes its argument number `change`, or else what it returns."""

    def of(method):
        def call(self, i, *arguments):
            result = method(self, i, *arguments)
            if change == "result":
                return result + 1.0
            arguments[change][0] += 1
            arguments[change][:] %= 3
            return result

        return call

    return of


def counting(method):
    """A max-oracle whose answer depends on how often it was called."""
    calls = []

    def call(self, i, theta, y, scratch):
        calls.append(i)
        y[0] = len(calls) % self.labels
        return self.loss(i, y)

    return call


BROKEN = {
    "scores": ("features", changed(1), r"scores, push: block 0: got .*, expected"),
    "norm2": ("features", changed("result"), r"norm2: block 0: got"),
    "loss": ("losses", changed("result"), r"loss: block 0: the loss of the truth must be 0, is 1"),
    "least_loss": ("losses", changed("result"), r"least_loss: block \d: .* is no lower bound"),
    "max_oracle": ("oracles", changed(1), r"max_oracle: block 0: "),
    "add": ("features", lambda method: lambda self, i, y, c, out: method(self, i, y, abs(c), out), r"add: block 0"),
    "pair_norm2": ("moves", changed("result"), r"pair_norm2: block 0: got"),
}


def broken(method, change):
    """The tiny multiclass problem with one method changed."""
    kind = type("Broken", (Multiclass,), {method: change(getattr(Multiclass, method))})
    return kind(*multiclass())


@pytest.mark.parametrize("method", BROKEN)
def test_contract__names_the_method_that_breaks_it(method):
    check, change, message = BROKEN[method]
    problem, rng = broken(method, change), np.random.default_rng(5)

    def all_blocks():
        for i in range(problem.n):
            CHECKS[check](problem, i, all_labels(multiclass(), i), rng)

    with pytest.raises(ContractError, match=rf"^Broken\.{message}"):
        all_blocks()


def test_contract__sees_an_oracle_that_does_not_repeat_itself():
    problem = broken("max_oracle", counting)
    with pytest.raises(ContractError, match="block 0: gave different answers for the same theta"):
        CHECKS["repeatable"](problem, 0, [], np.random.default_rng(5))


def test_contract__samples_find_an_oracle_that_returns_the_truth():
    """Without all labellings at hand: the decoded ones and random rows show it."""

    def truthful(method):
        def call(self, i, theta, y, scratch):
            y[0] = self.truth[i]
            return 0.0

        return call

    problem, rng = broken("max_oracle", truthful), np.random.default_rng(5)
    with pytest.raises(ContractError, match="max_oracle: block 0: "):
        CHECKS["oracles"](problem, 0, sampled(problem, 0, rng), rng)
