"""`inner`: njit for functions that compiled functions call.

numba gives every compiled function two wrappers, one that Python calls and one for C. They hold a copy of all that was
inlined, and a fifth of the time that compiling takes goes into them. A function without them may be called from compiled
code only. Called from Python, where numba would jump to address 0, `_Inner` compiles it once more with them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

from numba import njit
from numba.core.registry import CPUDispatcher

ALONE: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
"""Options of a function without wrappers."""


class _Inner(CPUDispatcher):
    """A dispatcher whose compiled code cannot be called from Python."""

    @cached_property
    def _outer(self) -> Any:
        own = {name: value for name, value in self.targetoptions.items() if name not in {*ALONE, "nopython"}}
        return njit(**own)(self.py_func)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._outer(*args, **kwargs)


def inner(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """`njit(**options)` of a function that is mostly called from compiled code."""

    def decorate(function: Callable[..., Any]) -> Any:
        together: dict[str, Any] = {**options, **ALONE}
        made: Any = njit(**together)(function)
        if isinstance(made, CPUDispatcher):  # without the JIT it is the function
            made.__class__ = _Inner
        return made

    return decorate
