"""numba's private parts stand in two files of `stages/problems`; where a release lacks them, both do without."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("pipeline", "stages", "storage")
PRIVATE_PARTS = "stages/problems/numba_private.py"
CACHE = "stages/problems/kernel_cache.py"
REFERENCE_COUNTS = "stages/problems/inner.py"
DOCUMENTED = {
    "numba": "the package itself",
    "numba.extending": "the extension API",
    "numba.core.cgutils": "numba's manual, Low-level extension API",
    "numba.core.event": "numba's manual, Event API",
    "llvmlite.ir": "llvmlite's manual, IR layer",
    "llvmlite.binding": "llvmlite's manual, LLVM binding layer",
}
"""Modules of numba and llvmlite that other files may use, and where they are documented."""


def sources() -> list[Path]:
    """Files that mention numba or llvmlite."""
    files = sorted(file for room in ROOMS for file in (ROOT / room).rglob("*.py"))
    return [file for file in files if re.search("numba|llvmlite", file.read_text(encoding="utf-8"))]


def imported(text: str) -> Iterator[tuple[str, str]]:
    """(module, name) of all that is imported from numba and llvmlite; the name is empty where it is the module."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from ((name.name, "") for name in node.names if name.name.split(".")[0] in ("numba", "llvmlite"))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in ("numba", "llvmlite"):
            yield from ((str(node.module), name.name) for name in node.names)
        elif isinstance(node, ast.Call) and "import_module" in ast.unparse(node.func) and node.args:
            module = node.args[0]
            if isinstance(module, ast.Constant) and str(module.value).startswith(("numba", "llvmlite")):
                yield str(module.value), ""


def private(text: str) -> list[str]:
    """What a file imports from numba and llvmlite that is not documented."""
    wrong = []
    for module, name in imported(text):
        whole = f"{module}.{name}" if name else module
        if name.startswith("_") or not (module in DOCUMENTED or whole in DOCUMENTED):
            wrong.append(whole)
    return wrong


def test_private_parts__are_imported_by_two_files() -> None:
    users = {file.relative_to(ROOT).as_posix() for file in sources() if private(file.read_text(encoding="utf-8"))}
    assert users == {PRIVATE_PARTS, CACHE}


def test_private_modules_by_name__are_looked_up_where_listed() -> None:
    named = {}
    for file in sources():
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and str(node.value).startswith(("numba.", "llvmlite.")):
                named.setdefault(file.relative_to(ROOT).as_posix(), set()).add(node.value)
    assert named.pop(PRIVATE_PARTS) == {"numba._dynfunc"}
    assert named == {"pipeline/interrupt.py": {"numba.core.compiler_lock"}}  # if it is imported, and has the lock


def test_option_for_reference_counts__is_named_in_the_file_that_tries_it() -> None:
    users = {file.relative_to(ROOT).as_posix() for file in sources() if '"_nrt"' in file.read_text(encoding="utf-8")}
    assert users == {REFERENCE_COUNTS}


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("from numba import njit", []),
        ("import numba", []),
        ("from numba.core import cgutils", []),
        ("from numba.core import types", ["numba.core.types"]),
        ("from numba.core.caching import _CacheLocator", ["numba.core.caching._CacheLocator"]),
        ("from numba.extending import _secret", ["numba.extending._secret"]),
        ("def f():\n    import numba.core.codegen", ["numba.core.codegen"]),
        ("d = import_module('numba._dynfunc')", ["numba._dynfunc"]),
        ("from llvmlite import ir", []),
        ("from llvmlite.ir.values import Block", ["llvmlite.ir.values.Block"]),
    ],
)
def test_private__sees_them(line: str, wrong: list[str]) -> None:
    assert private(line) == wrong
