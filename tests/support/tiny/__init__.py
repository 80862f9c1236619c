"""Tiny instances of every structure: small enough to enumerate all labellings and to solve as a dense QP.

The default suite solves those that are `COMPILED`; tests marked `interpreted` solve the others, without the compiler. The
instances of a structure are a file ``<structure>_instances.py`` here, with

* ``INSTANCES``: functions that make a problem, by name;
* ``LABELS``: for the name of the problem's class, a function from a problem to the number of values of a label;
* ``LABELLINGS``, if not every row of labels is a labelling: for that name, a function (problem, i, y) that says so.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import numba
import numpy as np
import pytest

from gapwise.stages.problems.contract import local
from gapwise.stages.problems.protocol import Problem
from tiny.blocks import ragged
from tiny.chain_instances import chain, chain_sparse
from tiny.matching_instances import matching, matching_two
from tiny.multiclass_instances import csr, multiclass, multiclass_cone, multiclass_sparse
from tiny.potts import potts, potts_blocks, potts_tree
from tiny.python_oracle_instances import python_oracle, python_oracle_sparse
from tiny.ranking import ranking
from tiny.segmentation_instances import segmentation, segmentation_u8

__all__ = [
    "ALL_TINY", "KINDS", "TINY", "all_labels", "by_all_methods", "chain", "chain_sparse", "csr", "feature_matrix",
    "instance", "local", "matching", "matching_two", "multiclass", "multiclass_cone", "multiclass_sparse", "potts",
    "potts_blocks", "potts_tree", "python_oracle", "python_oracle_sparse", "ragged", "ranking", "segmentation",
    "segmentation_u8",
]  # fmt: skip

END = "_instances"
MODULES = {
    m.name.removesuffix(END): import_module(f"tiny.{m.name}") for m in iter_modules(__path__) if m.name.endswith(END)
}
"""By structure."""

ALL_TINY: dict[str, Callable[[], Problem]] = {
    name: make for _, module in sorted(MODULES.items()) for name, make in module.INSTANCES.items()
}
KINDS = ("chain", "multiclass_cone", "python_oracle_sparse", "segmentation")
"""Instances that differ in what the solver reads: without and with a box, few of many weights, steps by sums."""

COMPILED = {"chain", "chain_sparse", "multiclass", "multiclass_cone"}
"""Instances that the default suite solves by every method that it compiles."""

BY_DEFAULT_METHOD = {"python_oracle", "python_oracle_sparse", "segmentation"}
"""Instances that the default suite solves by the default method: other methods are the same code again."""

TINY = {
    name: make
    for name, make in ALL_TINY.items()
    if (numba.config.DISABLE_JIT and name != "tree") or name in COMPILED | BY_DEFAULT_METHOD
}
"""What the solver solves in this process. Without the compiler an oracle call of trees takes milliseconds."""

LABELS = {name: count for module in MODULES.values() for name, count in module.LABELS.items()}
LABELLINGS = {name: check for module in MODULES.values() for name, check in getattr(module, "LABELLINGS", {}).items()}
LABELS["Potts"] = LABELS["Ranking"] = lambda problem: problem.labels


def by_all_methods(names: Iterable[str] = KINDS) -> list[Any]:
    """Parameters for a test of a method that is not the default one: some are compiled, all interpreted."""
    return [name if name in COMPILED else pytest.param(name, marks=pytest.mark.interpreted) for name in names]


@functools.cache
def instance(name: str) -> Problem:
    """ALL_TINY[name](), created once, for tests that only read it."""
    return ALL_TINY[name]()


def all_labels(problem: Problem, i: int) -> list[np.ndarray]:
    """All labellings of block i, by enumeration."""
    length = int(problem.label_ptr[i + 1] - problem.label_ptr[i])
    name = type(problem).__name__
    values, is_labelling = LABELS[name](problem), LABELLINGS.get(name, lambda problem, i, y: True)
    rows = (np.array(y, dtype=problem.truth.dtype) for y in itertools.product(range(values), repeat=length))
    return [y for y in rows if is_labelling(problem, i, y)]


def feature_matrix(problem: Problem, i: int) -> np.ndarray:
    """B_i (d, p_i), column by column through `push`."""
    p = int(problem.local_ptr[i + 1] - problem.local_ptr[i])
    columns = np.zeros((p, problem.d))
    for j in range(p):
        problem.push(i, 1.0, np.eye(p)[j], columns[j])
    return columns.T
