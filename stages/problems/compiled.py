"""How functions are compiled: `driver` for those that Python calls with a problem, cached on disk and compiled again when a
source they depend on changes; `inner` for those that compiled functions call; and the options of both.

Numba's private parts, which stand in `numba_private` alone, take a quarter off a step. Where a release of numba lacks them,
or $GAPWISE_PLAIN_NUMBA is 1, plain `njit` serves: the same bits, and a line in the log.
"""

from __future__ import annotations

import functools
import inspect
import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import numba
from numba import config, njit

from gapwise import parts
from gapwise.stages.problems import kernel_cache
from gapwise.stages.problems.kernel_cache import JitOptions, Kernel, code_digest, reached
from gapwise.stages.problems.user_code import own_files

SWITCH = "GAPWISE_PLAIN_NUMBA"
"""Environment variable: 1 does without numba's private parts."""

TRIED = ("0.68",)
"""Releases of numba on which this is known to work; on others `numba_private.self_test` runs in every process (0.3 s)."""

_log = logging.getLogger(__name__)


def _tried() -> bool:
    return bool(numba.__version__.rpartition(".")[0] in TRIED or vars(config)["DISABLE_JIT"])


def _private_parts() -> ModuleType | None:
    """`numba_private`, or None after a line in the log that says why not."""
    if os.environ.get(SWITCH, "0") not in ("", "0"):
        _log.info("%s is set: plain njit; steps take at least a third longer", SWITCH)
        return None
    try:
        from gapwise.stages.problems import numba_private

        if not _tried():
            numba_private.self_test()
    except Exception as error:  # whatever a release to come does
        _log.warning(
            "numba %s: %s: %s; plain njit serves, and steps take at least a third longer",
            numba.__version__, type(error).__name__, str(error).strip().partition("\n")[0],
        )  # fmt: skip
        return None
    return numba_private


kernel_cache.install()
_private = _private_parts()

MODE = "plain" if _private is None else "linked"
"""How functions are compiled; part of the fingerprint of compiled code."""

LINKED: JitOptions = {} if _private is None else _private.LINKED
"""Options of functions that only compiled functions call, beside those of `protocol`."""

CLOSED: JitOptions = {} if _private is None else _private.CLOSED
"""Options of functions that Python calls."""


def _may_leave_out_reference_counts() -> bool:
    """Whether numba has the private option for it; one line in the log if not."""
    if _tried():
        return True
    try:
        njit(**{"_nrt": False})(lambda: 0)()  # type: ignore[call-overload]  # options are read when something is compiled
    except Exception as error:
        _log.warning("numba %s: no option _nrt (%s): steps take several times as long", numba.__version__, error)
        return False
    return True


_optional = _may_leave_out_reference_counts()

COUNTED: JitOptions = {"_nrt": True} if _optional else {}
"""Options of functions that allocate, or call back to Python; without them numba takes the options of the callers."""

UNCOUNTED: JitOptions = {"_nrt": False} if _optional else {}
"""Options of functions that do neither: they keep no reference counts, whose atomic updates take a fifth of a step."""


def inner(**options: Any) -> Callable[[Kernel], Kernel]:
    """`njit(**options)` of a function that is mostly called from compiled code."""
    if _private is None:
        plain: Callable[[Kernel], Kernel] = njit(**options)
        return plain
    private = _private
    return lambda function: cast("Kernel", private.linked(function, options))


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


def driver(build: Callable[[str], Kernel]) -> Callable[[Any], Kernel]:
    """Decorate `build(fingerprint) -> compiled function`; the result maps a problem to the function for its structure.

    The compiled function must close over `fingerprint` (a bare mention is enough): numba hashes closure cells into the
    key of its disk cache.
    """

    @functools.cache
    def built(structure: type) -> Kernel:
        fingerprint = sources_fingerprint(structure, Path(inspect.getfile(build)))
        return _with_own_cache(build(fingerprint), structure, fingerprint)

    @functools.wraps(build)
    def of(problem: tuple[Any, ...]) -> Kernel:
        return built(type(problem))

    return of


def _with_own_cache(function: Kernel, structure: type, fingerprint: str) -> Kernel:
    """`function` with an index of its own in numba's disk cache for each structure and version of the sources.

    numba names the index after the function and unpickles all types in it. In an index of all structures, one that a
    process cannot import (from a folder that is not on its PYTHONPATH, or of a copy of the tree that has one more module)
    would keep it from loading any other.
    """
    if _private is not None and not vars(config)["DISABLE_JIT"]:
        _private.renamed(function, f".{structure.__module__}.{structure.__qualname__}.{fingerprint[:8]}")
    return function
