"""`inner`: njit for functions that compiled functions call; and which options compiled functions have.

Numba's private parts, which stand in `numba_private` alone, take a quarter off a step. Where a release of numba lacks them,
or $GAPWISE_PLAIN_NUMBA is 1, plain `njit` serves: the same bits, and a line in the log.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from types import ModuleType
from typing import Any, cast

import numba
from numba import config, njit

from gapwise.stages.problems import kernel_cache
from gapwise.stages.problems.kernel_cache import JitOptions, Kernel

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


def own_index(function: Kernel, suffix: str) -> None:
    """Give a compiled function an index of its own in numba's disk cache, where numba allows for it."""
    if _private is not None and not vars(config)["DISABLE_JIT"]:
        _private.renamed(function, suffix)
