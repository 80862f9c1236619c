"""Compiled drivers: functions over any problem, cached on disk, recompiled when a source they depend on changes."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from pathlib import Path

from gapwise import parts
from gapwise.stages.problems.inner import MODE, own_index
from gapwise.stages.problems.kernel_cache import Kernel, code_digest, reached
from gapwise.stages.problems.protocol import Problem
from gapwise.stages.problems.user_code import own_files


@functools.cache
def sources_fingerprint(structure: type, *callers: Path) -> str:
    """Hash of all code that may become part of a function in one of the files `callers`, compiled for a structure.

    It covers what these files and those of the structure and its bases import, directly or not, of the packages with
    compiled code (`kernel_cache.reached`), and parts that belong there (`gapwise.parts`). Of a structure from elsewhere it
    covers the module or package, and what that imports from the same folder (`user_code.own_files`).
    """
    theirs = {name: file for kind in structure.__mro__ for name, file in _files_of(kind).items()}
    files = {**theirs, **{f"callers/{file.name}": file for file in callers}}
    return code_digest({**files, **reached(files.values()), **parts.sources("gapwise.stages.problems")}, MODE)


def _files_of(kind: type) -> dict[str, Path]:
    """The source files of a class, under names that do not depend on where the folders are; {} for those of Python."""
    top, _, within = kind.__module__.partition(".")
    if top == "gapwise" and within:
        return {kind.__module__: Path(inspect.getfile(kind))}
    if top in sys.stdlib_module_names:
        return {}
    own = Path(inspect.getfile(kind))
    if getattr(sys.modules[top], "__file__", None):
        found = own_files(sys.modules[kind.__module__])
    else:  # a folder without __init__.py: what lies beside the module
        found = {str(file.relative_to(own.parent)): file for file in own.parent.rglob("*.py")}
    return {f"own/{name}": file for name, file in {**found, own.name: own}.items()}


def driver(build: Callable[[str], Kernel]) -> Callable[[Problem], Kernel]:
    """Decorate `build(fingerprint) -> compiled function`; the result maps a problem to the function for its structure.

    The compiled function must close over `fingerprint` (a bare mention is enough): numba hashes closure cells into the
    key of its disk cache.
    """

    @functools.cache
    def built(structure: type) -> Kernel:
        fingerprint = sources_fingerprint(structure, Path(inspect.getfile(build)))
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
