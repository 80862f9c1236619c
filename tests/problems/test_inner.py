"""Compiled functions without wrappers: called from compiled code as they are, from Python through a copy; one_type."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import numba
import numpy as np
import pytest
from llvmlite.binding import Linkage
from numba import config, njit
from numba.core.codegen import JITCodeLibrary

from gapwise.stages.problems import compiled
from gapwise.stages.problems.compiled import inner
from gapwise.stages.problems.kernel_cache import ROOMS
from gapwise.stages.problems.protocol import FAST, JIT, dot, frozen
from gapwise.stages.problems.simd import one_type


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


def kernels_of(path: Path) -> Iterator[tuple[str, dict[str, str], bool]]:
    """(name, what it reads of which other modules, whether it closes over a fingerprint where a driver makes it) of cached
    kernels."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
    ours = [node for node in imports if node.module.startswith("gapwise")]
    foreign = {name.asname or name.name: node.module for node in ours for name in node.names}
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    by_name = {function.name: function for function in functions}
    drivers = [f for f in functions if any(ast.unparse(d) == "driver" for d in f.decorator_list)]

    def read(function: ast.FunctionDef, seen: set[str]) -> set[str]:
        names = {node.id for part in function.body for node in ast.walk(part) if isinstance(node, ast.Name)}
        for name in names & by_name.keys() - seen:
            names = names | read(by_name[name], seen | names)
        return names

    for function in functions:
        if any("cache=True" in ast.unparse(d) for d in function.decorator_list):
            names = read(function, {function.name})
            closed = "fingerprint" in names or not any(function in ast.walk(f) for f in drivers)
            yield f"{path.stem}.{function.name}", {name: foreign[name] for name in names & foreign.keys()}, closed


def test_cached_kernels__that_read_other_files_are_compiled_again_after_an_edit_there() -> None:
    """Their keys follow imports within `ROOMS`; what is compiled for a structure has its fingerprint besides."""
    home = Path(compiled.__file__).parents[2]
    paths = [path for room in ("pipeline", "stages") for path in (home / room).rglob("*.py")]
    kernels = [kernel for path in paths if b"cache=True" in path.read_bytes() for kernel in kernels_of(path)]
    assert len(kernels) > 25
    assert [name for name, _, closed in kernels if not closed] == []
    assert [name for name, read, _ in kernels if not all(module.startswith(ROOMS) for module in read.values())] == []


@pytest.mark.skipif(bool(vars(config)["DISABLE_JIT"]), reason="nothing is compiled")
def test_one_type__serves_read_only_and_written_arrays_with_one_function() -> None:
    @njit
    def total(x):
        result = 0.0
        for j in range(x.size):
            result += x[j]
        return result

    @njit
    def twice(x):
        x = one_type(x)
        return 2.0 * total(x)

    x = np.arange(4.0)
    assert (twice(frozen(x)), twice(x)) == (12.0, 12.0)
    assert len(twice.signatures) == 2, "an array of each type came"
    assert len(total.signatures) == 1


def test_one_type__is_the_same_array_and_keeps_it_alive() -> None:
    @njit
    def part(n):
        return one_type(np.arange(n))[2:]

    parts = [part(1000) for _ in range(50)]
    np.testing.assert_array_equal(np.stack(parts), np.broadcast_to(np.arange(2, 1000), (50, 998)))
