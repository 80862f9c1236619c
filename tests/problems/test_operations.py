"""What structures declare of their costs: sound for each, and in step with sizes."""

from __future__ import annotations

import numpy as np
import pytest
from tiny import ALL_TINY, chain, instance, multiclass, potts, ranking

from gapwise.stages.problems.capabilities import declared_operations
from gapwise.stages.problems.contract import ContractError, checked_shapes
from gapwise.stages.problems.operations import PYTHON, SEARCH, Operations, operations_of

EVERY = {**ALL_TINY, "potts": potts, "ranking": ranking}


@pytest.mark.parametrize("name", sorted(EVERY))
def test_operations__are_declared_by_every_structure_and_sound(name):
    problem = EVERY[name]()
    declared = declared_operations(problem)
    assert isinstance(declared, Operations)
    assert all(type(number) is float for number in declared)
    checked_shapes(problem)
    assert operations_of(problem) == declared
    assert operations_of(problem) == operations_of(EVERY[name]()), "sizes say it, no clock"


def test_operations__of_chains_and_classes_are_the_formulas():
    problem = chain()
    tokens, K = problem.label_ptr[-1], problem.labels
    assert operations_of(problem).oracle * problem.n == pytest.approx(problem.row_ptr[-1] * K + tokens * K * K)
    classes = multiclass()
    assert operations_of(classes).oracle == classes.d
    assert operations_of(instance("python_oracle")) == PYTHON


class Bare:
    """The sizes of a structure that declares nothing."""

    local_ptr, label_ptr = np.array([0, 4, 10]), np.array([0, 2, 4])


def test_operations__of_a_structure_without_them_follow_from_sizes():
    assert operations_of(Bare()) == Operations(4 * SEARCH * 7.0, SEARCH * 7.0)


@pytest.mark.parametrize("declared", [(1.0,), (1.0, 0.0), (np.nan, 1.0), (1.0, np.inf), 3.0, ("a", 1.0)])
def test_operations__that_cannot_be_counted_with_break_the_contract(declared, monkeypatch):
    problem = multiclass()
    monkeypatch.setattr(type(problem), "operations", declared)
    with pytest.raises(ContractError, match=r"Multiclass\.operations: expected two finite numbers > 0"):
        checked_shapes(problem)
