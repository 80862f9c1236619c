"""The table in storage/README.md is the one that the suite produces."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from faults_table import BELIEVED, FAULTS, RESEALED, markdown, resealed_markdown

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("table", [markdown(), resealed_markdown()], ids=["faults", "resealed"])
def test_readme__has_the_tables_of_the_suite(table: str) -> None:
    assert table in (ROOT / "storage" / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(("mark", "rows"), [("fault", FAULTS), ("resealed", RESEALED)])
def test_table__has_a_test_for_every_row(mark: str, rows: dict[str, tuple[str, str]]) -> None:
    tests = "".join(file.read_text(encoding="utf-8") for file in Path(__file__).parent.glob("test_*.py"))
    marked = re.findall(rf'^@pytest\.mark\.{mark}\("([^"]+)"\)', tests, re.MULTILINE)
    assert set(marked) == set(rows)


def test_table__says_not_caught_of_what_a_test_shows_to_be_believed() -> None:
    """A row that says caught has a test that wants exit 1; one that says it is not, a test that wants exit 0."""
    tests = (Path(__file__).parent / "test_resealed.py").read_text(encoding="utf-8")
    bodies = re.split(r'^@pytest\.mark\.resealed\("', tests, flags=re.MULTILINE)[1:]
    for body in bodies:
        name, body = body.split('"', 1)
        assert ("fails(" in body or "caught_in" in body) != RESEALED[name][1].startswith(BELIEVED), name
