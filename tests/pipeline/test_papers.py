"""`+experiment=papers`: every part of conf is a good sweep with claims, and parts are carried out as if given alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from configs import composed
from omegaconf import OmegaConf

from gapwise.pipeline.config.settings import CONF
from gapwise.pipeline.sweep.papers import PaperOptions, wanted_parts, words
from gapwise.pipeline.sweep.plan import sweep_options
from gapwise.stages.reports.papers import claims

PAPERS = OmegaConf.to_container(OmegaConf.load(CONF / "experiment" / "papers.yaml").papers)
PARTS, FIGURES = PAPERS["parts"], PAPERS["figures"]
OWN_DATA = {"+experiment=compare_solvers", "+experiment=hard_and_easy"}
"""Experiments that choose their data sets, or need none."""
ROOT = CONF.parent


@pytest.mark.parametrize("name", PARTS)
def test_part__is_a_sweep_on_which_claims_are_measured(name: str) -> None:
    line = words(
        PARTS[name], "minutes", ["+experiment=papers", "papers.budget=full", "sweep.only=[x]", "run.root=here"]
    )
    assert [word for word in line if "papers" in word or word == "sweep.only=[x]"] == []
    assert words(PARTS[name], "minutes", ["seed=1"], ["seed=2", "seed=3"])[1:4] == ["seed=2", "seed=3", "seed=1"]
    cfg = composed(*line, "seed=0" if OWN_DATA & {*line} else "dataset.root=somewhere")
    options = sweep_options(cfg)
    assert cfg.run.root == "here"
    mine = [claim for claim in claims() if name in claim.parts]
    assert mine
    assert options.wanted


def test_figures__show_every_part() -> None:
    options = PaperOptions(parts=PARTS, figures=FIGURES)
    options.check()
    shown = {name for parts in FIGURES.values() if not isinstance(parts, str) for name in parts}
    assert shown == set(PARTS)


def test_parts__that_take_long_are_left_to_the_full_budget() -> None:
    options = PaperOptions(parts=PARTS, figures=FIGURES)
    assert "s15_stanford" not in wanted_parts(options, [])
    assert wanted_parts(options, ["s15_stanford"]) == ["s15_stanford"]
    assert wanted_parts(PaperOptions(budget="full", parts=PARTS), []) == list(PARTS)


def test_claims__are_about_parts_that_there_are() -> None:
    assert {part for claim in claims() for part in claim.parts} <= set(PARTS)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"budget": "hours"}, r"papers\.budget: expected one of minutes, small, full, got 'hours'"),
        ({"parts": {"a": {"shows": "b", "sweep": ["dataset=ocr"]}}}, r"papers\.parts\.a: expected shows, sweep="),
        ({"parts": {"a": {"shows": "b", "sweep": ["+experiment=x"], "c": 1}}}, r"papers\.parts\.a: expected shows"),
        ({"figures": {"O16 Fig. 9": ["nine"]}}, r"papers\.figures\.O16 Fig\. 9: no part 'nine'"),
    ],
)
def test_options__are_refused_by_name(given: dict, expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        PaperOptions(**given).check()


@pytest.mark.slow
def test_papers__carry_out_their_parts_and_go_on(tmp_path: Path) -> None:
    lines = ["P\tw=a\tw=b\nQ\tw=b\n", "Q\tw=c\n", "P\tw=a\nP\tw=c\nQ\tw=b\n", "Q\tw=b\nP\tw=d\n"]
    (tmp_path / "train.txt").write_text("\n".join(lines))
    own = (
        "{shows: gaps, sweep: ['+experiment=compare_family', 'dataset=sequences_csv', 'dataset.file=train.txt', "
        "'dataset.test_file=train.txt', 'sweep.only=[bcfw,bcfw_gap]', 'sweep.lambdas=[0.1]'], "
        "minutes: ['sweep.seeds=[0]', 'sweep.passes=6', 'sweep.rebase_passes=1']}"
    )
    given = (
        f"+papers.parts.o16_own={own}", "sweep.only=[o16_own,lj13_fig1_conll]", "sweep.workers=1", "tracking=none",
        "papers.record=PAPERS.md",
    )  # fmt: skip
    command = [sys.executable, "-m", "pipeline", "+experiment=papers", *given]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "GAPWISE_RUNS": str(tmp_path / "runs"), "GAPWISE_DATA": str(tmp_path)}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "papers: left out lj13_fig1_conll: " in done.stderr
    folder = tmp_path / "runs" / "papers"
    assert done.stdout.splitlines()[-1] == f"papers: {folder / 'index.html'}"
    record = json.loads((folder / "papers.json").read_text())
    assert [*record["left_out"]] == ["lj13_fig1_conll"]
    assert "data:image/png;base64," in (folder / "index.html").read_text(encoding="utf-8")
    assert "+experiment=compare_family" in (folder / "index.html").read_text(encoding="utf-8")
    assert (tmp_path / "PAPERS.md").is_file()
    again = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300)
    assert again.returncode == 0
    assert "sweep: 2 runs, 2 complete; " in again.stderr
