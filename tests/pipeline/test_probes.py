"""What a part can do is data: no code asks an object for a name that it may lack, except where parts are discovered, and
where objects come from users and other libraries."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("pipeline", "stages", "storage")

DISCOVERY = {
    "pipeline/api/__init__.py: __getattr__": "estimators of one's own by name",
    "stages/datasets/inputs/__init__.py: _offered": "functions of a reader; the file's text is part of the keys of runs",
    "stages/datasets/inputs/__init__.py: stored_input": "functions of a reader; the file's text is part of the keys of runs",
    "stages/problems/__init__.py: structures": "modules with `build` are structures",
    "stages/problems/__init__.py: structure": "modules with `build` are structures",
    "stages/problems/moves.py: method_of": "optional methods of a structure",
    "stages/reports/papers/__init__.py: claims": "modules with CLAIMS have claims",
}
FOREIGN = {
    "pipeline/compute/local.py: _drop_processes": "private parts of concurrent.futures, of some versions",
    "pipeline/config/run_options.py: default_workers": "a function of some operating systems",
    "stages/datasets/multiclass_arrays.py: encode": "a table of pandas or an array",
    "stages/datasets/python_oracle.py: _say_what_is_not_seen": "a user's class",
    "stages/datasets/python_oracle.py: weights_of": "a user's object",
    "stages/datasets/vision/picture_files.py: opened": "a picture of Pillow's, whose format may have no frames",
    "stages/problems/capabilities.py: declared_operations": "a problem, whose class a user may have written",
    "stages/problems/capabilities.py: oracle_facts": "a problem, whose class a user may have written",
    "stages/problems/capabilities.py: traits_of": "a problem, whose class a user may have written",
    "stages/problems/compiled.py: _sources": "a user's module",
    "stages/problems/python_structure.py: files_of": "a user's class",
    "stages/problems/python_structure.py: problem_class": "a user's class",
    "stages/problems/user_code.py: user_object": "a user's module",
}
"""Functions that probe, and what."""


def probes(tree: ast.AST, inside: str = "") -> Iterator[str]:
    """Names of the functions that call hasattr, or getattr with a default; once for each call."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            name = node.func.id
            if name == "hasattr" or (name == "getattr" and len(node.args) > 2):
                yield inside
        yield from probes(node, node.name if isinstance(node, ast.FunctionDef) else inside)


def test_probes__stand_where_parts_are_discovered_and_at_the_border() -> None:
    probing = set()
    for file in sorted(file for room in ROOMS for file in (ROOT / room).rglob("*.py")):
        names = probes(ast.parse(file.read_text(encoding="utf-8")))
        probing |= {f"{file.relative_to(ROOT).as_posix()}: {name}" for name in names}
    assert probing == {*DISCOVERY, *FOREIGN}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("def f(x):\n    return hasattr(x, 'a')", ["f"]),
        ("def f(x):\n    return getattr(x, 'a', None)", ["f"]),
        ("def f(x):\n    return getattr(x, 'a')", []),
        ("class C:\n    def g(self):\n        return [getattr(x, 'a', 0) for x in self]", ["g"]),
        ("x = hasattr(1, 'a')", [""]),
    ],
)
def test_probes__are_seen(text: str, names: list[str]) -> None:
    assert [*probes(ast.parse(text))] == names
