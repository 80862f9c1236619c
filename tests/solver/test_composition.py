"""The solver is composed: small classes, nothing inherited but data, and path rules from abstract classes whose methods they
do not override; what methods commit is what they say, to the bit."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from solved import StopAfter, options_of
from tiny import instance

from gapwise.stages.solver.methods import method, methods
from gapwise.stages.solver.options import Status
from gapwise.stages.solver.schedule import Arrays, Goal, Schedule
from gapwise.stages.solver.solver import Solver
from gapwise.stages.solver.state import truth_pool

STAGES = Path(__file__).resolve().parents[2] / "stages"
MOST_LINES = 200
DATA = ("Options", "Group", "Counts")
"""How the names of data classes end, which may extend each other and check what they extend."""


def classes(folder: Path) -> Iterator[tuple[str, ast.ClassDef]]:
    """The classes of a folder and those below it, with the names of their files."""
    for file in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                yield str(file.relative_to(STAGES)), node


def of_solver() -> list[tuple[str, ast.ClassDef]]:
    """The classes of the solver, path rules included."""
    return list(classes(STAGES / "solver"))


def bases(node: ast.ClassDef) -> list[str]:
    """The last names of what a class is derived from."""
    return [ast.unparse(base).split("[")[0].split(".")[-1] for base in node.bases]


def test_classes__are_small() -> None:
    lines = {f"{file}: {node.name}": (node.end_lineno or 0) - node.lineno + 1 for file, node in of_solver()}
    assert len(lines) > 50
    assert not {name: count for name, count in lines.items() if count > MOST_LINES}


def test_classes__inherit_data_only() -> None:
    project = {node.name: node for _, node in classes(STAGES)}
    inherited = []
    for file, node in of_solver():
        of_project = [name for name in bases(node) if name in project]
        assert len(of_project) <= 1, f"{file}: {node.name}"
        for name in of_project:
            data, rule = name.endswith(DATA) and is_data(node), file.startswith("solver/path/")
            if not data and not (rule and completes(node, project[name])):
                inherited.append(f"{file}: {node.name}({name})")
    assert not inherited


def completes(node: ast.ClassDef, base: ast.ClassDef) -> bool:
    """Whether a base is abstract, or a protocol, and the class overrides none of the methods that it defines."""
    own = {part.name for part in node.body if isinstance(part, ast.FunctionDef)}
    concrete = {
        part.name
        for part in base.body
        if isinstance(part, ast.FunctionDef) and "abstractmethod" not in map(ast.unparse, part.decorator_list)
    }
    return "ABC" in bases(base) and not own & concrete


def is_data(node: ast.ClassDef) -> bool:
    """Whether a class is a dataclass whose only methods are checks and properties."""
    decorated = any("dataclass" in ast.unparse(decorator) for decorator in node.decorator_list)
    methods_of = [part for part in node.body if isinstance(part, ast.FunctionDef)]
    plain = [part.name for part in methods_of if not part.name.startswith("check") and not part.decorator_list]
    return decorated and not plain


def test_super__is_called_nowhere() -> None:
    for file in (STAGES / "solver").rglob("*.py"):
        calls = [x for x in ast.walk(ast.parse(file.read_text())) if isinstance(x, ast.Name) and x.id == "super"]
        assert not calls, f"{file}: line {calls[0].lineno}"


# -- what is committed ------------------------------------------------------------------------------------------------
def solver_of(name: str) -> Solver:
    solver = method(name).begin(problem := instance("multiclass_cone"), options_of(method=name), truth_pool(problem), 3)
    solver.start_lambda(0.05, 0)
    return solver


def stopped(solver: Solver, left: int) -> Solver:
    """Solve on for so many rebase points; to the end if there are fewer."""
    stop = StopAfter(left)
    solver.solve(1e-3, lambda _: Status.INTERRUPTED if stop() else None)
    return solver


def measured_apart(arrays: Arrays) -> dict[str, np.ndarray]:
    """The arrays without what is measured in seconds."""
    others = {name: array for name, array in arrays.items() if name != "iteration_seconds"}
    return {**others, "trace": np.delete(others["trace"], (5, 6), axis=1)}


@pytest.mark.slow
@pytest.mark.parametrize("name", methods())
def test_packed__are_exactly_the_arrays_that_the_method_names(name: str) -> None:
    solver = stopped(solver_of(name), 4)
    arrays, _ = solver.packed()
    assert [spec[0] for spec in solver.recipe.specs] == [*dict.fromkeys(spec[0] for spec in solver.recipe.specs)]
    assert arrays.keys() == {spec[0] for spec in solver.recipe.specs}
    problem = solver.problem
    sizes = {"block": problem.n, "block_edge": problem.n + 1, "feature": problem.d, "local": int(problem.local_ptr[-1])}
    for key, dimensions, kind, meaning in solver.recipe.specs:
        array = arrays[key]
        assert array.dtype == (problem.truth.dtype if kind == "label" else np.dtype(kind)), key
        assert array.ndim == len(dimensions), key
        assert meaning
        for dimension, size in zip(dimensions, array.shape, strict=True):
            assert sizes.setdefault(dimension, size) == size, (key, dimension)


@pytest.mark.slow
@pytest.mark.parametrize("name", methods())
def test_restored__packs_the_same_bits_and_goes_on_with_them(name: str) -> None:
    first = stopped(solver_of(name), 4)
    arrays, attrs = first.packed()
    stored = json.loads(json.dumps(attrs))
    second = method(name).restored(first.problem, first.options, 3, arrays, stored)
    for _ in range(2):
        (a, a_attrs), (b, b_attrs) = first.packed(), second.packed()
        for key in ("seconds", "seconds_before"):
            del a_attrs["counts"][key], b_attrs["counts"][key]
        assert json.dumps(a_attrs) == json.dumps(b_attrs)
        left, right = measured_apart(a), measured_apart(b)
        assert left.keys() == right.keys()
        for key, array in left.items():
            assert array.dtype == right[key].dtype, key
            assert array.tobytes() == right[key].tobytes(), key
        for solver in (first, second):
            stopped(solver, 3)
            solver.rebase()
    assert first.steps > arrays["trace"].shape[0]


@dataclass
class Some:
    """Scalars of a schedule."""

    passes: int = 0


def test_counts__of_another_method_are_refused() -> None:
    def advance(goal: Goal) -> None:
        """Nothing."""

    with pytest.raises(TypeError, match=r"scalars \['passes'\] of another method"):
        Schedule(advance).restore_counts({"passes": 3})
    some = Schedule(advance, counts=Some())
    for other in ({"turns": 3}, {"passes": 3, "turns": 3}):
        with pytest.raises(TypeError, match="turns"):
            some.restore_counts(other)
    assert some.packed_counts() == {"passes": 0}
    counts = some.counts
    some.restore_counts({"passes": 3})
    assert some.counts is counts
    assert some.packed_counts() == {"passes": 3}
    some.restore_counts({})
    assert some.packed_counts() == {"passes": 3}
