"""Numbers of the READMEs that depend on no clock: the same commands give them again."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from configs import composed

from gapwise.pipeline.run import run
from gapwise.stages.featurize import open_problem
from gapwise.stages.solver.radii import squared_norms
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


@pytest.mark.long
def test_support_vectors__of_bcfw_are_as_many_as_stated_and_fewer_than_the_bound(
    shared_data: Path, tmp_path: Path
) -> None:
    """LJ13 5: R^2 / (lambda eps) support vectors; R^2 is the largest of these labellings, so the bound is no less."""
    words = [f"dataset.root={shared_data / 'ocr'}", f"run.root={tmp_path}", "tracking=none", "run.until=solve"]
    words += ["solver=bcfw", "path=single", "path.lambda=0.01", "path.tolerance=0.1", "path.relative=true"]
    assert run(composed("dataset=ocr", *words)) == 0
    (target,), (features,) = tmp_path.glob("ocr-*/path.zarr"), tmp_path.glob("features/ocr-*/meta.json")
    path, problem = read_path(target)[0], open_problem(features.parent, "train")
    gap, calls = float(path["gap"][0]), int(path["oracle_calls"][0])
    blocks = np.repeat(np.arange(problem.n), np.diff(path["support_offset"][0]))
    labels = np.zeros((blocks.size, int(np.diff(problem.label_ptr).max())), problem.truth.dtype)
    for row, (a, b) in zip(labels, pairwise(path["label_offset"]), strict=True):
        row[: b - a] = path["support_label"][a:b]
    wrong = int(np.count_nonzero((path["support_alpha"] > 0.0) & (path["support_loss"] > 0.0)))
    bound = float(squared_norms(problem, blocks, labels).max()) / (0.01 * gap)
    assert wrong <= min(calls, bound)
    stated = README.read_text(encoding="utf-8").split("BCFW came to a gap of ")[1].split("\n\n")[0]
    numbers = [float(number.replace(",", "")) for number in re.findall(r"\d[\d,.e]*\d", stated)]
    assert numbers == [pytest.approx(number, rel=0.05) for number in (gap, calls, wrong, bound)]


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
