"""Exact passes of the audit compare the max-oracle's answers with labellings at hand."""

from __future__ import annotations

import numpy as np
import pytest
from tiny import TINY, all_labels, instance, multiclass
from tiny.python_oracle_instances import lying

from gapwise.stages.certify.oracle import OracleError, compare_stored, exact_pass
from gapwise.stages.problems.capabilities import optional_of
from gapwise.stages.problems.contract import local
from gapwise.stages.problems.multiclass import Multiclass

SCALES = (1e-8, 1.0, 1e8)


def draw(problem, size: float = 1.0) -> np.ndarray:
    w = size * np.random.default_rng(5).normal(size=problem.d)
    return np.clip(w, problem.lower, problem.upper) if problem.lower.size else w


def every_labelling(problem) -> tuple[np.ndarray, ...]:
    """Supports that hold all labellings of all blocks, with random weights: offset, alpha, label, label_offset."""
    rows = [all_labels(problem, i) for i in range(problem.n)]
    offset = np.concatenate([[0], np.cumsum([len(block) for block in rows])])
    flat = [y for block in rows for y in block]
    alpha = np.concatenate([np.random.default_rng(len(block)).dirichlet(np.ones(len(block))) for block in rows])
    return offset, alpha, np.concatenate(flat), np.concatenate([[0], np.cumsum([y.size for y in flat])])


@pytest.mark.parametrize("name", sorted(TINY))
def test_pass__lets_an_exact_oracle_be(name: str) -> None:
    problem, size = instance(name), 1e8
    w = draw(problem, size)
    answers = exact_pass(problem, w, decode=True)
    supports = every_labelling(problem)
    inside = compare_stored(problem, w, answers, supports)
    offset, alpha, label, label_offset = supports
    for i in range(problem.n):
        theta, mu = np.empty(int(problem.local_ptr[i + 1] - problem.local_ptr[i])), 0.0
        problem.scores(i, w, theta)
        for a in range(offset[i], offset[i + 1]):
            mu = mu + alpha[a] * local(problem, i, label[label_offset[a] : label_offset[a + 1]])
        assert inside[i] == pytest.approx(theta @ mu, rel=1e-9, abs=1e-9 * (1.0 + np.abs(theta) @ np.abs(mu)))
    assert (answers.hinges >= -1e-9 * (1.0 + np.abs(answers.most))).all()


@pytest.mark.parametrize(("name", "size"), [("chain", 1e-8), ("segmentation", 1e8)])
def test_pass__compares_with_the_labellings_of_the_dual_point(name: str, size: float) -> None:
    problem = instance(name)
    w = draw(problem, size)
    answers = exact_pass(problem, w, decode=False)
    answers.most[-1] -= 1e-3 * abs(answers.most[-1])
    with pytest.raises(OracleError, match=f"^block {problem.n - 1}: .* a labelling of the stored dual point "):
        compare_stored(problem, w, answers, every_labelling(problem))


class Truthful(Multiclass):
    """Max-oracle and decoding both return the truth."""

    def max_oracle(self, i, theta, y, scratch):
        y[0] = self.truth[i]
        return 0.0

    def decode(self, i, theta, y, scratch):
        y[0] = self.truth[i]


@pytest.mark.parametrize("scale", SCALES)
def test_pass__compares_with_other_labellings_where_any_row_is_one(scale: float) -> None:
    honest = multiclass()
    rows = honest.rows._replace(x=scale * honest.rows.x)
    problem = Truthful(*honest._replace(rows=rows, norms2=scale**2 * honest.norms2))
    with pytest.raises(
        OracleError, match=r"^block \d: .* the true labelling (of another block|with one entry changed) 1,"
    ):
        exact_pass(problem, np.zeros(problem.d), decode=True)
    with pytest.raises(OracleError, match=r"^block \d: .* the true labelling "):
        exact_pass(problem, draw(problem, 1.0 / scale), decode=False)


@pytest.mark.parametrize("how", ["all truth", "least"])
def test_pass__compares_an_oracle_in_python_with_its_own_answers_only(how: str) -> None:
    """Rows of labels need not be labellings there: the truth and what the oracle itself decodes are."""
    problem = lying(how)
    assert not optional_of(problem, "unconstrained")
    if how == "all truth":
        exact_pass(problem, draw(problem), decode=True)
    else:
        with pytest.raises(OracleError, match=r"the true labelling"):
            exact_pass(problem, draw(problem), decode=False)
