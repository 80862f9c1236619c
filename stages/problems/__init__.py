"""The structures, one module or package each, all behind `protocol.Problem`.

A structure's module offers

* ``build(arrays, meta)``: the problem over the arrays of one split of a feature store;
* ``derived(**block)``: checks a block's features and returns what to store besides them (a Gram matrix, say);
* ``metrics(problem, arrays, predictions)``: the usual measures of the task, besides the task loss;
* ``CAPABILITIES``, a `capabilities.Capabilities`, if it can do more: tell labels apart, sum over labellings, and so on.

Modules without a ``build`` are not structures but code that structures share.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from gapwise.parts import with_parts
from gapwise.records import Facts
from gapwise.stages.problems.capabilities import Capabilities, capabilities_of

if TYPE_CHECKING:  # it imports numba, which readers of raw data do not need
    import numpy as np

    from gapwise.stages.problems.protocol import Problem

__path__ = with_parts(__path__, "problems")


VERSIONS: dict[str, int] = {}
"""Of structures whose `derived` arrays have changed; others have version 1. It is part of the keys of features."""


def structures() -> list[str]:
    """Names of all structures, sorted; imports their modules."""
    names = [module.name for module in pkgutil.iter_modules(__path__)]
    ours = [name for name in names if hasattr(import_module(f"{__name__}.{name}"), "build")]
    return sorted(ours)


def structure(name: str) -> ModuleType:
    """The module of a structure; ValueError lists the known ones."""
    part = import_module(home_of(name))
    if hasattr(part, "build"):
        return part
    raise _unknown(name)


def home_of(name: str) -> str:
    """Name of the module of a structure, which is not imported; ValueError if there is none."""
    if name in {module.name for module in pkgutil.iter_modules(__path__)}:
        return f"{__name__}.{name}"
    raise _unknown(name)


def _unknown(name: str) -> ValueError:
    known = f"known: {', '.join(structures())}"
    return ValueError(f"unknown structure {name!r}; {known}. What an earlier version has made, make again")


def capabilities(name: str) -> Capabilities:
    """What structure `name` can do beyond `build`, `derived` and `metrics`."""
    return capabilities_of(structure(name))


def calls_python(name: str) -> bool:
    """Whether the oracle of structure `name` is Python code."""
    return capabilities(name).calls_python


def build(name: str, arrays: Mapping[str, np.ndarray], meta: Facts) -> Problem:
    """The problem of structure `name` over the arrays of one split; ValueError if its bounds do not fit its weights.

    Sizes of features are checked (`scale`) unless `meta` says under ``checked`` that featurize has done so.
    """
    from gapwise.stages.problems.scale import Scale  # imports numpy, which lists of runs do not need

    part = structure(name)
    can = capabilities_of(part)
    if "block_weight" in arrays and "block_weight" not in can.whole:
        weighed = ", ".join(other for other in structures() if "block_weight" in capabilities(other).whole)
        raise ValueError(f"{name}: weights of blocks are not known to this structure; these know them: {weighed}")
    if not meta.get("checked", False):
        scale = Scale(name, can)
        scale.see(arrays)
        scale.end()
    problem: Problem = part.build(arrays, meta)
    if problem.lower.shape != problem.upper.shape or problem.lower.shape not in ((0,), (problem.d,)):
        raise ValueError(
            f"{name}: lower has shape {problem.lower.shape} and upper {problem.upper.shape}; expected ({problem.d},) for "
            "both, infinite where there is no bound, or (0,) for both"
        )
    return problem
