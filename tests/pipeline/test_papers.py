"""`+experiment=papers`: each part of conf is a good sweep with claims, and the page is made from its numbers."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from configs import composed
from omegaconf import OmegaConf
from real_runs import Sandbox

from gapwise.pipeline.config.settings import CONF
from gapwise.pipeline.sweep.papers import PaperOptions, wanted_parts, words
from gapwise.pipeline.sweep.plan import sweep_options
from gapwise.stages.reports.papers import claims
from gapwise.stages.reports.papers.earlier import earlier
from gapwise.stages.reports.papers.short_page import page_text
from gapwise.stages.reports.papers.shown import standings

PAPERS = OmegaConf.to_container(OmegaConf.load(CONF / "experiment" / "papers.yaml").papers)
PARTS, FIGURES = PAPERS["parts"], PAPERS["figures"]
OWN_DATA = {"+experiment=compare_solvers", "+experiment=hard_and_easy"}
"""Experiments that choose their data sets, or need none."""
RESULTS = CONF.parent / ".github" / "results"


@pytest.mark.parametrize("name", PARTS)
def test_part__is_a_sweep_on_which_claims_are_measured(name: str) -> None:
    line = words(PARTS[name], "minutes", ["+experiment=papers", "papers.budget=full", "sweep.only=[x]"])
    assert [word for word in line if "papers" in word or word == "sweep.only=[x]"] == []
    cfg = composed(*line, "seed=0" if OWN_DATA & {*line} else "dataset.root=somewhere")
    assert sweep_options(cfg).wanted
    assert [claim for claim in claims() if name in claim.parts]


def test_options__are_those_of_conf_and_refused_by_name() -> None:
    options = PaperOptions(parts=PARTS, figures=FIGURES)
    options.check()
    assert {name for parts in FIGURES.values() if not isinstance(parts, str) for name in parts} == set(PARTS)
    assert "s15_stanford" not in wanted_parts(options, []), "it takes long"
    assert {part for claim in claims() for part in claim.parts} <= set(PARTS)
    with pytest.raises(ValueError, match=r"papers\.budget: expected one of minutes, small, full, got 'hours'"):
        PaperOptions(budget="hours").check()


def test_page__is_made_from_the_numbers_in_the_repository() -> None:
    """Word for word; the runs themselves are on the machines that made them."""
    file = RESULTS / "PAPERS.md"
    told = json.loads(file.with_suffix(".json").read_text(encoding="utf-8"))
    pages = earlier([told], PARTS)
    shown = [*pages.parts.values()]
    text = page_text(file, shown, told, standings(shown, pages.told), FIGURES, RESULTS / "papers")
    assert text.splitlines() == file.read_text(encoding="utf-8").splitlines()
    pictures = re.findall(r"^!\[.*\]\((.*)\)$", text, re.MULTILINE)
    assert pictures
    assert [name for name in pictures if not (RESULTS / name).is_file()] == []


GAPS = (
    "papers.parts.o16_fig5_horses={shows: gaps, sweep: ['+experiment=compare_family', 'dataset=sequences_csv', "
    "'dataset.file=train.txt', 'dataset.test_file=train.txt', 'sweep.only=[bcfw,bcfw_gap]', 'sweep.lambdas=[0.1]'], "
    "minutes: ['sweep.seeds=[0]', 'sweep.passes=6', 'sweep.rebase_passes=1']}"
)
"""A part of the page, over four sequences."""


@pytest.mark.slow
def test_papers__carry_out_their_parts(chain, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    runs.mkdir()
    (runs / "train.txt").write_text(chain.text.read_text())
    asked = ["+experiment=papers", GAPS, "sweep.only=[o16_fig5_horses]", "sweep.workers=1", "tracking=none"]
    sandbox = Sandbox(runs, [*asked, "papers.record=PAPERS.md", "papers.pictures=pictures"], {"NUMBA_DISABLE_JIT": "1"})
    assert sandbox.finish().out.splitlines()[-1] == f"papers: {runs / 'papers' / 'index.html'}"
    assert "data:image/png;base64," in (runs / "papers" / "index.html").read_text(encoding="utf-8")
    assert "](pictures/o16_fig5_horses-gaps.png)" in (runs / "PAPERS.md").read_text(encoding="utf-8")
    assert (runs / "pictures" / "o16_fig5_horses-gaps.png").stat().st_size > 10_000
    assert json.loads((runs / "papers" / "papers.json").read_text())["claims"]
