"""The papers' claims as checks: each can hold, fail and stay undecided, on sweeps made up here."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from stages.reports import papers
from stages.reports.papers import claims, findings
from stages.reports.papers.claim import Claim
from stages.reports.papers.measured import Finding, Measured, better_at_equal_work, less_work, verdict, work_to
from stages.reports.papers.ours import contests
from stages.reports.papers.page import Shown, write_index, write_json_claims, write_markdown
from stages.reports.sweep_figures import paths
from storage.layout import GAP_TRACE, TRACE_LOSSES, write_group

N = 9


def trace(fall: float, calls: float = 100.0, seconds: float = 0.01, passes: int = N) -> dict[str, np.ndarray]:
    """A gap trace whose suboptimalities begin at 0.5 and fall by the factor `fall` each pass."""
    at = np.arange(float(passes))
    primal, dual = 0.5 + 0.5 * fall**at, 0.5 - 0.5 * fall**at
    whole = {"breakpoint": 0 * at, "oracle_calls": calls * at, "steps": calls * at}
    return {
        **{name: values.astype(np.int64) for name, values in whole.items()},
        "lambda": 0 * at + 0.01, "passes": at, "seconds": seconds * at, "stale_gap": 0 * at, "dual": dual, "primal": primal,
        "gap": primal - dual, "test_loss": 0.2 + 0.1 * fall**at,
    }  # fmt: skip


def sweep(folder: Path, runs: Mapping[str, dict[str, np.ndarray]], figure: str = "solvers") -> Measured:
    """A sweep of one lambda and seed, with a run a variant."""
    jobs = []
    for name, arrays in runs.items():
        write_group(folder / name / "gap_trace.zarr", (*GAP_TRACE, *TRACE_LOSSES), arrays, {})
        jobs.append({"variant": name, "lambda": "0.01", "seed": 0, "run": str(folder / name), "status": "done"})
    found = {"jobs": jobs, "figure": figure, "figures": [], "statuses": {"done": len(jobs)}}
    (folder / "summary.json").write_text(json.dumps(found))
    return Measured(folder)


def test_equal_work__compares_where_both_have_been(tmp_path: Path) -> None:
    part = sweep(tmp_path, {"fast": trace(0.5), "slow": trace(0.8, passes=5), "accelerated": trace(0.1)})
    found = better_at_equal_work("fast", "slow", "gap", "oracle_calls")(part)
    assert found.holds
    assert found.ratio == pytest.approx((0.8 / 0.5) ** 4, rel=1e-6)
    assert found.measured == "λ = 0.01: 0.062 against 0.41 after 400 calls"
    assert better_at_equal_work("slow", "fast", "gap", "oracle_calls")(part).holds is False


def test_less_work__goes_by_the_finest_accuracy_of_both_and_by_the_budget_where_there_is_none(tmp_path: Path) -> None:
    runs = {"fast": trace(0.1), "slow": trace(0.5), "stuck": trace(0.999, passes=20), "short": trace(0.999, passes=2)}
    part = sweep(tmp_path, runs)
    found = less_work("fast", "slow", "primal_excess", "passes")(part)
    assert (found.holds, found.ratio) == (True, 7 / 3), "0.01 D* after 3 and after 7 passes; 0.001 D* is beyond slow"
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
    found = verdict([np.float64(2.0), np.float64(3.0)], ["so"])
    assert json.loads(json.dumps([found.holds, found.ratio])) == [True, 2.0]


def test_claims__have_names_of_their_own() -> None:
    names = [claim.name for claim in claims()]
    assert len(names) > 20
    assert len(set(names)) == len(names)
    assert {claim.source[:3] for claim in claims()} == {"LJ1", "S15", "O16"}


def test_contests__set_ours_beside_the_best_of_the_papers_methods(tmp_path: Path) -> None:
    runs = {"accelerated": trace(0.1), "bcfw": trace(0.5, seconds=0.001), "MP-BCPFW": trace(0.01)}
    passes, seconds = contests("task", sweep(tmp_path, runs))
    assert (passes.goal, passes.best, passes.best_work, passes.our_work) == ("a gap of 0.01 D*", "bcfw", 8.0, 3.0)
    assert (seconds.over, seconds.ratio) == ("seconds", pytest.approx(0.008 / 0.03)), (
        "ours takes ten times the seconds of a pass"
    )
    assert contests("task", sweep(tmp_path, {"bcfw": trace(0.5)})) == []


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
    write_index(tmp_path / "index.html", [done, absent], about)
    write_markdown(tmp_path / "PAPERS.md", [done, absent], about)
    found = json.loads((tmp_path / "papers.json").read_text())
    (row,) = [row for row in found["claims"] if row["claim"] == "line_search"]
    assert (row["holds"], row["part"]) == (True, "lj13_fig1")
    assert found["left_out"] == {"s15_usps": "no such file"}
    assert [line["ours"] for line in found["ours"]] == ["accelerated"] * 2
    page, text = ((tmp_path / name).read_text(encoding="utf-8") for name in ("index.html", "PAPERS.md"))
    for said in ("Line search beats", "no such file", "something", "abc"):
        assert said in page
        assert said in text
    assert "\npython -m pipeline +experiment=papers sweep.workers=1\n" in text


def test_page__keeps_a_part_whose_sweep_cannot_be_read(tmp_path: Path) -> None:
    part = Shown("a", "b", "c").of(tmp_path / "gone")
    assert "summary.json" in part.problem


def test_paths_figure__sums_work_and_takes_the_least_test_loss(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = {
        "paper": {
            "lambda": np.array([1.0, 0.1]),
            "effective_passes": np.array([3.0, 4.0]),
            "seconds": np.array([0.1, 0.2]),
        },
        "grid": {"lambda": np.array([2.0, 1.0, 0.5]), "effective_passes": np.ones(3), "seconds": np.ones(3)},
    }
    found["grid"]["test_loss"] = np.array([0.5, 0.2, 0.3])
    monkeypatch.setattr(paths, "read_numbers", lambda place: (found[place.name], {}))
    made = paths.make([(name, "", 0, tmp_path / name) for name in found], made_in(tmp_path))
    assert [(row["lambdas"], row["passes"], row["last_lambda"], row["test_loss"]) for row in made["table"]] == [
        (2, 7.0, 0.1, None), (3, 3.0, 0.5, 0.2)
    ]  # fmt: skip
    assert [line.split()[-1] for line in made["text"][1:]] == ["–", "0.2000"]
    assert (tmp_path / "figures" / "paths.png").stat().st_size > 10_000


def made_in(folder: Path) -> Path:
    (folder / "figures").mkdir()
    return folder
