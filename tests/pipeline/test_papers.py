"""`+experiment=papers`: every part of conf is a good sweep with claims, and parts are carried out as if given alone."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from configs import composed
from omegaconf import OmegaConf
from real_runs import ended
from waiting import wait_for

from gapwise.pipeline.config.settings import CONF
from gapwise.pipeline.sweep.papers import PaperOptions, _write, wanted_parts, words
from gapwise.pipeline.sweep.plan import sweep_options
from gapwise.stages.reports.papers import claims, page
from gapwise.stages.reports.papers.earlier import Pages, earlier
from gapwise.stages.reports.papers.short_page import page_text
from gapwise.stages.reports.papers.shown import standings
from gapwise.storage.results import read_path

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


def test_pages__of_two_commands_are_written_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entered, written = threading.Semaphore(1), []

    def write(target: Path, *_: object) -> None:
        assert entered.acquire(blocking=False), "two commands write the same file"
        time.sleep(0.05)
        written.append(target.name)
        entered.release()

    for name in ("write_json_claims", "write_index"):
        monkeypatch.setattr(page, name, write)
    pages = Pages({}, {})
    with ThreadPoolExecutor(2) as pool:
        ends = [pool.submit(_write, tmp_path / "papers", PaperOptions(), pages, "1 of 1", []) for _ in range(2)]
    assert [end.result() for end in ends] == [0, 0]
    assert written == 2 * ["papers.json", "index.html"]


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


def test_budgets__of_single_parts_bring_in_parts_that_only_they_have() -> None:
    options = PaperOptions(budgets={"s15_stanford": "full", "s15_usps": "small"}, parts=PARTS)
    options.check()
    assert [options.budget_of(name) for name in ("s15_usps", "s15_ocr")] == ["small", "minutes"]
    assert {*wanted_parts(options, [])} - {*wanted_parts(PaperOptions(parts=PARTS), [])} == {"s15_stanford"}


def test_claims__are_about_parts_that_there_are() -> None:
    assert {part for claim in claims() for part in claim.parts} <= set(PARTS)


def test_page__has_the_claims_that_there_are_and_counts_them() -> None:
    """The page in the repository: sentences, places and measures as in the code, totals as in its own table, no folder."""
    page = (ROOT / ".github" / "results" / "PAPERS.md").read_text(encoding="utf-8")
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if line.startswith("| “")
    ]
    known = {(f"“{claim.quote}”", claim.source, claim.judged) for claim in claims()}
    assert rows
    assert {tuple(row[:3]) for row in rows} <= known
    assert {shows for row in rows for shows in row[3].split("; ")} <= {part["shows"] for part in PARTS.values()}
    said = [row[4].partition(": ") for row in rows]
    counts = [sum(words == held for held, *_ in said) for words in ("holds", "does not hold", "not decided")]
    assert [held for held, _, why in said if bool(why) != (held == "not decided")] == [], "and it says why"
    text = "Claims checked: {}. They hold: {}; they do not: {}; these runs do not tell: {}."
    assert text.format(len(rows), *counts) in page
    assert re.findall(r"^### Claims: (.*)$", page, re.MULTILINE) == ["does not hold", "not decided", "holds"]
    assert not re.search(r"(?:^|[\s='\"(])/(?:\w+/)+", page)


def test_page__is_made_from_the_numbers_in_the_repository() -> None:
    """Word for word; the runs themselves are on the machines that made them."""
    file = ROOT / ".github" / "results" / "PAPERS.md"
    told = json.loads(file.with_suffix(".json").read_text(encoding="utf-8"))
    pages = earlier([told], PARTS)
    shown = [*pages.parts.values()]
    assert {part.folder for part in shown} == {None}
    text = page_text(file, shown, told, standings(shown, pages.told), FIGURES, ROOT / ".github" / "results" / "papers")
    assert text.splitlines() == file.read_text(encoding="utf-8").splitlines()


def test_page__shows_what_it_lists() -> None:
    """Each figure and table of the papers: a part with pictures that are in the repository, or a reason for none."""
    file = ROOT / ".github" / "results" / "PAPERS.md"
    page = file.read_text(encoding="utf-8")
    pictures = re.findall(r"^!\[.*\]\((.*)\)$", page, re.MULTILINE)
    assert pictures
    assert [name for name in pictures if not (file.parent / name).is_file()] == []
    sections = {part.partition("\n")[0]: part for part in page.split("\n## ")[1:]}
    shown = {name for name, part in PARTS.items() if "](" in sections.get(part["shows"], "")}
    cells = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in sections["Every figure and table"].splitlines()
    ]
    listed = {row[0]: row[1] for row in cells if len(row) == 2}
    assert [*listed][2:] == [*FIGURES], "below the heads and a line"
    for figure, names in FIGURES.items():
        if isinstance(names, str):
            assert listed[figure] == names
            assert [name for name in re.findall(r"\S+\.md", names) if not (ROOT / name).is_file()] == []
            continue
        assert shown & {*names}, figure
        for name in names:
            assert (PARTS[name]["shows"] if name in shown else f"not in these parts: {name}") in listed[figure], figure


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"budget": "hours"}, r"papers\.budget: expected one of minutes, small, full, got 'hours'"),
        ({"budgets": {"x": "full"}}, r"papers\.budgets: no part 'x'; there are: $"),
        ({"parts": PARTS, "budgets": {"s15_ocr": "big"}}, r"papers\.budgets\.s15_ocr: expected one of .*, got 'big'"),
        ({"parts": {"a": {"shows": "b", "sweep": ["dataset=ocr"]}}}, r"papers\.parts\.a: expected shows, sweep="),
        ({"parts": {"a": {"shows": "b", "sweep": ["+experiment=x"], "c": 1}}}, r"papers\.parts\.a: expected shows"),
        ({"figures": {"O16 Fig. 9": ["nine"]}}, r"papers\.figures\.O16 Fig\. 9: no part 'nine'"),
    ],
)
def test_options__are_refused_by_name(given: dict, expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        PaperOptions(**given).check()


GAPS = (
    "papers.parts.o16_fig5_horses={shows: gaps, sweep: ['+experiment=compare_family', 'dataset=sequences_csv', "
    "'dataset.file=train.txt', 'dataset.test_file=train.txt', 'sweep.only=[bcfw,bcfw_gap]', 'sweep.lambdas=[0.1]'], "
    "minutes: ['sweep.seeds=[0]', 'sweep.passes=6', 'sweep.rebase_passes=1']}"
)
"""A part of the page, over four sequences."""


@pytest.fixture
def four(tmp_path: Path) -> Path:
    """A folder with the data of `GAPS`."""
    lines = ["P\tw=a\tw=b\nQ\tw=b\n", "Q\tw=c\n", "P\tw=a\nP\tw=c\nQ\tw=b\n", "Q\tw=b\nP\tw=d\n"]
    (tmp_path / "train.txt").write_text("\n".join(lines))
    return tmp_path


def started(folder: Path, runs: str, *given: str, **more: str) -> subprocess.Popen[str]:
    """`+experiment=papers` in `folder` with the part `GAPS`, its runs in `runs`."""
    command = [sys.executable, "-m", "pipeline", "+experiment=papers", GAPS, *given, "sweep.workers=1", "tracking=none"]
    env = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "GAPWISE_RUNS": str(folder / runs),
        "GAPWISE_DATA": str(folder),
    } | more
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=folder, env=env, stdout=pipe, stderr=pipe, text=True)


def recounted(runs: Path, *rows: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    """Rows of the page, counted again by code that imports nothing of ours."""
    command = [sys.executable, str(ROOT / "tests" / "benchmarks" / "recount_papers.py"), str(runs), *rows]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == code, done.stderr
    return done


@pytest.mark.slow
def test_papers__carry_out_their_parts_and_go_on(four: Path) -> None:
    given = "sweep.only=[o16_fig5_horses,lj13_fig1_conll]", "papers.record=PAPERS.md", "papers.pictures=pictures"
    done = ended(started(four, "runs", *given))
    assert done.code == 0, done.err
    assert "papers: left out lj13_fig1_conll: " in done.err
    folder = four / "runs" / "papers"
    assert done.out.splitlines()[-1] == f"papers: {folder / 'index.html'}"
    record = json.loads((folder / "papers.json").read_text())
    assert [*record["left_out"]] == ["lj13_fig1_conll"]
    assert "data:image/png;base64," in (folder / "index.html").read_text(encoding="utf-8")
    assert "+experiment=compare_family" in (folder / "index.html").read_text(encoding="utf-8")
    short = (four / "PAPERS.md").read_text(encoding="utf-8")
    assert "](pictures/o16_fig5_horses-gaps.png)" in short
    assert (four / "pictures" / "o16_fig5_horses-gaps.png").stat().st_size > 10_000
    assert re.search(
        r"\| gaps +\| minutes +\| 2 +\| 1 +\| \S+ +\| \d{4}-\d\d-\d\d +\| \d+\.\d to \d+\.\d, median ", short
    )
    row = "gap_sampling_bcfw_gap@o16_fig5_horses"
    assert recounted(four / "runs", row).stdout.startswith(f"agrees   {row}: λ = 0.1: ")
    page = (folder / "papers.json").read_text()
    (folder / "papers.json").write_text(re.sub(r"( = 0\.1: )\d", r"\g<1>9", page))
    assert "DIFFERS" in recounted(four / "runs", row, code=1).stdout
    (folder / "papers.json").write_text(page)
    shown = ended(started(four, "elsewhere", f"papers.recorded=[{folder / 'papers.json'}]", "papers.record=OTHER.md"))
    assert shown.code == 0, shown.err
    assert [*(four / "elsewhere").iterdir()] == [four / "elsewhere" / "papers"], "nothing ran"
    assert json.loads((four / "elsewhere" / "papers" / "papers.json").read_text())["claims"] == record["claims"]
    added = "papers.recorded=[PAPERS.json]", "sweep.only=[lj13_fig1_conll]", "papers.record=ADDED.md", given[2]
    done = ended(started(four, "elsewhere", *added))
    assert done.code == 0, done.err
    assert "1/1 lj13_fig1_conll" in done.err, "and no other"
    tables = [text.partition("## Claims\n")[2] for text in (short, (four / "ADDED.md").read_text(encoding="utf-8"))]
    assert tables[0] == tables[1]
    (four / "old.json").write_text((four / "PAPERS.json").read_text().replace('"origin"', '"made"'))
    other = ended(started(four, "elsewhere", "papers.recorded=[old.json]"))
    assert (other.code, "papers.recorded: old.json: an entry without 'origin'" in other.err) == (2, True)
    nothing = ended(started(four, "elsewhere", "papers.recorded=[PAPERS.md]"))
    assert nothing.code == 2
    assert "PAPERS.md: not valid JSON" in nothing.err
    (sweep,) = [file.parent for file in (four / "runs" / "sweeps").rglob("summary.json")]
    pages = *sorted((sweep / "figures").glob("*.png")), sweep / "report.html", folder / "index.html"
    made = [page.stat().st_mtime_ns for page in pages]
    again = ended(started(four, "runs", *given))
    assert again.code == 0
    assert "sweep: 2 runs, 2 complete; " in again.err
    now = [page.stat().st_mtime_ns for page in pages]
    assert now[:-1] == made[:-1], "drawn again, although nothing changed"
    assert now[-1] > made[-1]
    summary = json.loads((sweep / "summary.json").read_text())
    assert summary["figures"]
    assert summary["table"]
    (sweep / "summary.json").write_text(json.dumps(summary | {"drawn_from": "other code"}))
    assert ended(started(four, "runs", *given)).code == 0
    assert all(page.stat().st_mtime_ns > before for page, before in zip(pages, made, strict=True))


@pytest.mark.slow
@pytest.mark.long
def test_papers__that_are_killed_go_on_to_the_same_page(four: Path) -> None:
    """But for the pictures, which have an axis of measured seconds."""
    given, plain = "sweep.only=[o16_fig5_horses]", {"NUMBA_DISABLE_JIT": "1"}
    calm = ended(started(four, "calm", given, **plain))
    assert calm.code == 0, calm.err
    victim = started(four, "killed", given, **plain)
    wait_for(lambda: len([*four.glob("killed/sequences_csv-*")]) == 2, victim)  # the first run is complete
    victim.kill()
    assert ended(victim).code == -signal.SIGKILL
    assert not (four / "killed" / "papers").exists()
    on = ended(started(four, "killed", given, **plain))
    assert on.code == 0, on.err
    assert "sweep: 2 runs, 1 complete; " in on.err
    tables = [
        [{name: value for name, value in row.items() if not name.startswith("seconds")} for row in summary["table"]]
        for runs in ("calm", "killed")
        for summary in (json.loads(file.read_text()) for file in (four / runs / "sweeps").rglob("summary.json"))
    ]
    assert len(tables[0]) == 2
    assert tables[1] == tables[0]
    for name in ("papers.json", "index.html"):
        pages = [(four / runs / "papers" / name).read_text(encoding="utf-8") for runs in ("calm", "killed")]
        calm_page, page = (re.sub(r"data:image/png;base64,[^\"]*", "", text) for text in pages)
        assert page.replace(str(four / "killed"), str(four / "calm")) == calm_page, name
    for run in four.glob("calm/sequences_csv-*"):
        expected, found = (read_path(four / runs / run.name / "path.zarr")[0] for runs in ("calm", "killed"))
        for name in ("weights", "support_alpha", "gap"):
            np.testing.assert_array_equal(found[name], expected[name])
