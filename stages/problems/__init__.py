"""The structures: one file each, all behind `protocol.Problem`."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pkgutil import extend_path
from types import ModuleType
from typing import Any

import numpy as np

from stages.problems.protocol import Problem

__path__ = extend_path(__path__, __name__)  # parts of one's own, in a folder on PYTHONPATH that repeats this tree

STRUCTURES = {
    "chain": "stages.problems.chain",
    "multiclass": "stages.problems.multiclass",
    "python_oracle": "stages.problems.python_oracle",
    "segmentation": "stages.problems.segmentation",
}

CALL_PYTHON = {"python_oracle"}
"""Structures whose oracle is Python code: it holds the GIL, so threads do not run it side by side."""


def calls_python(name: str) -> bool:
    """Whether the oracle of structure `name` is Python code."""
    return name in CALL_PYTHON


def structure(name: str) -> ModuleType:
    """The module of a structure; ValueError lists those there are."""
    if name not in STRUCTURES:
        raise ValueError(f"unknown structure {name!r}; there are: {', '.join(sorted(STRUCTURES))}")
    return import_module(STRUCTURES[name])


def build(name: str, arrays: Mapping[str, np.ndarray], meta: Mapping[str, Any]) -> Problem:
    """The problem of structure `name` over the arrays of one split."""
    problem: Problem = structure(name).build(arrays, meta)
    return problem
