"""Tiny instances of every structure: small enough to enumerate all labellings and to solve as a dense QP.

Every test of the solver runs on every one of them, where the compiler need not do all its work again for another type of
array (`COMPILED_AGAIN`). The instances of a structure are a file ``<structure>_instances.py``
here, or in the folder ``tiny`` of your own parts (`gapwise.parts`), with

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

from gapwise.parts import with_parts
from gapwise.stages.problems.contract import local
from gapwise.stages.problems.protocol import Problem

__path__ = with_parts(__path__, "tiny")

from tiny.blocks import ragged
from tiny.chain_instances import chain, chain_sparse
from tiny.matching_instances import matching, matching_two
from tiny.multiclass_instances import csr, multiclass, multiclass_cone, multiclass_sparse
from tiny.potts import potts, potts_blocks, potts_tree
from tiny.python_oracle_instances import python_oracle, python_oracle_sparse
from tiny.ranking import ranking
from tiny.segmentation_instances import segmentation, segmentation_u8

__all__ = [
    "ALL_TINY", "TINY", "all_labels", "by_all_methods", "chain", "chain_sparse", "csr", "feature_matrix", "instance",
    "local", "matching", "matching_two", "multiclass", "multiclass_cone", "multiclass_sparse", "once_compiled", "potts",
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
COMPILED_AGAIN = {
    "chain_bigram",
    "chain_bigram_tables",
    "chain_constrained",
    "chain_costs",
    "chain_dense",
    "matching",
    "matching_two",
    "multiclass_sparse",
    "segmentation_u8",
}
"""Instances that the solver solves where it is not compiled, because compiling it takes half a minute for each type: they
differ from another one only in arrays that few methods read, or share the moves of chains. The contract compiles them; fits
solve sequences with costs and constraints by compiled code."""

SOLVED_ELSEWHERE = {"tree"}
"""Instances that tests of their structure solve: an oracle call takes milliseconds where it is not compiled, and compiling
the solver for them half a minute."""

LEFT_OUT = SOLVED_ELSEWHERE if numba.config.DISABLE_JIT else SOLVED_ELSEWHERE | COMPILED_AGAIN
TINY = {name: make for name, make in ALL_TINY.items() if name not in LEFT_OUT}

BY_DEFAULT_METHOD = {"python_oracle", "python_oracle_sparse", "segmentation"}
"""Instances that the default method solves in the default suite, and all others only without the compiler: what they compile
is the same code again, and takes half a minute of both cores for these two types."""

LABELS = {name: count for module in MODULES.values() for name, count in module.LABELS.items()}
LABELLINGS = {name: check for module in MODULES.values() for name, check in getattr(module, "LABELLINGS", {}).items()}
LABELS["Potts"] = LABELS["Ranking"] = lambda problem: problem.labels


def by_all_methods(names: Iterable[str] = sorted(TINY)) -> list[Any]:
    """Parameters for a test of a method that is not the default one."""
    return [pytest.param(name, marks=pytest.mark.interpreted) if name in BY_DEFAULT_METHOD else name for name in names]


def once_compiled(names: Iterable[str]) -> list[Any]:
    """Parameters for a test of mathematics that compiles a function for each type: some are compiled, all interpreted."""
    again = COMPILED_AGAIN | SOLVED_ELSEWHERE
    return [pytest.param(name, marks=pytest.mark.interpreted) if name in again else name for name in names]


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
