"""The papers' claims as checks: each can hold, fail and stay undecided, on sweeps made up here."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from gapwise.stages.reports.papers import claims
from gapwise.stages.reports.papers.comparisons import (
    Outcome,
    better_at_equal_work,
    comparable,
    decided,
    neither_always,
    on_one_part,
    stronger_than_on,
    verdict,
)
from gapwise.stages.reports.papers.measured import Finding, Measured
from gapwise.storage.layout import GAP_TRACE, TRACE_LOSSES, write_group

N = 9
PAPERS = ("LJ13", "S15", "O16")
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


def letters(text: str) -> str:
    """What is left of a text without hyphens at the ends of lines, spaces, signs and capitals."""
    return re.sub(r"[^a-z0-9]", "", re.sub(r"-\s+", "", text).lower())


@pytest.mark.skipif(not TEXTS.is_dir(), reason="the papers' texts are not here")
def test_quotes__stand_in_the_papers() -> None:
    plain = {name: letters("".join(file.read_text() for file in TEXTS.glob(f"{name}*.txt"))) for name in PAPERS}
    assert [claim.quote for claim in claims() if letters(claim.quote) not in plain[claim.source.split()[0]]] == []


def test_claims__have_names_of_their_own() -> None:
    names = [claim.name for claim in claims()]
    assert len(names) > 20
    assert len(set(names)) == len(names)
    assert {claim.source[:3] for claim in claims()} == {"LJ1", "S15", "O16"}


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
