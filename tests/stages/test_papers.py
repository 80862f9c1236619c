"""The papers' page (`tests/benchmarks/papers`): verdicts from stored values, values from sweeps, and the page itself."""

from __future__ import annotations

import fnmatch
import functools
import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from configs import composed
from reported import falling

from gapwise.pipeline.config.settings import sweep_options
from gapwise.storage.layout import GAP_TRACE, TRACE_LOSSES, write_group

ROOT = Path(__file__).resolve().parents[2]
HERE, RESULTS = ROOT / "tests" / "benchmarks" / "papers", ROOT / ".github" / "results"
CLAIMS, PLAN = (yaml.safe_load((HERE / name).read_text(encoding="utf-8")) for name in ("claims.yaml", "parts.yaml"))
OWN_DATA = {"+experiment=compare_solvers", "+experiment=hard_and_easy"}
"""Experiments that choose their data sets, or need none."""
N = 9


@pytest.fixture(scope="module")
def papers() -> Mapping[str, ModuleType]:
    """The modules of the script."""
    sys.path.insert(0, str(HERE))
    try:
        import judge
        import measure
        import write
    finally:
        sys.path.remove(str(HERE))
    return {"judge": judge, "measure": measure, "write": write}


def table(*rows: Mapping[str, str]) -> pd.DataFrame:
    """Rows of values.csv; of cells that are not given, some do not matter and others are empty."""
    usual = {"part": "a", "lambda": "0.1", "at": "end", "ours": "x", "theirs": "y", "measure": "gap", "note": ""}
    return pd.DataFrame([{**usual, **row} for row in rows])


def pair(ours: str, theirs: str = "", **cells: str) -> dict[str, str]:
    return {"our_values": ours, "their_values": theirs, **cells}


def claim(**keys: Any) -> dict[str, Any]:
    return {"id": "c", "measure": "gap", "compare": {"x": ["y"]}, **keys}


@pytest.mark.parametrize(
    ("keys", "cells", "holds"),
    [
        ({}, [pair("1 2", "3 4")], True),
        ({}, [pair("3 4", "1 2")], False),
        ({}, [pair("1 3", "2 4")], None),
        ({}, [pair("1", "1.2")], None),
        ({}, [pair("1", "1.3")], True),
        ({}, [pair("1 2", "3 4"), pair("3 4", "1 2")], False),
        ({}, [pair("1 2", "3 4"), pair("3 4", "1 2", note="gaps are still large")], True),
        ({}, [pair("", "", note="runs are too short")], None),
        ({"limits": 10}, [pair("1", "20")], True),
        ({"limits": 10}, [pair("1", "5")], False),
        ({"one": ["lambda"]}, [pair("1 2", "3 4"), pair("3 4", "1 2", **{"lambda": "1"})], True),
        ({"holds_on": "some"}, [pair("1 2", "3 4"), pair("3 4", "1 2", part="b")], True),
        ({"holds_on": "some"}, [pair("3 4", "1 2"), pair("3 4", "1 2", part="b")], False),
        ({"holds_on": "most"}, [pair("1 2", "3 4"), pair("3 4", "1 2", part="b"), pair("1", "3", part="c")], True),
        ({"holds_on": "most"}, [pair("1 2", "3 4"), pair("3 4", "1 2", part="b")], None),
        ({"relation": "not_more"}, [pair("1 3", "2 4")], True),
        ({"relation": "not_more"}, [pair("3 4", "1 2")], False),
        ({"relation": "alike", "limits": 2}, [pair("1 2", "2 3")], True),
        ({"relation": "alike", "limits": 2}, [pair("1 1.6", "1.5 4")], None),
        ({"relation": "alike", "limits": 2}, [pair("1 1.1", "3 4")], False),
        ({"relation": "within", "limits": [1, 2]}, [pair("1 1.5")], True),
        ({"relation": "within", "limits": [1, 2]}, [pair("1 3")], None),
        ({"relation": "within", "limits": [1, 2]}, [pair("3 4")], False),
        ({"relation": "rises"}, [pair("1", "9"), pair("1", "4"), pair("1", "2")], True),
        ({"relation": "rises"}, [pair("1", "2"), pair("1", "9")], False),
        ({"relation": "rises"}, [pair("1", "9")], None),
        ({"relation": "inconsistent"}, [pair("1", "2"), pair("2", "1", part="b")], True),
        ({"relation": "inconsistent"}, [pair("1", "2"), pair("1", "3", part="b")], False),
        ({"relation": "stronger_than", "limits": "b"}, [pair("1", "3"), pair("1", "2", part="b")], True),
        ({"relation": "stronger_than", "limits": "b"}, [pair("1", "3"), pair("1", "4", part="b")], False),
        ({"and": {"measure": "seconds"}}, [pair("1 2", "3 4"), pair("3 4", "1 2", measure="seconds")], False),
    ],
)
def test_verdict__of_values(papers, keys: dict[str, Any], cells: Sequence[dict[str, str]], holds: bool | None) -> None:
    assert papers["judge"].judge(claim(**keys), table(*cells)).holds is holds


def test_verdict__has_its_numbers_and_says_why_it_is_open(papers) -> None:
    verdict = papers["judge"].judge(claim(), table(pair("1", "3"), pair("1 3", "2 4"), pair("", "", note="too short")))
    assert (verdict.numbers, verdict.why) == ((3.0, 1.5), ("too short", "seeds overlap"))
    assert [papers["write"].spread(some) for some in ((), (3.0,), (3.0, 1.5), (1e4,))] == [
        "–",
        "3",
        "2.2 [1.5, 3]",
        "10,000",
    ]


@pytest.fixture
def sweep(papers, tmp_path: Path):
    """A sweep of one lambda with two seeds a variant, `slow` of which ends early."""
    jobs = []
    for name, falls, passes in (("fast", (0.5, 0.4), N), ("slow", (0.8, 0.9), 5), ("ours", (0.1, 0.2), N)):
        for seed, fall in enumerate(falls):
            run = tmp_path / f"{name}-{seed}"
            write_group(run / "gap_trace.zarr", (*GAP_TRACE, *TRACE_LOSSES), falling(0.5, 0.5, fall, passes=passes), {})
            jobs.append({"variant": name, "lambda": "0.01", "seed": seed, "run": str(run), "status": "done"})
    (tmp_path / "summary.json").write_text(json.dumps({"jobs": jobs, "figures": []}))
    return papers["measure"].Sweep(tmp_path)


@pytest.mark.parametrize(
    ("keys", "ours", "theirs", "after", "note"),
    [
        ({"over": "oracle_calls"}, [0.0625, 0.0256], [0.4096, 0.6561], "400 calls", ""),
        ({"at": 1}, [0.5, 0.4], [0.8, 0.9], "1 passes", ""),
        ({"at": 0.1}, [], [], "0.1 passes", "runs are too short"),
        ({"below": 0.01}, [0.0625, 0.0256], [0.4096, 0.6561], "4 passes", "gaps are still large"),
        ({"compare": {"fast | slow": ["slow"]}}, [0.0625, 0.0256], [0.4096, 0.6561], "4 passes", ""),
        ({"compare": {"fast": ["none"]}}, [], [], "", "no runs of none"),
        ({"measure": "passes", "to": "primal_excess"}, [1, 1], [4, 4], "1 D*, which theirs do not reach", None),
        ({"measure": "passes", "to": 0.5}, [1, 1], [4, np.inf], "a gap of 0.5", "runs are too short"),
        ({"measure": "gap, half way / end", "compare": {"fast": []}}, [16, 39.0625], [], "", ""),
    ],
)
def test_values__are_those_of_the_seeds(papers, sweep, keys, ours, theirs, after, note) -> None:
    (row,) = papers["measure"].rows_of(claim(**{"parts": ["p"], "compare": {"fast": ["slow"]}, **keys}), "p", sweep)
    if note is None:  # D* is 0.5: seeds of `slow` may come below it
        assert row["our_values"] == "1 1"
        return
    assert (row["after"], row["note"]) == (after, note)
    assert papers["judge"].numbers(row["our_values"]) == pytest.approx(ours, rel=1e-4)
    assert papers["judge"].numbers(row["their_values"]) == pytest.approx(theirs, rel=1e-4)


def test_what_is_added__is_set_against_the_best_in_the_same_part(papers, sweep) -> None:
    passes, seconds = papers["measure"].added_rows("p", sweep, ours=["ours"], neither=["slow"])
    assert (passes["ours"], passes["theirs"], passes["measure"], seconds["measure"]) == (
        "ours",
        "fast",
        "passes",
        "seconds",
    )
    assert [len(papers["judge"].numbers(passes[side])) for side in ("our_values", "their_values")] == [2, 2]


@functools.cache
def variants(name: str, quick: bool = False) -> list[str]:
    """Those that the sweep of a part runs."""
    part = PLAN["parts"][name]
    words = [*part["sweep"], *(part.get("quick", ()) if quick else ())]
    words = [word for word in words if not word.startswith(("seed=", "path.lambda="))]  # several values
    return sweep_options(composed(*words, "seed=0" if OWN_DATA & {*words} else "dataset.root=somewhere")).wanted


@pytest.mark.parametrize("name", PLAN["parts"])
def test_part__is_a_sweep_on_which_sentences_are_judged(papers, name: str) -> None:
    assert {*variants(name, quick=True)} <= {*variants(name)}
    assert [one for claim in CLAIMS for one in papers["measure"].comparisons(claim) if name in one["parts"]]
    assert any(name in parts for parts in PLAN["figures"].values() if not isinstance(parts, str))


def test_claims__name_variants_that_run_and_no_id_twice(papers) -> None:
    assert len({claim["id"] for claim in CLAIMS}) == len(CLAIMS) == 46
    for one in (one for claim in CLAIMS for one in papers["measure"].comparisons(claim)):
        names = {name for part in one["parts"] for name in variants(part)}
        sides = [side for ours, others in one["compare"].items() for side in (ours, *others)]
        patterns = [pattern for side in sides for pattern in side.split(" | ")]
        assert [pattern for pattern in patterns if not fnmatch.filter(names, pattern)] == []


def test_page__and_every_verdict_of_it_is_made_from_the_stored_values(papers) -> None:
    values = papers["write"].read_values(RESULTS / "papers" / "values.csv")
    assert not values.duplicated(list(papers["measure"].COLUMNS[:7])).any()
    assert {*values["claim"]} == {"added", *(one["id"] for one in CLAIMS)}
    about = json.loads((RESULTS / "papers" / "parts.json").read_text(encoding="utf-8"))
    text = papers["write"].page(values, about, CLAIMS, PLAN)
    assert text == (RESULTS / "PAPERS.md").read_text(encoding="utf-8")
    assert text.count("\n") <= 300
    assert [name for name in re.findall(r"\]\((papers/[^)#]*)", text) if not (RESULTS / name).is_file()] == []
    assert len({*re.findall(r"papers/[\w-]+\.png", text)}) == len([*(RESULTS / "papers").glob("*.png")])
