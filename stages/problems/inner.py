"""`inner`: njit for functions that compiled functions call.

numba gives every compiled function two wrappers, one that Python calls and one for C. They hold a copy of all that was
inlined, and a fifth of the time that compiling takes goes into them. A function without them may be called from compiled
code only. Its callers hold their own copy of it as well, so no machine code is made for it alone either (`_Linked`). Called
from Python, where numba would jump to address 0, `_Inner` compiles it once more with all of that.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from importlib import import_module
from typing import Any

from numba import njit
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.registry import CPUDispatcher
from numba.core.typed_passes import NativeLowering

_dynfunc: Any = import_module("numba._dynfunc")  # compiled, without types


def _address_zero(library: Any, described: Any, env: Any) -> Any:
    """Stands for a function that no machine code is made for, as numba's `get_executable` does for one without wrappers."""
    name = described.qualname.split(".")[-1]
    return _dynfunc.make_function(described.lookup_module(), name, "linked into its callers", 0, env, (library,))


class _Module(JITCodeLibrary):
    """An optimised LLVM module, as others link it; numba would also turn it into machine code."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True


@register_pass(mutates_CFG=True, analysis_only=False)
class _LoweredToLink(NativeLowering):
    """numba's last step with a `_Module` for the result."""

    _name = "lowered_to_link"

    def run_pass(self, state: Any) -> bool:
        context = state.targetctx
        state.library = _Module(context.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        state.targetctx = context.subtarget(get_executable=_address_zero)
        try:
            return bool(super().run_pass(state))
        finally:
            state.targetctx = context


class _Linked(CompilerBase):
    """numba's compiler with `_LoweredToLink` for `NativeLowering`."""

    def define_pipelines(self) -> list[Any]:
        manager = DefaultPassBuilder.define_nopython_pipeline(self.state)
        manager.passes = [
            (_LoweredToLink, says) if step is NativeLowering else (step, says) for step, says in manager.passes
        ]
        manager.finalize()
        return [manager]


ALONE: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "pipeline_class": _Linked}
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
