"""What compiled methods of structures may call on themselves: only what `compile_methods` registers with numba.

The suite runs without compiling, where any method can be called; so this reads the sources.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path

from gapwise.stages.problems import moves, protocol

STRUCTURES = Path(protocol.__file__).parent


def registered() -> set[str]:
    """Names that are given to `compile_methods`."""
    names = set()
    for file in STRUCTURES.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "compile_methods":
                names |= {name.value for name in node.args[1:] if isinstance(name, ast.Constant)}
    return names


def calls_on_self(source: str) -> Iterator[tuple[str, str, str]]:
    """(class, method, name) of all calls on self in undecorated methods of classes derived from NamedTuple."""
    for record in ast.walk(ast.parse(source)):
        if not isinstance(record, ast.ClassDef) or "NamedTuple" not in {ast.unparse(base) for base in record.bases}:
            continue
        for method in record.body:
            if not isinstance(method, ast.FunctionDef) or method.decorator_list:
                continue
            for node in ast.walk(method):
                if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("self."):
                    yield record.name, method.name, ast.unparse(node.func).rpartition(".")[2]


def test_compiled_methods__call_only_registered_ones_on_themselves() -> None:
    known, found = registered(), []
    compiled = {*known, *(name for name, _ in inspect.getmembers(moves, inspect.isfunction))}
    for file in STRUCTURES.rglob("*.py"):
        found += [call for call in calls_on_self(file.read_text(encoding="utf-8")) if call[1] in compiled]
    assert ("Chain", "max_oracles", "max_oracle") in found
    assert [call for call in found if call[2] not in known] == []


def test_calls_on_self__are_found() -> None:
    source = "class A(NamedTuple):\n    def push(self, i):\n        self.pair_push(i)\n        other(i)\n"
    assert list(calls_on_self(source)) == [("A", "push", "pair_push")]
