"""Tiny instances of every structure: small enough to enumerate all labellings and to solve as a dense QP.

Every test of the solver runs on every one of them, where the compiler need not do all its work again for another type of
array (`COMPILED_AGAIN`). The instances of a structure are a file ``<structure>_instances.py``
here, or in a folder ``tiny`` on PYTHONPATH, with

* ``INSTANCES``: functions that make a problem, by name;
* ``LABELS``: for the name of the problem's class, a function from a problem to the number of values of a label.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from importlib import import_module
from pkgutil import extend_path, iter_modules

import numba
import numpy as np

from stages.problems.protocol import Problem

__path__ = extend_path(__path__, __name__)

from tiny.blocks import ragged
from tiny.chain_instances import chain, chain_sparse
from tiny.multiclass_instances import csr, multiclass, multiclass_cone, multiclass_sparse
from tiny.potts import potts, potts_blocks, potts_tree
from tiny.python_oracle_instances import python_oracle, python_oracle_sparse
from tiny.segmentation_instances import segmentation, segmentation_u8

__all__ = [
    "ALL_TINY", "TINY", "all_labels", "chain", "chain_sparse", "csr", "feature_matrix", "instance", "local", "multiclass",
    "multiclass_cone", "multiclass_sparse", "potts", "potts_blocks", "potts_tree", "python_oracle", "python_oracle_sparse",
    "ragged", "segmentation", "segmentation_u8",
]  # fmt: skip

END = "_instances"
MODULES = {
    m.name.removesuffix(END): import_module(f"tiny.{m.name}") for m in iter_modules(__path__) if m.name.endswith(END)
}
"""By structure."""

ALL_TINY: dict[str, Callable[[], Problem]] = {
    name: make for _, module in sorted(MODULES.items()) for name, make in module.INSTANCES.items()
}
COMPILED_AGAIN = {"multiclass_sparse", "segmentation_u8"}
"""Instances that differ from another one only in arrays that few methods of the structure read. The solver is compiled for
half a minute for each such type; it solves them where it is not compiled."""

TINY = {name: make for name, make in ALL_TINY.items() if numba.config.DISABLE_JIT or name not in COMPILED_AGAIN}

LABELS = {name: count for module in MODULES.values() for name, count in module.LABELS.items()}
LABELS["Potts"] = lambda problem: problem.labels


@functools.cache
def instance(name: str) -> Problem:
    """ALL_TINY[name](), created once, for tests that only read it."""
    return ALL_TINY[name]()


def all_labels(problem: Problem, i: int) -> list[np.ndarray]:
    """All labellings of block i, by enumeration."""
    length = int(problem.label_ptr[i + 1] - problem.label_ptr[i])
    values = LABELS[type(problem).__name__](problem)
    return [np.array(y, dtype=problem.truth.dtype) for y in itertools.product(range(values), repeat=length)]


def local(problem: Problem, i: int, y: np.ndarray) -> np.ndarray:
    """m_i(y)."""
    m = np.zeros(int(problem.local_ptr[i + 1] - problem.local_ptr[i]))
    problem.add(i, y, 1.0, m)
    return m


def feature_matrix(problem: Problem, i: int) -> np.ndarray:
    """B_i (d, p_i), column by column through `push`."""
    p = int(problem.local_ptr[i + 1] - problem.local_ptr[i])
    columns = np.zeros((p, problem.d))
    for j in range(p):
        problem.push(i, 1.0, np.eye(p)[j], columns[j])
    return columns.T
