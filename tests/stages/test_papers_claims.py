"""The papers' claims as checks: each can hold, fail and stay undecided, on sweeps made up here."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from gapwise.stages.reports import papers
from gapwise.stages.reports.papers import claims, findings
from gapwise.stages.reports.papers.claim import Claim
from gapwise.stages.reports.papers.measured import (
    Finding,
    Measured,
    better_at_equal_work,
    budget,
    less_work,
    verdict,
    work_to,
)
from gapwise.stages.reports.papers.ours import contests, rows, said
from gapwise.stages.reports.papers.page import Shown, standings, write_index, write_json_claims, write_markdown
from gapwise.stages.reports.sweep_figures import paths
from gapwise.storage.layout import GAP_TRACE, TRACE_LOSSES, write_group

N = 9


def trace(fall: float, calls: float = 100.0, seconds: float = 0.01, passes: int = N) -> dict[str, np.ndarray]:
    """A gap trace whose suboptimalities begin at 0.5 and fall by the factor `fall` each pass."""
    numbers = np.arange(float(passes))
    primal, dual = 0.5 + 0.5 * fall**numbers, 0.5 - 0.5 * fall**numbers
    whole = {"breakpoint": 0 * numbers, "oracle_calls": calls * numbers, "steps": calls * numbers}
    return {
        **{name: values.astype(np.int64) for name, values in whole.items()},
        "lambda": 0 * numbers + 0.01, "passes": numbers, "seconds": seconds * numbers, "stale_gap": 0 * numbers,
        "dual": dual, "primal": primal, "gap": primal - dual, "test_loss": 0.2 + 0.1 * fall**numbers,
    }  # fmt: skip


def sweep(folder: Path, runs: Mapping[str, dict[str, np.ndarray]], figure: str = "solvers") -> Measured:
    """A sweep of one lambda and seed, with a run a variant."""
    jobs = []
    for name, arrays in runs.items():
        write_group(folder / name / "gap_trace.zarr", (*GAP_TRACE, *TRACE_LOSSES), arrays, {})
        jobs.append({"variant": name, "lambda": "0.01", "seed": 0, "run": str(folder / name), "status": "done"})
    summary = {"jobs": jobs, "figure": figure, "figures": [], "statuses": {"done": len(jobs)}}
    (folder / "summary.json").write_text(json.dumps(summary))
    return Measured(folder)


def test_equal_work__compares_where_both_have_been(tmp_path: Path) -> None:
    part = sweep(tmp_path, {"fast": trace(0.5), "slow": trace(0.8, passes=5), "accelerated": trace(0.1)})
    finding = better_at_equal_work("fast", "slow", "gap", "oracle_calls")(part)
    assert finding.holds
    assert finding.ratio == pytest.approx((0.8 / 0.5) ** 4, rel=1e-6)
    assert finding.measured == "λ = 0.01: 0.062 against 0.41 after 400 calls"
    worse = better_at_equal_work("slow", "fast", "gap", "oracle_calls")(part)
    assert worse.holds is False
    assert worse.measured.endswith("after 400 calls (a ratio of 0.15, half-way 0.39: not for want of budget)")
    assert budget(0.9, 0.5) == " (a ratio of 0.9, half-way 0.5: a larger budget may turn it)"
    assert budget(0.9, 1.5).endswith("half-way 1.5: it held there)")
    idle = better_at_equal_work("fast", "idle", "gap", "oracle_calls")
    assert idle(sweep(tmp_path, {"fast": trace(0.5), "idle": trace(0.8, passes=1)})).holds is None, (
        "after no calls at all"
    )
    assert budget(1.1, 0.5) == budget(0.9, np.nan) == ""


def test_less_work__goes_by_the_finest_accuracy_of_both_and_by_the_budget_where_there_is_none(tmp_path: Path) -> None:
    runs = {"fast": trace(0.1), "slow": trace(0.5), "stuck": trace(0.999, passes=20), "short": trace(0.999, passes=2)}
    part = sweep(tmp_path, runs)
    finding = less_work("fast", "slow", "primal_excess", "passes")(part)
    assert (finding.holds, finding.ratio) == (True, 7 / 3), (
        "0.01 D* after 3 and after 7 passes; 0.001 D* is beyond slow"
    )
    assert less_work("fast", "slow", "primal_excess", "passes", times=4.0)(part).holds is False
    bound = less_work("fast", "stuck", "gap", "passes", times=10.0)(part)
    assert (bound.holds, bound.ratio) == (True, 1.9), "it made 19 passes without coming to D*, fast needs 1"
    open_still = less_work("fast", "short", "gap", "passes", times=10.0)(part)
    assert open_still == Finding(None, "these runs do not come far enough to tell")
    assert work_to(part.traces("slow", "0.01"), "gap", "seconds", 1e-9) == np.inf


def test_findings__say_which_runs_are_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    part = sweep(tmp_path, {"fast": trace(0.5), "slow": trace(0.8)})
    ask = Claim("x", "S", "It is so.", ("here",), better_at_equal_work("fast", "absent"))
    monkeypatch.setattr(papers, "claims", lambda: [ask])
    assert findings("here", part) == [(ask, Finding(None, "there are no complete runs of absent"))]
    assert findings("elsewhere", part) == []


def test_verdict__can_be_written_as_json() -> None:
    finding = verdict([np.float64(2.0), np.float64(3.0)], ["so"])
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
    passes, seconds = contests("task", [part])
    assert passes.goal == seconds.goal == "a gap of 0.01 D*"
    assert (passes.best, passes.best_work, passes.ours, passes.our_work) == ("bcfw", 8.0, "accelerated", 3.0)
    assert (seconds.best, seconds.best_work) == ("bcfw", pytest.approx(0.008)), (
        "bcfw_nols does not get there in its 8 passes"
    )
    assert (seconds.over, seconds.ratio) == ("seconds", pytest.approx(0.008 / 0.03))
    assert said(passes) == "λ = 0.01, to a gap of 0.01 D*: accelerated 3 passes, bcfw 8 passes, 2.7 times less"
    assert rows([passes, seconds])[0][3:6] == ["bcfw: 8 passes", "accelerated: 3 passes", "2.7"]
    assert contests("task", [sweep(tmp_path, {"bcfw": trace(0.5)})]) == []


def test_contests__look_at_all_parts_of_a_task(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    first = sweep(tmp_path / "one", {"bcfw": trace(0.5), "accelerated": trace(0.2)})
    two = sweep(tmp_path / "two", {"MP-BCFW": trace(0.3)}, figure="multiplane")
    assert {line.best for line in contests("task", [first])} == {"bcfw"}
    assert {line.best for line in contests("task", [first, two])} == {"MP-BCFW"}
    assert contests("task", [two]) == []
    shown = [Shown("a", "a", "c", task="t").of(first.folder), Shown("b", "b", "c", task="t").of(two.folder)]
    assert [line.best for line in standings(shown)] == ["MP-BCFW", "MP-BCFW"]
    assert [line.task for line in standings([Shown("a", "alone", "c").of(first.folder)])] == ["alone", "alone"]


def test_pages__show_claims_commands_and_what_was_left_out(tmp_path: Path) -> None:
    runs = {"accelerated": trace(0.1), "bcfw": trace(0.5), "bcfw_nols": trace(0.7)}
    folder = sweep(tmp_path / "sweep", runs).folder if (tmp_path / "sweep").mkdir() is None else None
    assert folder is not None
    done = Shown("lj13_fig1", "LJ13 Fig. 1", "python -m pipeline +experiment=x", "something").of(folder)
    absent = Shown("s15_usps", "S15 Fig. 4", "python -m pipeline +experiment=y").without("no such file")
    about = {
        "command": "python -m pipeline +experiment=papers sweep.workers=1",
        "budget": "minutes",
        "parts": "2 of 2",
        "source": "abc",
    }
    write_json_claims(tmp_path / "papers.json", [done, absent], about)
    where_shown = {"LJ13 Fig. 1 (a)": ["lj13_fig1"], "LJ13 Fig. 9": "a drawing", "LJ13 Fig. 8": ["other"]}
    (folder / "figures").mkdir()
    (folder / "figures" / "x.pdf").write_bytes(b"")
    Image.new("RGB", (2, 2)).save(folder / "figures" / "x.png")
    done = replace(done, figures=("x.png",))
    write_index(tmp_path / "index.html", [done, absent], about, where_shown)
    write_markdown(tmp_path / "PAPERS.md", [done, absent], about, where_shown)
    written = json.loads((tmp_path / "papers.json").read_text())
    (row,) = [row for row in written["claims"] if row["claim"] == "line_search"]
    assert (row["holds"], row["part"]) == (True, "lj13_fig1")
    assert written["left_out"] == {"s15_usps": "no such file"}
    assert [line["ours"] for line in written["ours"]] == ["accelerated"] * 2
    page, text = ((tmp_path / name).read_text(encoding="utf-8") for name in ("index.html", "PAPERS.md"))
    for words in ("Line search beats", "no such file", "something", "abc", "a drawing", "not in these parts: other"):
        assert words in page
        assert words in text
    assert "They hold: 1; they do not: 0; these runs do not tell: 7." in text
    assert 'href="sweep/figures/x.pdf"' in page
    assert "x.svg" not in page
    assert "What this project adds: λ = 0.01, to a gap of" in page
    assert "\npython -m pipeline +experiment=papers sweep.workers=1\n" in text


def test_page__keeps_a_part_whose_sweep_cannot_be_read(tmp_path: Path) -> None:
    part = Shown("a", "b", "c").of(tmp_path / "gone")
    assert "summary.json" in part.problem


def test_equal_accuracy__takes_a_grid_as_dense_as_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lam = np.array([1.0, 0.5, 0.25, 0.125])
    path = {"lambda": np.geomspace(1.0, 0.25, 10), "effective_passes": np.full(10, 1.0)}
    grid = {"lambda": lam, "effective_passes": np.array([1.0, 2.0, 3.0, 99.0]), "gap": np.full(4, 0.1)}
    grid |= {"hinge": np.full(4, 0.5), "norm2": np.full(4, 0.1)}
    monkeypatch.setattr(Measured, "path", lambda part, name: {"paper": path, "grid": grid}[name])
    (claim,) = [claim for claim in claims() if claim.name == "path_at_equal_accuracy"]
    finding = claim.measure(sweep(tmp_path, {"paper": trace(0.5)}))
    assert (finding.holds, finding.ratio) == (True, 2.0), "10 lambdas of 2 passes each against 10 passes in all"
    assert "3 λ's between 1 and 0.25, solved to 0.1 in 6 passes, certify 0.3 " in finding.measured


def test_toy__counts_calls_to_a_gap_of_zero(tmp_path: Path) -> None:
    runs = {"uniform": trace(0.02, calls=100.0), "gap": trace(0.02, calls=12.0)}
    part = sweep(tmp_path, {**runs, "gap_without_exact_passes": trace(0.02, calls=10.0)})
    part.summary["common"] = {"dataset.n": 20, "dataset.classes": 30}
    (claim,) = [claim for claim in claims() if claim.name == "toy"]
    finding = claim.measure(part)
    assert finding.measured.startswith("n = 20, K = 30: 600 calls by uniform sampling (n(K − 1) = 580), 72 by gap")
    assert (finding.holds, finding.ratio) == (True, pytest.approx(100.0 / 12.0 / 4.0))


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
