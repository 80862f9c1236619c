"""Compiled drivers: functions over any problem, cached on disk, recompiled when a source they depend on changes."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from pathlib import Path

from gapwise import parts
from gapwise.stages.problems.inner import MODE, own_index
from gapwise.stages.problems.kernel_types import Kernel
from gapwise.stages.problems.protocol import Problem
from gapwise.stages.problems.user_code import own_files

ROOMS = ("problems", "solver")
"""Packages of `stages` that contain compiled code."""


@functools.cache
def sources_fingerprint(problem_class: type) -> str:
    """Hash of all sources that code compiled for a structure depends on.

    numba's disk cache checks only the file of the cached function. A driver that closes over this string is recompiled
    whenever a file that it may call into has changed: every file of `ROOMS`, parts that belong there
    (`gapwise.parts`), and the files of the structure itself, wherever its class is defined: its module or package,
    and what they import from the same folder (`user_code.own_files`).
    """
    return parts.digest_of(_sources(problem_class), MODE)


def _sources(problem_class: type) -> dict[str, Path]:
    """The files, under names that do not depend on where the folders are."""
    stages = Path(__file__).parents[1]
    files = {str(file.relative_to(stages)): file for room in ROOMS for file in (stages / room).rglob("*.py")}
    files |= parts.sources(*parts.KERNELS)
    own = Path(inspect.getfile(problem_class))
    if own in files.values():
        return files
    top = sys.modules.get(problem_class.__module__.partition(".")[0])
    if getattr(top, "__file__", None):
        theirs = own_files(sys.modules[problem_class.__module__])
    else:  # a folder without __init__.py: what lies beside the module
        theirs = {str(file.relative_to(own.parent)): file for file in own.parent.rglob("*.py")}
    return {**files, **{f"own/{name}": file for name, file in theirs.items()}, own.name: own}


def driver(build: Callable[[str], Kernel]) -> Callable[[Problem], Kernel]:
    """Decorate `build(fingerprint) -> compiled function`; the result maps a problem to the function for its structure.

    The compiled function must close over `fingerprint` (a bare mention is enough): numba hashes closure cells into the
    key of its disk cache.
    """

    @functools.cache
    def built(structure: type) -> Kernel:
        fingerprint = sources_fingerprint(structure)
        return _with_own_cache(build(fingerprint), structure, fingerprint)

    @functools.wraps(build)
    def of(problem: Problem) -> Kernel:
        return built(type(problem))

    return of


def _with_own_cache(function: Kernel, structure: type, fingerprint: str) -> Kernel:
    """`function` with an index of its own in numba's disk cache for each structure and version of the sources.

    numba names the index after the function and unpickles all types in it. In an index of all structures, one that a
    process cannot import (from a folder that is not on its PYTHONPATH, or of a copy of the tree that has one more module)
    would keep it from loading any other.
    """
    own_index(function, f".{structure.__module__}.{structure.__qualname__}.{fingerprint[:8]}")
    return function
