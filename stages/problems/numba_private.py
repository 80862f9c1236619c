"""numba's private parts: compilers of functions that compiled code or Python calls.

Two more stand elsewhere: an option in `compiled`, and the cache on disk in `kernel_cache`. `compiled` imports this file;
where a release of numba lacks a name or `self_test` fails, plain `njit` serves. Other files use numba's documented interface
only: `njit`, `overload`, `intrinsic` and `cgutils` of its low-level API.

numba gives every compiled function two wrappers, one that Python calls and one for C. They hold a copy of all that was
inlined, and a fifth of the time that compiling takes goes into them. A function without them may be called from compiled
code only. Its callers hold their own copy of it as well, so no machine code is made for it alone either (`_Linked`). Called
from Python, where numba would jump to address 0, `_Inner` compiles it once more with all of that.

An array takes seven arguments of a compiled function, so a problem and a state take some three hundred, which every call
that is not inlined would write to memory: a quarter to a third of the time of a step over chains. LLVM inlines what is
called once, and drops arguments that are not read, only where it knows that nobody else calls a function. numba leaves the
functions that it links in open to others; `_Closed` tells LLVM that these callers are all.
"""

from __future__ import annotations

import re
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np
from llvmlite.binding import Linkage
from numba import njit, types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder, StateDict
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.funcdesc import FunctionDescriptor
from numba.core.registry import CPUDispatcher
from numba.core.typed_passes import NativeLowering

from gapwise.stages.problems.kernel_cache import JitOptions, Kernel

_dynfunc = import_module("numba._dynfunc")  # compiled, without types


def _address_zero(library: JITCodeLibrary, described: FunctionDescriptor, env: object) -> Kernel:
    """A placeholder for a function without machine code, like numba's `get_executable` for functions without wrappers."""
    name = described.qualname.split(".")[-1]
    module = described.lookup_module()
    never: Kernel = _dynfunc.make_function(module, name, "linked into its callers", 0, env, (library,))
    return never


class _Module(JITCodeLibrary):
    """An LLVM module, as others link it; numba would also turn it into machine code.

    It gets the first of numba's two rounds of optimisation, which makes vector code of loops before they are inlined, so
    that a sum rounds alike wherever it is inlined. The second is left to the functions that link it.
    """

    def _optimize_final_module(self) -> None:
        manager, builder = self._codegen._module_pass_manager(
            loop_vectorize=self._codegen._loopvect, slp_vectorize=False, opt=self._codegen._opt_level, cost="cheap"
        )
        manager.run(self._final_module, builder)

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True


@register_pass(mutates_CFG=True, analysis_only=False)
class _LoweredToLink(NativeLowering):
    """numba's last step with a `_Module` for the result."""

    _name = "lowered_to_link"

    def run_pass(self, state: StateDict) -> bool:
        context = state.targetctx
        state.library = _Module(context.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        state.targetctx = context.subtarget(get_executable=_address_zero)
        try:
            return bool(super().run_pass(state))
        finally:
            state.targetctx = context


def _with_lowering(state: StateDict, lowering: type) -> PassManager:
    """numba's steps with `lowering` in place of `NativeLowering`."""
    manager = DefaultPassBuilder.define_nopython_pipeline(state)
    manager.passes = [(lowering, says) if step is NativeLowering else (step, says) for step, says in manager.passes]
    manager.finalize()
    return manager


class _Linked(CompilerBase):
    """numba's compiler with `_LoweredToLink` for `NativeLowering`."""

    def define_pipelines(self) -> list[PassManager]:
        return [_with_lowering(self.state, _LoweredToLink)]


class _ClosedModule(JITCodeLibrary):
    """An LLVM module with machine code, whose linked-in functions nobody else calls.

    They are private, not internal: those have symbols, and the loader of machine code takes the first function of a name for
    all weak ones that come later, though their arguments may differ then.
    """

    def _optimize_final_module(self) -> None:
        for function in self._final_module.functions:
            linked_in = not function.is_declaration and function.linkage == Linkage.linkonce_odr
            if linked_in and not function.name.startswith("NRT_"):  # numba looks for reference counts by name
                function.linkage = Linkage.private
        super()._optimize_final_module()


@register_pass(mutates_CFG=True, analysis_only=False)
class _LoweredClosed(NativeLowering):
    """numba's last step with a `_ClosedModule` for the result."""

    _name = "lowered_closed"

    def run_pass(self, state: StateDict) -> bool:
        state.library = _ClosedModule(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        return bool(super().run_pass(state))


class _Closed(CompilerBase):
    """numba's compiler with `_LoweredClosed` for `NativeLowering`."""

    def define_pipelines(self) -> list[PassManager]:
        return [_with_lowering(self.state, _LoweredClosed)]


LINKED: JitOptions = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "pipeline_class": _Linked}
"""Options of a function without wrappers."""

CLOSED: JitOptions = {"no_cfunc_wrapper": True, "pipeline_class": _Closed}
"""Options of a function that Python calls."""


class _Inner(CPUDispatcher):
    """A dispatcher whose compiled code cannot be called from Python."""

    @cached_property
    def _outer(self) -> Kernel:
        own = {name: value for name, value in self.targetoptions.items() if name not in {*LINKED, "nopython"}}
        outer: Kernel = njit(**own)(self.py_func)
        return outer

    def __call__(self, *args: object, **kwargs: object) -> object:
        return self._outer(*args, **kwargs)

    def get_call_template(self, args: Any, kws: Any) -> Any:  # its stub has the dispatcher's own type variables
        """numba's, which makes one function for `f(0)`, another for `f(1)` and a third for `f(i)`: one serves them all."""
        plain = {name: types.unliteral(kind) for name, kind in dict(kws).items()}
        return super().get_call_template(tuple(map(types.unliteral, args)), plain)


def linked(function: Kernel, options: JitOptions) -> Kernel:
    """`njit(**options)` of a function that is mostly called from compiled code."""
    together: JitOptions = {**options, **LINKED}
    made: Kernel = njit(**together)(function)
    if isinstance(made, CPUDispatcher):  # without the JIT it is the function
        made.__class__ = _Inner
    return made


def renamed(function: CPUDispatcher, suffix: str) -> None:
    """Give a compiled function, of which nothing is compiled yet, an index of its own in numba's disk cache."""
    function.py_func.__qualname__ += suffix
    function.enable_caching()


def self_test() -> None:
    """Compile a small pair of functions both ways; RuntimeError unless all is as this file expects."""

    def total(a):
        result = 0.0
        for j in range(a.size):
            result += a[j]
        return result

    called: Any = linked(total, {"error_model": "numpy"})

    def twice(a):
        return 2.0 * called(a)

    calls: Any = njit(error_model="numpy", **CLOSED)(twice)  # whose results its stub does not describe
    calls.compile("float64(float64[::1])")
    (caller,), (callee,) = calls.overloads.values(), called.overloads.values()
    if any(kind in f.name for f in callee.library.get_defined_functions() for kind in ("cpython", "cfunc")):
        raise RuntimeError("numba makes wrappers of functions that ask for none")
    missing = f'declare .*"?{re.escape(callee.fndesc.mangled_name)}"?'
    if re.search(missing, caller.library.get_llvm_str()):  # calling it would jump to address 0
        raise RuntimeError("numba does not link functions without machine code into their callers")
    if calls(np.arange(4.0)) != 12.0 or called(np.arange(4.0)) != 6.0:
        raise RuntimeError("numba compiles a linked function to wrong code")
