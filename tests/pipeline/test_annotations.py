"""Functions without types are compiled: numba finds their types out. All others are annotated, and mypy insists on it."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("pipeline", "stages", "storage")
COMPILED = {"njit", "inner", "optional", "operation", "driver"}
"""Decorators of functions that numba compiles, or reads as declarations of compiled functions."""
LISTED = {
    "stages/problems/moves.py: optional.decorate.call": "calls a method of any signature, with the JIT off",
    "stages/problems/numba_private.py: self_test.total": "compiled where the test runs",
    "stages/problems/numba_private.py: self_test.twice": "compiled where the test runs",
    "stages/problems/protocol.py: own_function.choose": "numba calls it while it compiles a call, with types for values",
    "stages/problems/simd.py: _address": "called by numba's code generator, whose objects have no types",
    "stages/problems/simd.py: _folded": "called by numba's code generator, whose objects have no types",
    "stages/problems/single_label.py: least_loss": "a method of each class that is given METHODS",
}
"""Functions without annotations that no rule explains, and why they have none."""


@pytest.fixture(scope="module")
def trees() -> dict[str, ast.Module]:
    """The files of the project, parsed once for all tests here."""
    files = sorted(file for room in ROOMS for file in (ROOT / room).rglob("*.py"))
    return {file.relative_to(ROOT).as_posix(): ast.parse(file.read_text(encoding="utf-8")) for file in files}


def functions(tree: ast.AST, above: tuple[ast.AST, ...] = ()) -> Iterator[tuple[ast.FunctionDef, tuple[ast.AST, ...]]]:
    """All functions of a file, each with the classes and functions around it."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef):
            yield node, above
        inside = isinstance(node, ast.FunctionDef | ast.ClassDef)
        yield from functions(node, (*above, node) if inside else above)


def annotated(function: ast.FunctionDef) -> bool:
    """Whether mypy takes the function for a typed one."""
    given = function.args
    every = [*given.posonlyargs, *given.args, *given.kwonlyargs, *filter(None, (given.vararg, given.kwarg))]
    values = [argument for argument in every if argument.arg not in ("self", "cls")]
    returns = function.returns is not None or (function.name == "__init__" and bool(values))
    return returns and all(argument.annotation is not None for argument in values)


def decorators(function: ast.FunctionDef) -> set[str]:
    """Names of what decorates a function."""
    calls = (d.func if isinstance(d, ast.Call) else d for d in function.decorator_list)
    return {ast.unparse(call).rpartition(".")[2] for call in calls}


def method_names(trees: dict[str, ast.Module]) -> set[str]:
    """Names of the methods of structures and views that compiled code calls: `optional` ones, and those that a call of
    `compile_methods` names; without names, all that the protocol declares."""
    names: set[str] = set()
    for tree in trees.values():
        names |= {f.name for f, above in functions(tree) if not above and "optional" in decorators(f)}
        declared = {c.name: [f.name for f, _ in functions(c)] for c in ast.walk(tree) if isinstance(c, ast.ClassDef)}
        for call in ast.walk(tree):
            if isinstance(call, ast.Call) and ast.unparse(call.func) == "compile_methods":
                own = [name.value for name in call.args if isinstance(name, ast.Constant)]
                names |= {*(own or declared[ast.unparse(call.args[0])])}
    return names


def shared_methods(tree: ast.Module) -> set[str]:
    """Names in a file's METHODS: functions that a decorator gives to classes as methods."""
    tables = [
        node.value for node in tree.body if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "METHODS"
    ]
    return {item.id for table in tables if table for item in ast.walk(table) if isinstance(item, ast.Name)}


def compiled(function: ast.FunctionDef, above: tuple[ast.AST, ...], methods: set[str], shared: set[str]) -> bool:
    """Whether numba compiles the function."""
    around = [*(node for node in above if isinstance(node, ast.FunctionDef)), function]
    if any(decorators(one) & COMPILED for one in around):
        return True
    record = bool(above) and isinstance(above[-1], ast.ClassDef) and "NamedTuple" in map(ast.unparse, above[-1].bases)
    return function.name in methods if record else not above and function.name in shared & methods


def unexplained(trees: dict[str, ast.Module]) -> list[str]:
    """Functions without annotations that are not compiled."""
    methods, wrong = method_names(trees), []
    for file, tree in trees.items():
        shared = shared_methods(tree)
        for function, above in functions(tree):
            if not annotated(function) and not compiled(function, above, methods, shared):
                names = [node.name for node in (*above, function) if isinstance(node, ast.FunctionDef | ast.ClassDef)]
                wrong.append(f"{file}: {'.'.join(names)}")
    return wrong


def module_of(file: str) -> str:
    folders = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-dir"]
    package = next(name for name, at in sorted(folders.items(), key=lambda p: -len(p[1])) if file.startswith(f"{at}/"))
    parts = Path(file).relative_to(folders[package]).with_suffix("").parts
    return ".".join((package, *(parts[:-1] if parts[-1] == "__init__" else parts)))


def test_functions_without_annotations__are_compiled(trees: dict[str, ast.Module]) -> None:
    assert sorted(unexplained(trees)) == sorted(LISTED)


def test_mypy__lets_functions_go_without_types_only_in_files_with_compiled_ones(trees: dict[str, ast.Module]) -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]
    assert settings["disallow_untyped_defs"] is True
    exempt = [rule["module"] for rule in settings["overrides"] if rule.get("disallow_untyped_defs") is False]
    without = {module_of(file) for file, tree in trees.items() if not all(annotated(f) for f, _ in functions(tree))}
    assert exempt == [sorted(without)]


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("@inner(**PLAIN)\ndef f(a): ...", []),
        ("@njit(**JIT)\ndef f(a):\n    def g(b): ...", []),
        ("def f(a): ...", ["f"]),
        ("def f(a: int): ...", ["f"]),
        ("def f(a) -> int: ...", ["f"]),
        ("def f(a: int, *more) -> int: ...", ["f"]),
        ("def f(a: int) -> int: ...", []),
        ("class C:\n    def __init__(self, a: int): ...", []),
        ("class C:\n    def __init__(self): ...", ["C.__init__"]),
        ("class C(NamedTuple):\n    def score(self, i): ...", []),
        ("class C(NamedTuple):\n    def other(self, i): ...", ["C.other"]),
        ("class C:\n    def score(self, i): ...", ["C.score"]),
        ("METHODS: tuple = (score,)\ndef score(self, i): ...", []),
        ("METHODS: tuple = (other,)\ndef other(self, i): ...", ["other"]),
        ("def score(self, i): ...", ["score"]),
        ("def f(a: int) -> int:\n    def g(b): ...", ["f.g"]),
    ],
)  # fmt: skip
def test_unexplained__sees_them(text: str, wrong: list[str]) -> None:
    declares = ast.parse("class P(Protocol):\n    def score(self, i: int) -> int: ...\ncompile_methods(P)")
    names = unexplained({"protocol.py": declares, "x.py": ast.parse(text)})
    assert names == [f"x.py: {name}" for name in wrong]


MOST_ANY = 130
"""Mentions of Any in the whole code: values of JSON and YAML, and what comes from numba and other libraries."""
SEAMS = {
    "stages/solver/solver.py": ("Recipe", "Solver"),
    "stages/solver/schedule.py": ("Iterate", "Schedule"),
    "stages/solver/path/rule.py": ("PathRule", "OpenEnded", "TakesProduct"),
    "stages/solver/events.py": ("Sink", "Event"),
    "storage/sink.py": ("CommitSink", "MemorySink"),
    "stages/verdict.py": ("Findings", "Verdict"),
}
"""Where parts meet: methods, path rules, sinks, verdicts."""


def mentions(tree: ast.AST) -> int:
    """How often a file mentions Any, imports aside."""
    return sum(isinstance(node, ast.Name) and node.id == "Any" for node in ast.walk(tree))


def test_any__is_rare(trees: dict[str, ast.Module]) -> None:
    assert sum(map(mentions, trees.values())) < MOST_ANY


@pytest.mark.parametrize(("file", "names"), SEAMS.items())
def test_any__stands_in_no_signature_where_parts_meet(
    file: str, names: tuple[str, ...], trees: dict[str, ast.Module]
) -> None:
    classes = {node.name: node for node in trees[file].body if isinstance(node, ast.ClassDef)}
    for name in names:
        given = [f.args for f, _ in functions(classes[name])]
        returned = [f.returns for f, _ in functions(classes[name]) if f.returns is not None]
        fields = [node.annotation for node in classes[name].body if isinstance(node, ast.AnnAssign)]
        assert [ast.unparse(part) for part in (*given, *returned, *fields) if mentions(part)] == [], name
