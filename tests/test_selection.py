"""What the default suite leaves out."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from selection import left_out


@dataclass(frozen=True)
class Case:
    nodeid: str
    marks: dict[str, pytest.Mark] = field(default_factory=dict, hash=False)

    def get_closest_marker(self, name: str) -> pytest.Mark | None:
        return self.marks.get(name)


def test_left_out__are_long_tests_and_a_share_of_the_cases_in_every_row_and_column() -> None:
    half = {"share": pytest.mark.share(0.5).mark}
    table = [Case(f"t.py::table[{row}-{column}]", half) for row in range(6) for column in range(10)]
    whole = [Case(f"t.py::whole[{number}]") for number in range(5)]
    slow = [Case("t.py::slow", {"long": pytest.mark.long.mark})]
    left = left_out([*table, *whole, *slow], compiled=True)
    assert not left & set(whole)
    assert set(slow) <= left
    kept = [case.nodeid[len("t.py::table[") : -1].split("-") for case in table if case not in left]
    assert 28 <= len(kept) <= 32
    assert {row for row, _ in kept} == {str(row) for row in range(6)}
    assert {column for _, column in kept} == {str(column) for column in range(10)}
    assert left == left_out([*table, *whole, *slow], compiled=True)


def test_left_out__is_never_all_of_a_test() -> None:
    few = {"share": pytest.mark.share(0.01).mark}
    cases = [Case(f"t.py::few[{number}]", few) for number in range(3)]
    assert left_out(cases, compiled=True) == set(cases[1:])


def test_left_out__are_interpreted_tests_where_functions_are_compiled() -> None:
    cases = [Case("t.py::one"), Case("t.py::two", {"interpreted": pytest.mark.interpreted.mark})]
    assert left_out(cases, compiled=True) == {cases[1]}
    assert not left_out(cases, compiled=False)


def test_interpreted_tests__are_among_those_that_ci_runs_without_the_compiler() -> None:
    root = Path(__file__).resolve().parents[1]
    script = (root / ".ci" / "run").read_text().replace("\\\n", " ")
    (words,) = re.findall(r"^NUMBA_DISABLE_JIT=1 python -m pytest (.*)$", script, re.MULTILINE)
    run = [root / word.split("::")[0] for word in words.split()]
    uses = re.compile(r"pytest\.mark\.interpreted|\bonce_compiled\b")
    files = [file for file in (root / "tests").rglob("test_*.py") if uses.search(file.read_text(encoding="utf-8"))]
    files.remove(Path(__file__).resolve())
    assert files
    assert [file for file in files if not any(file.is_relative_to(some) for some in run)] == []
