"""The table in storage/README.md is the one that the suite produces."""

from __future__ import annotations

import re
from pathlib import Path

from faults_table import FAULTS, markdown

ROOT = Path(__file__).resolve().parents[2]


def test_readme__has_the_table_of_the_suite() -> None:
    assert markdown() in (ROOT / "storage" / "README.md").read_text(encoding="utf-8")


def test_table__has_a_test_for_every_row() -> None:
    tests = "".join(file.read_text(encoding="utf-8") for file in Path(__file__).parent.glob("test_*.py"))
    marked = re.findall(r'^@pytest\.mark\.fault\("([^"]+)"\)', tests, re.MULTILINE)
    assert set(marked) == set(FAULTS)
