"""Docstrings of `import gapwise`: each name has its sections, and the examples run as they stand."""

from __future__ import annotations

import doctest
import inspect
import os
import re
from importlib import import_module
from pathlib import Path

import pytest

import gapwise

NAMES = [name for name in gapwise.__all__ if name != "__version__"]
ABSTRACT = {"GapwiseEstimator", "Oracle"}
"""Classes to be derived from, whose examples are those of the classes that do; the tutorial runs an `Oracle`."""


@pytest.mark.parametrize("name", NAMES)
def test_docstring__has_its_sections(name: str) -> None:
    thing = getattr(gapwise, name)
    text = inspect.getdoc(thing) or ""
    sections = set(re.findall(r"^(\w+)\n-{3,}$", text, re.MULTILINE))
    if inspect.isclass(thing):
        assert sections & {"Parameters", "Attributes"}
    else:
        assert {"Parameters", "Returns", "Raises"} <= sections
        named = re.search(r"^Parameters\n-+\n(.*?)(?=^\w+\n-{3,}$|\Z)", text, re.MULTILINE | re.DOTALL)
        assert named is not None
        words = {word for line in re.findall(r"^\**(\w[^:\n]*)", named[1], re.MULTILINE) for word in line.split(", ")}
        assert {part.strip() for part in inspect.signature(thing).parameters} <= {word.strip() for word in words}
    assert name in ABSTRACT or "Examples" in sections


PROTOCOLS = (
    "problems.protocol.Problem", "problems.protocol.Bounded", "problems.protocol.Summable", "datasets.Reader",
    "datasets.Sink", "datasets.Encoder", "solver.solver.Recipe", "solver.path.rule.PathRule",
    "solver.block.samplers.Sampler", "solver.block.moves.Move", "solver.block.views.View",
    "solver.events.Sink", "certify.audit.Verifier",
)  # fmt: skip
"""The extension protocols, each with an example in its docstring."""


@pytest.mark.slow
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
