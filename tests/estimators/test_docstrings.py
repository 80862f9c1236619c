"""Examples in docstrings of `import gapwise` and of the extension protocols run as they stand."""

from __future__ import annotations

import doctest
import importlib.util
import inspect
import os
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

import gapwise

NAMES = [name for name in gapwise.__all__ if name != "__version__"]
ABSTRACT = {"GapwiseEstimator", "Oracle"}
"""Classes to be derived from, whose examples are those of the classes that do; the tutorial runs an `Oracle`."""


PROTOCOLS = (
    "problems.protocol.Problem", "problems.protocol.Bounded", "problems.protocol.Summable", "datasets.Reader",
    "datasets.Sink", "datasets.Encoder", "solver.method.Method", "solver.path.rule.PathRule",
    "solver.events.Sink",
)  # fmt: skip
"""The extension protocols, each with an example in its docstring."""


@pytest.mark.parametrize("name", [*(name for name in NAMES if name not in ABSTRACT), *PROTOCOLS])
def test_example__runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", os.fspath(tmp_path))
    module, _, name = name.rpartition(".")
    thing = getattr(import_module(f"gapwise.stages.{module}") if module else gapwise, name)
    scope = vars(inspect.getmodule(thing)) | {name: thing}
    (example,) = doctest.DocTestFinder(recurse=False).find(thing, name, globs=dict(scope))
    assert example.examples
    assert not any(doctest.SKIP in one.options for one in example.examples)
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    runner.run(example, out=said.append)
    assert runner.failures == 0, "".join(said)


ROOT = Path(__file__).resolve().parents[2]


def test_names__are_those_of_the_modules_that_define_them() -> None:
    assert sorted([*gapwise.HOME, "__version__"]) == sorted(gapwise.__all__) == sorted(dir(gapwise))
    assert gapwise.__version__ == tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    for name, module in gapwise.HOME.items():
        assert getattr(gapwise, name) is getattr(importlib.import_module(module), name)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        gapwise.nothing  # noqa: B018
