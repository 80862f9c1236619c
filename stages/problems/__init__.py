"""The structures, one module or package each, all behind `protocol.Problem`.

A structure's module offers

* ``build(arrays, meta)``: the problem over the arrays of one split of a feature store;
* ``derived(**block)``: checks a block's features and returns what to store besides them (a Gram matrix, say);
* ``metrics(problem, arrays, predictions)``: the usual measures of the task, besides the task loss;
* ``confusion(problem, arrays, meta, predictions)``, if single labels mean something: their names, and a matrix (labels,
  labels) of how many tokens, pixels or examples of each true label (row) are predicted as which;
* ``stand_ins(**block)``, if `derived` takes long: arrays of the same names and sizes for blocks that are only decoded;
* ``decoded(arrays, meta, w)``, if blocks can be decoded without their truth and without a compiler: (labels, label_ptr);
* ``calls_python = True`` if its oracle is Python code, which holds the GIL: threads then gain nothing;
* ``for_training(block)`` if a training block differs from the same block in a test split: what to store of it;
* ``MARGINALS = True`` if it sums over labellings, too (`protocol.Summable`): exponentiated gradient needs it;
* ``WHOLE`` if its readers write arrays with a row a block at once: the names of those arrays;
* ``ROWS`` if they also write rows of different lengths at once: the pointer's name, then those of the arrays it divides.

Modules without a ``build`` are not structures but code that structures share. Installed packages may announce structures of
their own (`installed`).
"""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from gapwise.parts import with_parts
from gapwise.stages.problems.installed import STRUCTURES, announced, installed_module

if TYPE_CHECKING:  # it imports numba, which readers of raw data do not need
    import numpy as np

    from gapwise.stages.problems.protocol import Problem

__path__ = with_parts(__path__, "problems")


def structures() -> list[str]:
    """Names of all structures, sorted; imports those of Gapwise and of one's own parts."""
    names = [module.name for module in pkgutil.iter_modules(__path__)]
    ours = [name for name in names if hasattr(import_module(f"{__name__}.{name}"), "build")]
    return sorted({*ours, *announced(STRUCTURES)})


def structure(name: str) -> ModuleType:
    """The module of a structure; ValueError lists the known ones."""
    if name in {module.name for module in pkgutil.iter_modules(__path__)}:
        found = import_module(f"{__name__}.{name}")
        if hasattr(found, "build"):
            return found
    elsewhere = installed_module(STRUCTURES, name)
    if elsewhere is not None:
        return elsewhere
    raise ValueError(f"unknown structure {name!r}; known: {', '.join(structures())}")


def calls_python(name: str) -> bool:
    """Whether the oracle of structure `name` is Python code."""
    return bool(getattr(structure(name), "calls_python", False))


def build(name: str, arrays: Mapping[str, np.ndarray], meta: Mapping[str, Any]) -> Problem:
    """The problem of structure `name` over the arrays of one split; ValueError if its bounds do not fit its weights."""
    problem: Problem = structure(name).build(arrays, meta)
    if problem.lower.shape != problem.upper.shape or problem.lower.shape not in ((0,), (problem.d,)):
        raise ValueError(
            f"{name}: lower has shape {problem.lower.shape} and upper {problem.upper.shape}; expected ({problem.d},) for "
            "both, infinite where there is no bound, or (0,) for both"
        )
    return problem
