"""The papers' claims as checks: each can hold, fail and stay undecided, on sweeps made up here."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from gapwise.stages.problems.certainty import ESTIMATE
from gapwise.stages.reports import papers
from gapwise.stages.reports.papers import claims, findings
from gapwise.stages.reports.papers.claim import MOST_WORDS, Claim
from gapwise.stages.reports.papers.comparisons import (
    Outcome,
    against,
    alike_at_equal_work,
    better_at_equal_work,
    comparable,
    decided,
    less_work,
    neither_always,
    not_worse,
    on_one_part,
    stronger_at_larger_lambda,
    stronger_than_on,
    trend,
    verdict,
    work_to,
)
from gapwise.stages.reports.papers.earlier import earlier
from gapwise.stages.reports.papers.measured import Finding, Measured
from gapwise.stages.reports.papers.ours import Contest, contests, rows, said
from gapwise.stages.reports.papers.page import write_index, write_json_claims
from gapwise.stages.reports.papers.short_page import draw_smaller, page_text, write_markdown
from gapwise.stages.reports.papers.shown import Shown, judged, origin_rows, recorded, standings
from gapwise.stages.reports.sweep_figures import paths
from gapwise.storage.layout import GAP_TRACE, TRACE_LOSSES, write_group

N = 9
PAPERS = ("LJ13", "S15", "O16")
ABOUT = {"command": "c", "budget": "minutes", "parts": "2 of 2", "made": "a day", "python": "P", "machine": "m"}
TEXTS = Path(__file__).resolve().parents[3] / "shared" / "papers"


def trace(fall: float, calls: float = 100.0, seconds: float = 0.01, passes: int = N) -> dict[str, np.ndarray]:
    """A gap trace whose suboptimalities begin at 0.5 and fall by the factor `fall` each pass."""
    numbers = np.arange(float(passes))
    primal, dual = 0.5 + 0.5 * fall**numbers, 0.5 - 0.5 * fall**numbers
    whole = {"breakpoint": 0 * numbers, "oracle_calls": calls * numbers, "steps": calls * numbers}
    return {
        **{name: values.astype(np.int64) for name, values in whole.items()},
        "lambda": 0 * numbers + 0.01, "passes": numbers, "seconds": seconds * numbers, "stale_gap": 0 * numbers,
        "dual": dual, "primal": primal, "gap": primal - dual, "test_loss": 0.2 + 0.1 * fall**numbers,
        "nonuniformity": 0 * numbers + np.nan, "curvature_nonuniformity": 0 * numbers + np.nan,
    }  # fmt: skip


def sweep(folder: Path, runs: Mapping[str, Sequence[dict] | dict], figure: str = "solvers") -> Measured:
    """A sweep of one lambda, with a run a variant, or one for each seed."""
    jobs = []
    for name, arrays in runs.items():
        for seed, one in enumerate([arrays] if isinstance(arrays, dict) else arrays):
            run = folder / f"{name}-{seed}"
            write_group(run / "gap_trace.zarr", (*GAP_TRACE, *TRACE_LOSSES), one, {})
            jobs.append({"variant": name, "lambda": "0.01", "seed": seed, "run": str(run)})
            jobs[-1]["status"] = "complete" if seed else "done"
    summary = {"jobs": jobs, "figure": figure, "figures": [], "statuses": {"done": len(jobs)}}
    (folder / "summary.json").write_text(json.dumps(summary))
    return Measured(folder)


def test_equal_work__compares_where_both_have_been(tmp_path: Path) -> None:
    part = sweep(tmp_path, {"fast": trace(0.5), "slow": trace(0.8, passes=5), "accelerated": trace(0.1)})
    finding = better_at_equal_work("fast", "slow", "gap", "oracle_calls")(part)
    assert finding.holds
    assert finding.ratio == pytest.approx((0.8 / 0.5) ** 4, rel=1e-6)
    assert finding.measured == "λ = 0.01: 0.062 against 0.41 after 400 calls"
    early = better_at_equal_work("fast", "slow", "gap", "oracle_calls", after=100.0)(part)
    assert early.measured.endswith("0.5 against 0.8 after 100 calls")
    worse = better_at_equal_work("slow", "fast", "gap", "oracle_calls")(part)
    assert worse.holds is False
    assert worse.measured.endswith(" (ratio 0.62, 0.39, 0.15 after 1/4, 1/2 and all of it: falling)")
    idle = better_at_equal_work("fast", "idle", "gap", "oracle_calls")
    nothing = sweep(tmp_path, {"fast": trace(0.5), "idle": trace(0.8, passes=1)})
    assert idle(nothing).holds is None, "after no calls at all"
    absent = better_at_equal_work("fast", "slow", lambdas=("0.1",))(part)
    assert absent == Finding(None, "these runs have no numbers there", why="no such λ was run")


def test_equal_work__before_the_first_snapshot_is_not_made_up(tmp_path: Path) -> None:
    part = sweep(tmp_path, {"fast": trace(0.5), "slow": {**trace(0.8), "passes": np.arange(float(N)) * 5.0}})
    early = better_at_equal_work("fast", "slow", after=4.0)(part)
    assert (early.holds, early.why) == (None, "runs are too short")
    assert better_at_equal_work("fast", "slow", after=5.0)(part).holds is True


def test_equal_work__of_small_values_waits_for_them(tmp_path: Path) -> None:
    part = sweep(tmp_path, {"fast": trace(0.5), "slow": trace(0.8)})
    early, late = (better_at_equal_work("fast", "slow", after=passes, small=0.1)(part) for passes in (4.0, 5.0))
    assert (early.holds, late.holds) == (None, True), "0.0625 and 0.03125, where D* is nearly 0.5"
    assert (early.why, late.why) == ("gaps are still large", "")


def test_equal_work__of_seeds_that_overlap_decides_nothing(tmp_path: Path) -> None:
    runs = {"low": [trace(0.5), trace(0.6)], "middle": [trace(0.55), trace(0.7)], "high": [trace(0.8), trace(0.9)]}
    part = sweep(tmp_path, runs)
    assert better_at_equal_work("low", "high")(part).holds is True
    assert better_at_equal_work("high", "low")(part).holds is False
    open_still = better_at_equal_work("low", "middle")(part)
    assert (open_still.holds, open_still.why) == (None, "seeds overlap")
    assert open_still.measured.startswith(
        "λ = 0.01: 0.01 [0.0039, 0.017] against 0.033 [0.0084, 0.058] after 8 passes (ratio "
    )


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        ([0.21], [0.22], "0.21 against 0.22"),
        ([0.121, 0.122, 0.123], [0.124, 0.1241, 0.125], "0.122 [0.121, 0.123] against 0.124 [0.124, 0.125]"),
        ([0.12341], [0.12342], "0.1234 against 0.1234"),
    ],
)
def test_numbers__have_as_many_digits_as_tell_them_apart(ours: list, theirs: list, expected: str) -> None:
    assert against(np.array(ours), np.array(theirs)) == expected


def test_single_runs__decide_only_what_differs_much() -> None:
    one, close, far = np.array([1.0]), np.array([1.2]), np.array([1.3])
    assert [decided(one, other)[1] for other in (close, far)] == [None, True]
    assert [decided(other, one)[1] for other in (close, far)] == [None, False]
    assert decided(one, np.array([20.0]), times=10.0) == (2.0, True)
    assert decided(one, np.array([5.0]), times=10.0) == (0.5, False)


def test_verdict__of_all_and_of_some() -> None:
    good, bad, unclear = (Outcome(ratio, holds, "x", "so") for ratio, holds in ((3.0, True), (0.5, False), (1.1, None)))
    assert [verdict(some).holds for some in ([good, good], [good, unclear], [good, unclear, bad])] == [
        True,
        None,
        False,
    ]
    assert [verdict(some, sometimes=True).holds for some in ([good, bad], [bad, unclear], [bad])] == [True, None, False]
    assert (verdict([good, bad]).ratio, verdict([good, bad], sometimes=True).ratio) == (0.5, 3.0)
    assert verdict([good, unclear]).measured == "x; x (so)"
    assert [verdict(some).why for some in ([good, unclear, unclear], [bad, unclear], [])] == [
        "so",
        "",
        "runs are too short",
    ]
    pairs = ((3.0, 2.0), (2.0, 5.0), (np.inf, 5.0), (np.nan, 5.0))
    assert [comparable(*pair, "so").holds for pair in pairs] == [True, False, False, None]


def test_trend__compares_nothing_before_a_snapshot_or_without_numbers() -> None:
    ours, theirs = (
        [{"passes": np.array([0.0, 8.0, 16.0]), "gap": np.array(gaps)}] for gaps in ((1, 0.1, 0), (1, 0.5, 0.2))
    )
    assert trend([ours, theirs], "passes", 16.0, "gap") == " (ratio 5, 2e+15 after 1/2 and all of it: rising)"
    assert trend([ours, theirs], "passes", 12.0, "gap") == ""
    nothing = [{"passes": np.array([0.0, 8.0, 16.0]), "gap": np.full(3, np.nan)}]
    assert trend([ours, nothing], "passes", 16.0, "gap") == ""


@pytest.mark.parametrize(
    ("falls", "holds"),
    [
        (((0.2, 0.8), (0.4, 0.8), (0.7, 0.8)), True),
        (((0.8, 0.2), (0.8, 0.4), (0.8, 0.7)), False),
        (((0.8, 0.79), (0.8, 0.7), (0.8, 0.5)), False),  # it rises, but theirs is better at every lambda
        (((0.4, 0.8), (0.5, 0.8), (0.45, 0.8)), None),
    ],
)
def test_trend__with_lambda(tmp_path: Path, falls: Sequence[tuple[float, float]], holds: bool | None) -> None:
    part = sweep(tmp_path, {})
    part.curves = {
        (name, lam): [trace(fall) | {"lambda": np.full(N, float(lam))}]
        for lam, both in zip(("0.1", "0.01", "0.001"), falls, strict=True)
        for name, fall in zip(("ours", "theirs"), both, strict=True)
    }
    assert stronger_at_larger_lambda("ours", "theirs")(part).holds is holds


def test_iterations__are_judged_by_every_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    part = sweep(tmp_path, {"MP-BCFW": trace(0.5)})
    columns = {"planes": np.full(8, 1.5), "approximate_passes": np.arange(5.0, 13.0)}
    monkeypatch.setattr(Measured, "iterations", lambda part, name, lam: [columns])
    judged = {
        claim.name: claim.measure(part).holds for claim in claims() if claim.name in ("usps_planes", "usps_passes")
    }
    assert judged == {"usps_planes": True, "usps_passes": False}


def test_less_work__goes_by_the_finest_accuracy_of_both_and_by_the_budget_where_there_is_none(tmp_path: Path) -> None:
    runs = {"fast": trace(0.1), "slow": trace(0.5), "stuck": trace(0.999, passes=20), "short": trace(0.999, passes=2)}
    part = sweep(tmp_path, runs)
    finding = less_work("fast", "slow", "primal_excess", "passes")(part)
    assert (finding.holds, finding.ratio) == (True, 8 / 3), (
        "0.005 D* after 3 and after 8 passes; 0.002 D* is beyond slow"
    )
    assert less_work("fast", "slow", "primal_excess", "passes", times=4.0)(part).holds is False
    bound = less_work("fast", "stuck", "gap", "passes", times=10.0)(part)
    assert (bound.holds, bound.ratio) == (True, 1.9), "it made 19 passes without coming to D*, fast needs 1"
    open_still = less_work("fast", "short", "gap", "passes", times=10.0)(part)
    assert open_still == Finding(None, "these runs have no numbers there", why="runs are too short")
    assert work_to(part.traces("slow", "0.01"), "gap", "seconds", 1e-9) == np.inf


def letters(text: str) -> str:
    """What is left of a text without hyphens at the ends of lines, spaces, signs and capitals."""
    return re.sub(r"[^a-z0-9]", "", re.sub(r"-\s+", "", text).lower())


@pytest.mark.skipif(not TEXTS.is_dir(), reason="the papers' texts are not here")
def test_quotes__stand_in_the_papers() -> None:
    plain = {name: letters("".join(file.read_text() for file in TEXTS.glob(f"{name}*.txt"))) for name in PAPERS}
    assert [claim.quote for claim in claims() if letters(claim.quote) not in plain[claim.source.split()[0]]] == []


def test_quotes__are_short() -> None:
    assert [claim.quote for claim in claims() if len(claim.quote.split()) > MOST_WORDS] == []


def test_findings__say_which_runs_are_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    part = sweep(tmp_path, {"fast": trace(0.5), "slow": trace(0.8)})
    ask = Claim("x", "S", "It is so.", "something", ("here",), better_at_equal_work("fast", "absent"))
    monkeypatch.setattr(papers, "claims", lambda: [ask])
    missing = Finding(None, "there are no complete runs of absent", why="runs are missing")
    assert findings("here", part) == [(ask, missing)]
    assert findings("elsewhere", part) == []


def test_verdict__can_be_written_as_json() -> None:
    finding = verdict([Outcome(np.float64(2.0), True, "so"), Outcome(np.float64(3.0), True, "so")])
    assert json.loads(json.dumps([finding.holds, finding.ratio])) == [True, 2.0]


def test_claims__have_names_of_their_own() -> None:
    names = [claim.name for claim in claims()]
    assert len(names) > 20
    assert len(set(names)) == len(names)
    assert {claim.source[:3] for claim in claims()} == {"LJ1", "S15", "O16"}


def test_contests__set_ours_beside_the_best_of_the_papers_methods(tmp_path: Path) -> None:
    slow = {
        "bcfw_nols": trace(0.6, seconds=0.0001),
        "expensive_oracle": trace(0.2),
    }  # listed first, and not the best in passes
    runs = {**slow, "accelerated": trace(0.1), "bcfw": trace(0.5, seconds=0.001), "MP-BCPFW": trace(0.01)}
    part = sweep(tmp_path, runs)
    passes, seconds = contests("task", {"a": part})
    assert passes.goal == seconds.goal == "a gap of 0.01 D*"
    assert (passes.best, passes.best_work, passes.ours, passes.our_work) == ("bcfw", 8.0, "accelerated", 3.0)
    assert (seconds.best, seconds.best_work) == ("bcfw", pytest.approx(0.008)), (
        "bcfw_nols does not get there in its 8 passes"
    )
    assert (seconds.over, seconds.ratio) == ("seconds", pytest.approx(0.008 / 0.03))
    assert said(passes) == "λ = 0.01, to a gap of 0.01 D*: accelerated 3 passes, bcfw 8 passes, 2.7 times less"
    assert rows([passes, seconds])[0][3:6] == ["bcfw: 8 passes", "accelerated: 3 passes", "2.7"]
    assert contests("task", {"a": sweep(tmp_path, {"bcfw": trace(0.5)})}) == []


def test_contests__look_at_all_parts_of_a_task(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    first = sweep(tmp_path / "one", {"bcfw": trace(0.5), "accelerated": trace(0.2)})
    two = sweep(tmp_path / "two", {"MP-BCFW": trace(0.3)}, figure="multiplane")
    assert {(line.best, line.parts) for line in contests("task", {"a": first})} == {("bcfw", ("a",))}
    assert {(line.best, line.parts) for line in contests("task", {"a": first, "b": two})} == {("MP-BCFW", ("b", "a"))}
    assert contests("task", {"b": two}) == []
    shown = [Shown("a", "a", "c", task="t").of(first.folder), Shown("b", "b", "c", task="t").of(two.folder)]
    assert [line.best for line in standings(shown)] == ["MP-BCFW", "MP-BCFW"]
    assert [line.task for line in standings([Shown("a", "alone", "c").of(first.folder)])] == ["alone", "alone"]


def test_contests__of_estimates_take_no_primal_value_below_the_largest_dual(tmp_path: Path) -> None:
    """An oracle without a bound may show P too low; exact runs with such a P are refused."""
    low = trace(0.1)
    runs = {"bcfw": trace(0.5), "accelerated": low | {"primal": low["primal"] - 0.1}}
    part = sweep(tmp_path, runs)
    with pytest.raises(ValueError, match="no dual value can be"):
        contests("task", {"a": part})
    for name in runs:
        write_group(
            tmp_path / f"{name}-0" / "gap_trace.zarr", (*GAP_TRACE, *TRACE_LOSSES), runs[name], {"certainty": ESTIMATE}
        )
    assert {line.ours for line in contests("task", {"a": Measured(tmp_path)})} == {"accelerated"}


def test_standings__keep_what_earlier_pages_told_of_runs_that_are_elsewhere(tmp_path: Path) -> None:
    """The finer accuracy of the two, or the least work to the same; not what rests on a part that was carried out again."""
    here = Shown("a", "a", "c", task="t").of(sweep(tmp_path, {"bcfw": trace(0.5), "accelerated": trace(0.2)}).folder)
    passes, seconds = standings([here])

    def with_told(part: str = "b", **other: object) -> tuple[float | None, str, float, str, float, tuple[str, ...]]:
        told = replace(passes, best="fw", ours="anytime", parts=(part,), **other)
        lines = standings([here, Shown("b", "b", "c", task="t", origin=("1",))], [told])
        assert lines[1] == seconds
        return (lines[0].level, lines[0].best, lines[0].best_work, lines[0].ours, lines[0].our_work, lines[0].parts)

    assert passes.level is not None
    assert with_told(level=passes.level / 2, our_work=99.0)[:5:2] == (passes.level / 2, passes.best_work, 99.0)
    assert with_told(level=passes.level * 2)[1] == "bcfw"
    assert with_told(best_work=1.0, our_work=99.0)[1:] == ("fw", 1.0, "accelerated", passes.our_work, ("b", "a"))
    assert with_told(best_work=99.0, our_work=1.0)[1:] == ("bcfw", passes.best_work, "anytime", 1.0, ("a", "b"))
    assert with_told("a", level=passes.level / 2)[1] == "bcfw"
    other = replace(passes, lam="0.1", value=0.1, parts=("b",))
    assert standings([here], [other]) == [other, passes, seconds]
    assert standings([here], [replace(other, task="gone")]) == [passes, seconds]


def test_pages__show_claims_commands_and_what_was_left_out(tmp_path: Path) -> None:
    runs = {"accelerated": trace(0.1), "bcfw": trace(0.5), "bcfw_nols": trace(0.7)}
    folder = sweep(tmp_path / "sweep", runs).folder if (tmp_path / "sweep").mkdir() is None else None
    assert folder is not None
    done = Shown("lj13_fig1", "LJ13 Fig. 1", "python -m pipeline +experiment=x", "something", "t", "small").of(folder)
    absent = Shown("s15_usps", "S15 Fig. 4", "python -m pipeline +experiment=y").without("no such file")
    about = ABOUT | {"command": "python -m pipeline +experiment=papers sweep.workers=1", "source": "abc"}
    lines = standings([done, absent])
    write_json_claims(tmp_path / "papers.json", [done, absent], about, lines)
    where_shown = {"LJ13 Fig. 1 (a)": ["lj13_fig1"], "LJ13 Fig. 9": "a drawing", "LJ13 Fig. 8": ["other"]}
    (folder / "figures").mkdir()
    (folder / "figures" / "x.pdf").write_bytes(b"")
    Image.effect_noise((1200, 30), 90.0).convert("RGB").save(folder / "figures" / "x.png")
    done = replace(done, figures=("x.png",))
    write_index(tmp_path / "index.html", [done, absent], about, lines, where_shown)
    write_markdown(tmp_path / "PAPERS.md", [done, absent], about, lines, where_shown, tmp_path / "pictures")
    with Image.open(tmp_path / "pictures" / "lj13_fig1-x.png") as picture:
        assert (picture.size, picture.mode) == ((1000, 25), "P")
    written = json.loads((tmp_path / "papers.json").read_text())
    (row,) = [row for row in written["claims"] if row["claim"] == "step_size_later_bcfw_nols"]
    assert (row["holds"], row["part"]) == (True, "lj13_fig1")
    assert written["left_out"] == {"s15_usps": "no such file"}
    again, gone = (recorded(row, written["claims"]) for row in written["parts_made"])
    assert replace(again, figures=done.figures, measured=done.measured) == done
    assert gone == absent
    assert_same_pages_elsewhere(tmp_path, [done, absent], about, lines, where_shown)
    assert [line["ours"] for line in written["ours"]] == ["accelerated"] * 2
    page, text = ((tmp_path / name).read_text(encoding="utf-8") for name in ("index.html", "PAPERS.md"))
    for words in (
        "a systematic (but smaller) advantage",
        "no such file",
        "something",
        "abc",
        "a drawing",
        "not in these parts: other",
    ):
        assert words in page
        assert words in text
    assert "They hold: 2; they do not: 0; these runs do not tell: 11." in text
    assert "\n![LJ13 Fig. 1: x](pictures/lj13_fig1-x.png)\n" in text
    assert 'href="sweep/figures/x.pdf"' in page
    assert "data:image/" in page
    assert "x.svg" not in page
    assert "What this project adds: λ = 0.01, to a gap of" in page
    assert "\npython -m pipeline +experiment=papers sweep.workers=1\n" in text


def assert_same_pages_elsewhere(
    here: Path, parts: Sequence[Shown], about: dict, lines: Sequence[Contest], where_shown: dict
) -> None:
    """From the numbers alone, and pictures that are there, comes the same page in Markdown; the other has no pictures."""
    write_json_claims(here / "told.json", parts, about, lines, here=False)
    text = (here / "told.json").read_text(encoding="utf-8")
    assert str(here) not in text
    told = json.loads(text)
    names = {part.name: {"shows": part.shows, "differs": "other words"} for part in parts if part.name == "lj13_fig1"}
    pages = earlier([told], names)
    shown = [*pages.parts.values()]
    assert [part.folder for part in shown] == [None, None]
    assert [part.differs for part in shown] == ["other words", ""]
    assert standings(shown, pages.told) == [*lines]
    same = page_text(here / "x.md", shown, told, lines, where_shown, here / "pictures")
    assert same.replace("other words", "something") == (here / "PAPERS.md").read_text(encoding="utf-8")
    write_index(here / "elsewhere.html", shown, told, lines, where_shown)
    page = (here / "elsewhere.html").read_text(encoding="utf-8")
    assert page.count("Its runs are not on this machine") == 1
    (row,) = [row for row in told["claims"] if row["claim"] == "step_size_later_bcfw_nols"]
    row["judged"] = "in another way"
    pairs = zip(recorded(told["parts_made"][0], told["claims"]).claims, shown[0].claims, strict=True)
    (changed,) = [new for new, old in pairs if new != old]
    assert (changed[0].name, changed[1].holds) == (row["claim"], None)
    assert ("data:image/" in page, page.count("Left out: no such file")) == (False, 1)


def test_earlier_pages__of_later_files_and_parts_carried_out_now_come_first(tmp_path: Path) -> None:
    def told(budget: str, *names: str) -> dict:
        parts = [Shown(name, name, "c", budget=budget, origin=("1",)) for name in names]
        line = Contest("x", "0.1", 0.1, 0.5, "passes", "bcfw", 2.0, "accelerated", 1.0, names)
        write_json_claims(tmp_path / "told.json", parts, ABOUT, [line], here=False)
        return json.loads((tmp_path / "told.json").read_text())

    pages = earlier([told("small", "s15_ocr", "s15_usps"), told("full", "s15_usps")], {"s15_usps": {}, "s15_ocr": {}})
    assert [(part.name, part.budget) for part in pages.parts.values()] == [("s15_usps", "full"), ("s15_ocr", "small")]
    assert [line.parts for line in pages.told] == [("s15_usps",)], "the other rests on runs that are not shown"
    wanted = {claim.name for claim in claims() if "s15_ocr" in claim.parts}
    assert {claim.name for claim, _ in pages.parts["s15_ocr"].claims} == wanted
    assert {finding.why for _, finding in pages.parts["s15_ocr"].claims} == {"runs are missing"}
    new = {name: Shown(name, name, "c", budget="now") for name in ("s15_ocr", "s15_horses")}
    after = pages.with_parts({**new, "s15_usps": replace(new["s15_ocr"], origin=("1",))}, ["s15_horses", "s15_ocr"])
    assert [(name, part.budget) for name, part in after.parts.items()] == [
        ("s15_horses", "now"),
        ("s15_ocr", "small"),
        ("s15_usps", "now"),
    ], "without runs now, the earlier ones stay"


def test_pictures__are_drawn_again_only_from_another_figure(tmp_path: Path) -> None:
    figure, picture = tmp_path / "x.png", tmp_path / "small.png"
    picture.write_bytes(b"no picture")

    def drawn(seed: int) -> tuple[bytes, int]:
        noise = np.random.default_rng(seed).integers(0, 255, (4, 4), np.uint8)
        Image.fromarray(noise).save(figure)
        draw_smaller(figure, picture)
        return picture.read_bytes(), picture.stat().st_ino

    first, again, other = drawn(0), drawn(0), drawn(1)
    assert first == again, "the same file, untouched"
    assert other[0] != first[0]


def test_open_claims__say_why(tmp_path: Path) -> None:
    """And of several comparisons each says which methods it sets against each other."""
    runs = {name: [trace(0.5), trace(fall)] for name, fall in (("bcfw", 0.6), ("bcfw_wavg", 0.7), ("ssg", 0.9))}
    part = Shown("lj13_ocr_small", "LJ13 Fig. 1", "c", budget="small")
    part = part.of(sweep(tmp_path, {**runs, "ssg_wavg": [trace(0.91), trace(0.92)]}).folder)
    write_markdown(tmp_path / "PAPERS.md", [part], ABOUT, [], {})
    text = (tmp_path / "PAPERS.md").read_text(encoding="utf-8")
    assert "\nWhy these runs do not tell:\n\n- runs are missing: 5.\n- seeds overlap: 3.\n" in text
    (row,) = [line for line in text.splitlines() if line.startswith("| “the weighted average")]
    assert " | does not hold | bcfw_wavg, bcfw: early: λ = 0.01: " in row
    assert "<br>ssg_wavg, ssg: early: λ = 0.01: " in row


@pytest.mark.parametrize(
    ("passes", "alike", "ends"),
    [
        ({0.3: 9.0, 0.5: 6.0, 0.95: 5.0, 0.99: 7.0}, True, True),
        ({0.3: 11.0, 0.5: 6.0, 0.95: 5.0, 0.99: 7.0}, False, True),
        ({0.3: 9.0, 0.5: 6.0, 0.95: 5.0, 0.99: 6.0}, True, False),
    ],
)
def test_kappa__matters_little_and_most_at_the_ends(
    passes: dict[float, float], alike: bool, ends: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = sweep(tmp_path, {})
    names = {f"{solver} kappa={kappa}": n for solver in ("bcfw_gap", "bcpfw_gap_cache") for kappa, n in passes.items()}
    part.jobs = [{"variant": name} for name in names]
    monkeypatch.setattr(Measured, "path", lambda part, variant: {"effective_passes": np.array([names[variant]])})
    found = {claim.name: claim.measure(part).holds for claim in claims() if claim.name.startswith("kappa")}
    assert found == {"kappa": alike, "kappa_ends": ends}


def test_origin__is_that_of_the_runs_and_says_what_is_not_recorded(tmp_path: Path) -> None:
    folder = sweep(tmp_path, {"fast": [trace(0.5), trace(0.6), trace(0.7)], "slow": trace(0.8)}).folder
    summary = json.loads((folder / "summary.json").read_text())
    for job, load in zip(summary["jobs"], (0.5, 2.25, 1.0, None), strict=True):
        job |= {"commit": f"{job['seed']}" * 40, "made": f"2026-11-2{job['seed']}", "load": load}
    (folder / "summary.json").write_text(json.dumps(summary))
    part = Shown("lj13_fig1", "LJ13 Fig. 1", "c", budget="small").of(folder)
    assert origin_rows([part, Shown("a", "b", "c")]) == [
        [
            "LJ13 Fig. 1",
            "small",
            "4",
            "3",
            "00000000, 11111111, 22222222",
            "2026-11-20 to 2026-11-22",
            "0.5 to 2.2, median 1.0",
        ]
    ]
    other = Shown("s15_usps", "S15 Fig. 4", "c").of(sweep(tmp_path, {"fast": trace(0.5)}).folder)
    assert other.origin == ("1", "1", "unknown", "unknown", "not recorded")


def test_short_page__begins_with_what_does_not_hold(tmp_path: Path) -> None:
    part = Shown("lj13_fig1", "LJ13 Fig. 1", "c", budget="small").of(
        sweep(tmp_path, {"bcfw": trace(0.7), "bcfw_nols": trace(0.4), "ssg": trace(0.5)}).folder
    )
    write_markdown(tmp_path / "PAPERS.md", [part], ABOUT, [], {})
    head = (tmp_path / "PAPERS.md").read_text(encoding="utf-8").split("## What this project adds")[0]
    assert "- `small`: two or three seeds" in head
    quote = "“optimal step-size leads to a significant advantage during the first few passes”"
    first = f"- {quote} (LJ13 1): fails in 2 of 2 rows, holds in 0."
    assert head.split("What does not hold:")[1].split("\n")[2] == first


def test_better_despite_the_worst_objective__is_both_at_one_lambda_and_moment(tmp_path: Path) -> None:
    def tested(fall: float, test: float, **more: object) -> dict:
        return trace(fall) | {"test_loss": 0.0 * np.arange(N) + test} | more

    (claim,) = [claim for claim in claims() if claim.name == "ssg_wavg_tests"]
    rivals = {"bcfw_wavg": tested(0.5, 0.3), "ssg": trace(0.5)}
    short = {**trace(0.999, passes=3), "passes": np.array([0.0, 0.1, 0.2])}  # nothing is known of ssg_wavg there
    finding = claim.measure(sweep(tmp_path, {"ssg_wavg": tested(0.8, 0.2), **rivals, "eg": short}))
    assert finding.holds is True
    assert "test errors 0.2 against 0.3, suboptimality 0.17, the largest of the others" in finding.measured
    for objective, error in ((0.8, 0.4), (0.3, 0.2)):
        finding = claim.measure(sweep(tmp_path, {"ssg_wavg": tested(objective, error), **rivals}))
        assert finding.holds is False, "one of the two is not enough"
    worse = {"cutting_plane": trace(0.9)}
    finding = claim.measure(sweep(tmp_path, {"ssg_wavg": tested(0.8, 0.2), **rivals, **worse}))
    assert finding.holds is False
    assert "the largest of the others (cutting_plane)" in finding.measured
    late = np.where(np.arange(N) < 6, 1.0, 0.3 ** np.arange(N))  # of SSG-wavg; the other falls early
    falls_late = tested(0.5, 0.2, primal=0.5 + 0.5 * late)
    finding = claim.measure(sweep(tmp_path, {"ssg_wavg": falls_late, **rivals, "fw": trace(0.7)}))
    assert finding.holds is True, "after 5 passes, and no more at the end"
    assert "suboptimality 0.5, the largest of the others (fw) 0.086 after 5 passes" in finding.measured


def told(*ratios: float | None, holds: Sequence[bool | None] = ()) -> dict[str, Finding]:
    """Findings of as many parts."""
    every = [*holds, *(None for _ in ratios[len(holds) :])]
    return {f"{k}": Finding(held, "x", ratio, "so") for k, (ratio, held) in enumerate(zip(ratios, every, strict=True))}


def test_sentences_about_several_data_sets__are_judged_on_all_of_them() -> None:
    assert [neither_always(told(*ratios)).holds for ratios in ((2.0, 0.5), (2.0, 1.2, 3.0), (2.0, 1.3), (0.5, 0.7))] == [
        True, True, False, False
    ]  # fmt: skip
    assert neither_always(told(2.0, None)).holds is None
    assert neither_always(told(2.0, 2.5)).ratio == pytest.approx(1.25 / 2.0)
    some = [[False, None, True], [False, None], [False, False]]
    assert [on_one_part(told(*(1.0 for _ in held), holds=held)).holds for held in some] == [True, None, False]
    together = stronger_than_on("0")
    assert [together(told(*ratios)).holds for ratios in ((2.0, 3.0, 4.0), (2.0, 3.0, 1.5), (2.0,), (None, 3.0))] == [
        True, False, None, None
    ]  # fmt: skip


def test_rows_of_the_page__set_the_parts_of_a_joint_sentence_together() -> None:
    (joint,) = [claim for claim in claims() if claim.name == "warm_starts_alike"]
    (alone,) = [claim for claim in claims() if claim.name == "warm_start"]
    missing = Finding(None, "nothing", why="runs are missing")
    parts = [
        Shown("a", "A", "c", claims=((joint, Finding(None, "1 against 2", 2.0, "so")), (alone, Finding(True, "y")))),
        Shown("b", "B", "c", claims=((joint, Finding(None, "3 against 1", 1 / 3, "so")), (alone, missing))),
        Shown("d", "D", "c", claims=((joint, missing),)),
    ]
    rows = [(row.claim.name, row.on, row.finding.holds, row.finding.measured) for row in judged(parts)]
    assert rows == [
        ("warm_start", "A", True, "y"),
        ("warm_start", "B", None, "nothing"),
        ("warm_starts_alike", "A; B", True, "A: 1 against 2; B: 3 against 1"),
    ]


def test_lambdas_that_decide_nothing__are_named(tmp_path: Path) -> None:
    one = trace(0.5)
    for name, fall in (("fast", 0.5), ("slow", 0.8)):
        for lam, passes in (("0.01", N), ("0.1", 1)):
            write_group(
                tmp_path / f"{name}-{lam}" / "gap_trace.zarr",
                (*GAP_TRACE, *TRACE_LOSSES),
                trace(fall, passes=passes),
                {},
            )
    jobs = [
        {"variant": name, "lambda": lam, "seed": 0, "run": str(tmp_path / f"{name}-{lam}"), "status": "done"}
        for name in ("fast", "slow") for lam in ("0.01", "0.1")
    ]  # fmt: skip
    (tmp_path / "summary.json").write_text(
        json.dumps({"jobs": jobs, "figure": "solvers", "figures": [], "statuses": {}})
    )
    finding = better_at_equal_work("fast", "slow")(Measured(tmp_path))
    assert (finding.holds, one["passes"].size) == (True, N)
    assert finding.measured.endswith("; λ = 0.1: runs are too short")
    finding = less_work("fast", "slow")(Measured(tmp_path))
    assert finding.measured.endswith("; λ = 0.1: runs are too short")


def test_not_worse_and_alike__compare_after_equal_work(tmp_path: Path) -> None:
    runs = {"fast": [trace(0.5), trace(0.52)], "slow": [trace(0.8), trace(0.82)], "near": [trace(0.51), trace(0.53)]}
    part = sweep(tmp_path, runs)
    pairs = [("fast", "slow"), ("slow", "fast"), ("near", "fast")]
    assert [not_worse(*pair)(part).holds for pair in pairs] == [True, False, None]
    assert [alike_at_equal_work(*pair, "gap", "passes")(part).holds for pair in pairs] == [False, False, True]
    assert alike_at_equal_work("near", "fast", "gap", "passes", ("1/n",))(part).holds is None
    unknown = sweep(tmp_path, {"fast": trace(0.5), "slow": trace(0.8) | {"gap": np.full(N, np.nan)}})
    for measure in (not_worse("fast", "slow"), alike_at_equal_work("fast", "slow", "gap", "passes")):
        assert (measure(unknown).holds, measure(unknown).why) == (None, "runs are too short")


def of_paths(
    monkeypatch: pytest.MonkeyPatch, part: Measured, passes: dict[str, float], seconds: dict[str, float]
) -> None:
    columns = {"effective_passes": passes, "seconds": seconds}
    monkeypatch.setattr(
        Measured, "path", lambda part, variant: {name: np.array([of[variant]]) for name, of in columns.items()}
    )


@pytest.mark.parametrize(("seconds", "holds"), [(0.5, True), (0.9, None), (2.0, False)])
def test_heuristic_path__saves_passes_and_seconds(
    seconds: float, holds: bool | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = sweep(tmp_path, {})
    of_paths(monkeypatch, part, {"heuristic": 10.0, "paper": 20.0}, {"heuristic": seconds, "paper": 1.0})
    (claim,) = [claim for claim in claims() if claim.name == "heuristic_saves"]
    finding = claim.measure(part)
    assert (finding.holds, finding.measured) == (holds, f"10.0 against 20.0 passes, {seconds:.2g} against 1 s")


def test_warm_starts__have_a_ratio_for_each_data_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    part = sweep(tmp_path, {})
    passes = {"grid_keep_primal": 10.0, "grid_keep_dual": 20.0}
    of_paths(monkeypatch, part, passes, passes)
    (claim,) = [claim for claim in claims() if claim.name == "warm_starts_alike"]
    assert claim.measure(part) == Finding(None, "10.0 against 20.0 passes", 2.0, "judged on all data sets together")


@pytest.mark.parametrize(("alone", "holds"), [(0.9, True), (0.3, False)])
def test_local_component__is_set_against_the_best_without(alone: float, holds: bool, tmp_path: Path) -> None:
    falls = {"F=0.1 nu=0": 0.7, "F=0.1 nu=0.01": 0.5, "F=0.25 nu=0": 0.8, "F=0.25 nu=0.01": 0.8}
    falls |= {"F=0 nu=0.01": alone, "F=0 nu=0.1": 0.95, "F=0 nu=1": 0.95}
    (claim,) = [claim for claim in claims() if claim.name == "local_dominates"]
    finding = claim.measure(sweep(tmp_path, {name: trace(fall) for name, fall in falls.items()}))
    assert finding.holds is holds
    assert finding.measured.startswith("λ = 0.01: F=0.1 nu=0.01 0.0039, F=0 nu=0.01 ")


@pytest.mark.parametrize(
    ("name", "column", "values", "holds"),
    [
        ("horses_planes", "planes", [1, 8, 9, 8, 4, 4, 4, 4], True),
        ("horses_planes", "planes", [1, 2, 3, 4, 5, 6, 7, 8], False),
        ("horses_planes", "planes", [9, 9, 9, 9, 8, 8, 8, 8], False),
        ("stanford_planes", "planes", [1, 2, 3, 4, 5, 6, 6.1, 6.2], True),
        ("stanford_planes", "planes", [1, 2, 3, 4, 5, 6, 7, 9], False),
        ("stanford_planes", "planes", [1, 2, 3, 4, 3, 3, 6, 6], False),
        ("stanford_passes", "approximate_passes", [2, 2, 3, 3, 3, 4, 5, 5], True),
        ("stanford_passes", "approximate_passes", [2, 2, 2, 3, 3, 3, 2, 1], False),
        ("stanford_passes", "approximate_passes", [2, 2, 9, 20, 30, 50, 70, 90], False),
    ],
)
def test_planes_and_passes__grow_and_settle(
    name: str, column: str, values: list[float], holds: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = sweep(tmp_path, {"MP-BCFW": trace(0.5)})
    monkeypatch.setattr(Measured, "iterations", lambda part, name, lam: [{column: np.array(values, float)}])
    (claim,) = [claim for claim in claims() if claim.name == name]
    assert claim.measure(part).holds is holds


def test_page__keeps_a_part_whose_sweep_cannot_be_read(tmp_path: Path) -> None:
    part = Shown("a", "b", "c").of(tmp_path / "gone")
    assert "summary.json" in part.problem


def test_toy__counts_calls_to_a_gap_of_zero(tmp_path: Path) -> None:
    runs = {"uniform": trace(0.02, calls=100.0), "gap": trace(0.02, calls=12.0)}
    part = sweep(tmp_path, {**runs, "gap_without_exact_passes": trace(0.02, calls=10.0)})
    part.summary["common"] = {"dataset.n": 20, "dataset.classes": 30}
    (claim,) = [claim for claim in claims() if claim.name == "toy"]
    finding = claim.measure(part)
    assert finding.measured.startswith("n = 20, K = 30: 600 calls by uniform sampling (n(K − 1) = 580), 72 by gap")
    assert (finding.holds, finding.ratio) == (True, pytest.approx(100.0 / 12.0 / 4.0))


@pytest.mark.parametrize(("calls", "holds"), [(110.0, True), (50.0, False), (130.0, False)])
def test_toy__tells_fixed_probabilities_from_uniform_ones(tmp_path: Path, calls: float, holds: bool) -> None:
    part = sweep(tmp_path, {"uniform": trace(0.02, calls=100.0), "lipschitz": trace(0.02, calls=calls)})
    (claim,) = [claim for claim in claims() if claim.name == "toy_lipschitz"]
    assert claim.measure(part).holds is holds


@pytest.mark.parametrize(("fall", "holds"), [(0.99, True), (0.8, False)])
def test_gap_that_is_never_refreshed__stalls_or_not(tmp_path: Path, fall: float, holds: bool) -> None:
    part = sweep(tmp_path, {"never": trace(fall), "every 10": trace(0.5)})
    (claim,) = [claim for claim in claims() if claim.name == "never_refreshed"]
    finding = claim.measure(part)
    assert finding.holds is holds
    assert finding.ratio == pytest.approx(1.25 * fall**4)
    assert finding.measured.endswith("every 10 0.062 half way, 0.0039 at the end, after 8 passes")


@pytest.mark.parametrize(
    ("known", "refreshed", "holds"), [(0.5, 1.0, True), (0.9, 1.0, False), (0.5, 0.5, None), (0.5, 0.55, True)]
)
def test_underestimated_gap__is_the_true_one_over_the_known_one(
    tmp_path: Path, known: float, refreshed: float, holds: bool | None
) -> None:
    shares = {"never": known, "every 10": refreshed}
    runs = {name: trace(0.5) | {"stale_gap": share * trace(0.5)["gap"]} for name, share in shares.items()}
    (claim,) = [claim for claim in claims() if claim.name == "underestimated"]
    finding = claim.measure(sweep(tmp_path, runs))
    assert finding.holds is holds
    words = f"λ = 0.01: {1.0 / known:.2g} without exact passes, {1.0 / refreshed:.2g} with one every 10"
    assert finding.measured == words


def test_paths_figure__sums_work_and_takes_the_least_test_loss(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arrays = {
        "paper": {
            "lambda": np.array([1.0, 0.1]),
            "effective_passes": np.array([3.0, 4.0]),
            "seconds": np.array([0.1, 0.2]),
        },
        "grid": {"lambda": np.array([2.0, 1.0, 0.5]), "effective_passes": np.ones(3), "seconds": np.ones(3)},
    }
    arrays["grid"]["test_loss"] = np.array([0.5, 0.2, 0.3])
    monkeypatch.setattr(paths, "read_numbers", lambda run_dir: (arrays[run_dir.name], {}))
    made = paths.make([(name, "", 0, tmp_path / name) for name in arrays], made_in(tmp_path))
    assert [(row["lambdas"], row["passes"], row["last_lambda"], row["test_loss"]) for row in made["table"]] == [
        (2, 7.0, 0.1, None), (3, 3.0, 0.5, 0.2)
    ]  # fmt: skip
    assert [line.split()[-1] for line in made["text"][1:]] == ["–", "0.2000"]
    assert (tmp_path / "figures" / "paths.png").stat().st_size > 10_000


def made_in(folder: Path) -> Path:
    (folder / "figures").mkdir()
    return folder
