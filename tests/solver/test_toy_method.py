"""A block method in one small file of a folder of one's own: certified, committed, killed and resumed like any other."""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from dense import optimum, primal_value
from equality import assert_same_path
from solved import DieAfter, Killed, StopAfter, options_of, path_of, solved, stopped_and_resumed
from tiny import TINY

from gapwise.stages.solver import methods
from gapwise.stages.solver.options import Status
from gapwise.storage.commits import CommitStore
from gapwise.storage.results import read_path, weights_of

SOURCE = Path(__file__).resolve().parents[1] / "support" / "toy_method.py"
LINES = 30
"""The most lines of code that a block method needs; docstrings and blank lines apart."""

ONE = {"rule": "single", "lam": 0.05, "tolerance": 2e-3}


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The method `toy`, in a folder that `methods` looks into, too."""
    folder = tmp_path / "methods"
    folder.mkdir()
    (folder / "toy.py").write_bytes(SOURCE.read_bytes())
    monkeypatch.setattr(methods, "__path__", [*methods.__path__, str(folder)])
    yield importlib.import_module(f"{methods.__name__}.toy")
    del sys.modules[f"{methods.__name__}.toy"], methods.toy


def test_toy__is_small() -> None:
    text = SOURCE.read_text(encoding="utf-8")
    notes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Expr)]
    notes = [node for node in notes if isinstance(node.value, ast.Constant)]
    comments = {line for node in notes for line in range(node.lineno, (node.end_lineno or 0) + 1)}
    code = [line for k, line in enumerate(text.splitlines(), 1) if line.strip() and k not in comments]
    assert len(comments) == 1
    assert len(code) <= LINES, len(code)


@pytest.mark.parametrize("name", ["multiclass", "chain"])
def test_toy__is_found_and_certified(toy: ModuleType, tmp_path: Path, name: str) -> None:
    problem = TINY[name]()
    assert methods.method("toy") is toy.METHOD
    assert solved(problem, tmp_path / "run", options_of(method="toy"), path_of(**ONE)) is Status.CONVERGED
    arrays, _ = read_path(tmp_path / "run" / "path.zarr")
    best, primal = optimum(problem, 0.05), primal_value(problem, weights_of(tmp_path / "run" / "path.zarr")(0), 0.05)
    assert arrays["gap"][0] <= 2e-3
    assert arrays["dual"][0] <= best + 1e-7 <= primal + 2e-7
    assert primal == pytest.approx(arrays["primal"][0], abs=1e-9)


def test_toy__commits_its_own_arrays_and_counts(toy: ModuleType, tmp_path: Path) -> None:
    problem, options = TINY["multiclass"](), options_of(method="toy")
    status = solved(problem, tmp_path, options, path_of(**ONE), stop=StopAfter(4))
    assert status is Status.INTERRUPTED
    commit = CommitStore(tmp_path / "state", {"key": "k"}).load()
    assert commit is not None
    assert commit.attrs["method"]["own"] == {"turns": 4}
    assert commit.arrays["waited"].shape == (problem.n,)
    assert np.count_nonzero(commit.arrays["waited"]) > 0
    short = {**commit.arrays, "waited": commit.arrays["waited"][1:]}
    with pytest.raises(ValueError, match=r"waited: is float64 \(6,\), expected float64 \(7\)"):
        toy.METHOD.restored(problem, options, 3, short, commit.attrs["method"])


@pytest.mark.parametrize("kind", ["single", "two_sided"])
def test_toy__stopped_anywhere_has_the_same_bits(toy: ModuleType, tmp_path: Path, kind: str) -> None:
    problem, options = TINY["multiclass"](), options_of(method="toy")
    path = path_of(**(ONE if kind == "single" else {"rule": "two_sided", "kappa": 0.7}))
    assert solved(problem, tmp_path / "whole", options, path) is Status.CONVERGED
    stops = np.random.default_rng(2).integers(0, 6, size=12)
    assert stopped_and_resumed(problem, tmp_path / "parts", options, path, stops) >= 4
    assert_same_path(tmp_path / "whole", tmp_path / "parts")


def test_toy__goes_on_from_the_last_commit_of_a_process_that_died(toy: ModuleType, tmp_path: Path) -> None:
    problem, options, path = TINY["multiclass"](), options_of(method="toy"), path_of(**ONE)
    solved(problem, tmp_path / "whole", options, path)
    assert solved(problem, tmp_path / "parts", options, path, stop=StopAfter(4)) is Status.INTERRUPTED
    with pytest.raises(Killed):
        solved(problem, tmp_path / "parts", options, path, stop=DieAfter(3))
    assert solved(problem, tmp_path / "parts", options, path) is Status.CONVERGED
    assert_same_path(tmp_path / "whole", tmp_path / "parts")
