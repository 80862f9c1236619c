"""What is gone is refused in one line that says what to do instead, wherever a user can name it."""

from __future__ import annotations

from pathlib import Path

import pytest

from gapwise.pipeline.cli import known
from gapwise.pipeline.config import choices, groups
from gapwise.pipeline.config.removed import REMOVED
from gapwise.stages.solver.methods import methods
from gapwise.stages.solver.path.rules import rules


@pytest.fixture
def gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key, a value, a flag, a preset and a command as if they had been removed."""
    for name in ("path.lanes", "path.width=2", "path.rule=paper", "tracking.fast=true", "solver=slow", "frobnicate"):
        monkeypatch.setitem(REMOVED, name, f"instead of {name}")


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("path.lanes=2", "path.lanes"),
        ("+path.lanes=2", "path.lanes"),
        ("path.width=2", "path.width=2"),
        ("path.rule=paper", "path.rule=paper"),
        ("+tracking.fast=true", "tracking.fast=true"),
        ("solver=slow", "solver=slow"),
        ("frobnicate", "frobnicate"),
    ],
)
def test_command__refuses_what_is_gone(
    given, gone: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    done = given(*words.split())
    assert (done.code, done.out) == (2, "")
    assert done.err.endswith(f"{name}: was removed; instead of {name}\n")
    assert done.err.count("\n") == 1


def test_table__names_nothing_that_is_there() -> None:
    there = {f"{group}={choice}" for group in groups() for choice in choices(group)} | {*known()}
    there |= {f"solver.method={name}" for name in methods()} | {f"path.rule={name}" for name in rules()}
    assert not there & {*REMOVED}
