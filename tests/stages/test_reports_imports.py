"""Imports within `stages.reports` form no circle, and none hides in a function to break one."""

from __future__ import annotations

import ast
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = "gapwise.stages.reports"


def imported(path: Path, known: set[str]) -> tuple[set[str], bool]:
    """Modules of `known` that `path` imports, and whether any is imported inside a function."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    inside = {
        id(node) for function in ast.walk(tree) if isinstance(function, ast.FunctionDef) for node in ast.walk(function)
    }
    modules, hidden = set(), False
    for node in ast.walk(tree):
        names = set()
        if isinstance(node, ast.ImportFrom):
            names = {f"{node.module}", *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            names = {alias.name for alias in node.names}
        modules |= names & known
        hidden |= bool(names & known) and id(node) in inside
    return modules, hidden


def graph(root: Path) -> tuple[dict[str, set[str]], list[str]]:
    """Module to the modules it imports, within the package; modules with an import inside a function."""
    files = {}
    for path in (root / Path(*PACKAGE.split(".")[1:])).rglob("*.py"):
        parts = ("gapwise", *path.relative_to(root).with_suffix("").parts)
        files[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    imports = {module: imported(path, set(files) - {PACKAGE, module}) for module, path in files.items()}
    return {module: names for module, (names, _) in imports.items()}, [
        m for m, (_, hidden) in imports.items() if hidden
    ]


def test_imports__have_no_circle_and_hide_in_no_function() -> None:
    edges, hidden = graph(ROOT)
    assert len(edges) > 15
    assert edges[f"{PACKAGE}.sweep_figures.frontier"] > {f"{PACKAGE}.paint", f"{PACKAGE}.bounds"}
    list(TopologicalSorter(edges).static_order())
    assert hidden == []


@pytest.mark.parametrize("hide", [False, True])
def test_graph__sees_a_circle(tmp_path: Path, hide: bool) -> None:
    folder = tmp_path / "stages" / "reports"
    folder.mkdir(parents=True)
    (folder / "a.py").write_text("from gapwise.stages.reports import b")
    line = "import gapwise.stages.reports.a"
    (folder / "b.py").write_text(f"def f():\n    {line}" if hide else line)
    edges, hidden = graph(tmp_path)
    with pytest.raises(CycleError):
        list(TopologicalSorter(edges).static_order())
    assert hidden == ["gapwise.stages.reports.b"] * hide


def test_configuration__is_checked_without_loading_libraries() -> None:
    """`python -m pipeline` imports the names of sweep figures at start-up."""
    code = "from gapwise.stages.reports import sweep_figures as f; f.names()"
    code += "; import sys; print({'numpy', 'pandas', 'matplotlib'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
