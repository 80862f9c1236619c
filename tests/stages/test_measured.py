"""Numbers of the READMEs that depend on no clock: the same commands give them again."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from configs import composed

from gapwise.pipeline.run import run
from gapwise.storage.results import read_path

pytestmark = pytest.mark.slow
README = Path(__file__).resolve().parents[1] / "benchmarks" / "README.md"
TOP = README.parents[2] / "README.md"
MOVED = {"one_sided": 0.04, "paper": 0.07}
"""How far rounding moves the passes of a rule, if by more than 2 %: between two processors by 3.5 and 6.6 %."""


def row_of(label: str) -> dict[str, tuple[int, float]]:
    """Breakpoints and passes, by rule, of a row of the table of rules."""
    table = README.read_text(encoding="utf-8").split("## The rules of the path")[1]
    lines = [
        [cell.strip(" `") for cell in line.split("|")[1:-1]] for line in table.splitlines() if line.startswith("|")
    ]
    rules, cells = lines[0], next(line for line in lines if line[0] == label)
    return {
        rule: (int(cell.split(", ")[0]), float(cell.split(", ")[1]))
        for rule, cell in zip(rules[1:], cells[1:], strict=True)
        if cell
    }


@pytest.mark.parametrize(
    ("rule", "eps"),
    [
        *((rule, 0.1) for rule in ("two_sided", "one_sided", "paper")),
        *(pytest.param(rule, 0.01, marks=pytest.mark.long) for rule in ("two_sided", "one_sided")),
    ],
)
def test_table__of_the_rules_is_what_the_command_gives(
    shared_data: Path, tmp_path: Path, rule: str, eps: float
) -> None:
    stated = row_of(f"OCR-small, ε = {eps}").get(rule)
    assert stated is not None
    words = [f"dataset.root={shared_data / 'ocr'}", f"run.root={tmp_path}", "tracking=none", "run.until=solve"]
    assert run(composed("+experiment=regpath_ocr", f"path.rule={rule}", f"path.eps={eps}", *words)) == 0
    (target,) = tmp_path.glob("*/path.zarr")
    columns, _ = read_path(target, ("effective_passes",))
    passes = columns["effective_passes"]
    # other processors and other orders of sums round differently, which moves a path a little
    assert (passes.size, float(passes.sum())) == (
        pytest.approx(stated[0], rel=0.02),
        pytest.approx(stated[1], rel=MOVED.get(rule, 0.02)),
    )


def facts_of(summary: str) -> dict[str, str]:
    """The lines of a run's summary by their first word, without seconds, rounding errors and the folder of the run."""
    lines = re.findall(r"^ *(problem|path|work|verify|best|run:) +(.*(?:\n {10,}test .*)?)", summary, re.MULTILINE)
    facts = {word: re.sub(r" · [0-9.]+ s solving|(?<=agree to )[0-9.]+(?=e-14)", "", text) for word, text in lines}
    return {**facts, "run:": Path(facts["run:"]).name}


@pytest.mark.long
def test_readme__shows_what_its_first_command_gives(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """To the digits that are printed, the name of the run included: the key is that of the sample's pictures and options."""
    assert run(composed("+experiment=regpath_horseseg", f"run.root={tmp_path}", "tracking=none")) == 0
    stated = facts_of(TOP.read_text(encoding="utf-8").split("```")[3])
    assert len(stated) == 6
    assert facts_of(capsys.readouterr().out) == stated
