"""Compiled functions without wrappers: called from compiled code as they are, from Python through a copy."""

from __future__ import annotations

import numba
import numpy as np
import pytest
from llvmlite.binding import Linkage
from numba import njit
from numba.core.codegen import JITCodeLibrary

from gapwise.stages.problems.inner import inner
from gapwise.stages.problems.protocol import FAST, JIT, dot


def sum_of(a):
    total = 0.0
    for j in range(a.size):
        total += a[j]
    return total


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")
def test_inner__has_no_wrapper_and_can_be_called_from_python_all_the_same() -> None:
    total = inner(**FAST)(sum_of)

    @njit
    def twice(a):
        return 2.0 * total(a)

    a = np.arange(4.0)
    assert twice(a) == 12.0  # compiled for this type, and without the wrapper that Python would call
    (code,) = total.overloads.values()
    assert not [name for name in code.library.get_defined_functions() if "cpython" in name.name or "cfunc" in name.name]
    assert not code.library._compiled  # nor is there machine code of it alone, which nobody would run
    assert total(a) == 6.0
    assert dot(a, a) == 14.0


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")
def test_closed__nobody_else_may_call_what_it_links_in(monkeypatch: pytest.MonkeyPatch) -> None:
    optimise, linkage = JITCodeLibrary._optimize_final_module, {}

    def noting(library):
        linkage.update({f.name: f.linkage for f in library._final_module.functions if not f.is_declaration})
        optimise(library)

    monkeypatch.setattr(JITCodeLibrary, "_optimize_final_module", noting)

    total = inner(**FAST)(sum_of)

    @njit(**JIT)
    def twice(a):
        return 2.0 * total(a)

    assert twice(np.arange(4.0)) == 12.0
    assert {kind for name, kind in linkage.items() if "sum_of" in name} == {Linkage.private}
    assert {kind for name, kind in linkage.items() if "twice" in name} == {Linkage.external}
