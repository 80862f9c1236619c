"""The frontier: prices of runs made up here, their tables, and the certified gap of solved paths over the whole axis."""

from __future__ import annotations

import csv
import itertools
import json
import math
from pathlib import Path

import numpy as np
import pytest
import zarr
from PIL import Image
from tiny import multiclass

from gapwise.stages.reports.bounds import whole_axis
from gapwise.stages.reports.prices import Price, cost_cell, price_table, solve_lines, winners
from gapwise.stages.reports.sweep_figures import compare
from gapwise.stages.reports.tables import markdown
from gapwise.stages.solve import Task, solve
from gapwise.stages.solver.methods import method_options
from gapwise.stages.solver.options import CacheOptions, PathOptions, Status
from gapwise.stages.solver.path.descend import stepwise_model
from gapwise.stages.verify import verify
from gapwise.storage.format import FORMAT_VERSION
from gapwise.storage.results import without_weights

pytestmark = pytest.mark.slow

FAST = {"seconds": 0.2, "calls": 5000}
FRUGAL = {"seconds": 1.0, "calls": 400}


def price(variant: str, tolerance: float = 1e-2, reached: bool = True, **costs: float) -> Price:
    calls = int(costs["calls"])
    return Price(variant, "1/n", 0.01, tolerance, reached, calls / 100, calls, costs["seconds"])


def test_price_table__counts_slow_oracles_by_arithmetic() -> None:
    table = price_table([price("fast", **FAST), price("frugal", **FRUGAL)])
    fast, frugal = table
    assert (fast["passes"], frugal["passes"]) == (50.0, 4.0)
    assert fast["1 ms"] == pytest.approx(5.2)
    assert frugal["1 ms"] == pytest.approx(1.4)
    assert frugal["20 ms"] == pytest.approx(9.0)
    best = {name: won for (_, _, name), won in winners(table).items()}
    assert [best[name][0] for name in ("passes", "seconds", "1 ms", "20 ms")] == ["frugal", "fast", "frugal", "frugal"]
    assert best["seconds"][1] == pytest.approx(5.0)
    assert best["20 ms"][1] == pytest.approx(100.2 / 9.0)


def test_price_table__is_the_median_and_the_range_over_seeds_of_one_tolerance() -> None:
    seeds = [price("a", seconds=s, calls=c) for s, c in ((3.0, 100), (1.0, 300), (2.0, 900))]
    seeds.append(price("a", 1e-3, seconds=50.0, calls=5000))
    (row, other) = price_table(seeds)
    assert (row["seconds"], row["seconds least"], row["seconds most"]) == (2.0, 1.0, 3.0)
    assert (row["passes"], row["passes least"], row["passes most"]) == (3.0, 1.0, 9.0)
    assert row["1 ms"] == pytest.approx(2.9)  # of the sums, 3.1, 1.3 and 2.9; not the sum of two medians, 2.3
    assert (row["seeds"], other["seeds"], other["tolerance"]) == (3, 1, 1e-3)
    assert cost_cell(row, "seconds") == "2 [1–3]"
    assert cost_cell(other, "passes") == "50"


def test_price_table__knows_no_price_where_a_limit_came_first() -> None:
    runs = [price("a", reached=k == 0, seconds=1.0 + k, calls=1000) for k in range(3)]
    (row,) = price_table(runs)
    assert (row["reached"], row["passes"], row["passes least"]) == (1, math.inf, 10.0)
    assert cost_cell(row, "passes") == "not in 10; 1 of 3 seeds"
    assert cost_cell(row, "seconds") == "not in 2; 1 of 3 seeds"
    assert cost_cell(row, "20 ms") == "–"
    assert winners([row]) == {}
    (half,) = price_table(runs[:2])
    assert half["passes"] == math.inf  # one of two is no majority
    (row,) = price_table([price("a", seconds=1.0, calls=1000) for _ in range(2)] + runs[1:2])
    assert cost_cell(row, "passes") == "10 [10–∞]"


def test_solve_lines__sets_the_cheapest_in_bold() -> None:
    lines = solve_lines(price_table([price("fast", **FAST), price("frugal", **FRUGAL)]))
    (fast,) = (line for line in lines if " fast " in line and "0.2" in line)
    assert "**0.2**" in fast
    assert "**50**" not in fast
    assert any("fast (5)" in line and "frugal (12.5)" in line for line in lines)
    assert markdown([["a", "b"], ["long", "c"]]) == ["| a    | b |", "|------|---|", "| long | c |"]


def write_solve(run_dir: Path, passes: float, tolerance: float, status: str = "CONVERGED") -> None:
    """What a single solve leaves."""
    columns = {
        "lambda": 0.01,
        "gap": 1e-3,
        "effective_passes": passes,
        "oracle_calls": int(100 * passes),
        "seconds": 0.1,
        "status": [*Status].index(Status(status)),
    }
    group = zarr.open_group(run_dir / "path.zarr", mode="w")
    for name, value in columns.items():
        group.create_array(name, data=np.array([value]))
    attrs = {
        "format_version": FORMAT_VERSION,
        "rule": "single",
        "eps": tolerance,
        "relative": True,
        "status": status,
        "certainty": "exact",
        "certified": True,
        "dual_point": True,
        "status_meanings": [str(one) for one in Status],
    }
    group.attrs.update(attrs)


RULES = ("paper", "one_sided", "two_sided")


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One tiny path a rule, solved and verified."""
    problem, run_dirs = multiclass(n=8, width=12, classes=3), {}
    for rule in RULES:
        run_dirs[rule] = tmp_path_factory.mktemp(rule)
        options = method_options(cache=CacheOptions(kind="gap"))
        solve(Task(problem, options, PathOptions(rule=rule, eps=0.1, kappa=0.0)), run_dirs[rule], key="k")
        verify(problem, run_dirs[rule], samples=60)
    return run_dirs


def test_compare__tables_and_draws_solves_and_paths(tmp_path: Path, paths: dict[str, Path]) -> None:
    runs = []
    for variant, passes in (("accelerated", 10.0), ("bcfw_gap", 60.0)):
        for seed in range(2):
            for tolerance in (1e-2, 1e-3):
                run_dir = tmp_path / f"{variant}-{seed}-{tolerance}"
                late = variant == "bcfw_gap" and tolerance == 1e-3
                write_solve(run_dir, passes + seed, tolerance, "PASS_LIMIT" if late else "CONVERGED")
                runs.append((variant, "0.01", seed, run_dir))
    comparison = compare("frontier", [*runs, *((rule, "", 0, run_dir) for rule, run_dir in paths.items())], tmp_path)
    assert comparison["figures"] == ["frontier.png", "certified.png"]
    for name in comparison["figures"]:
        with Image.open(tmp_path / "figures" / name) as picture:
            assert np.asarray(picture.convert("L")).std() > 5
    assert [(row["variant"], row["tolerance"], row["passes"]) for row in comparison["table"]] == [
        ("accelerated", 1e-2, 11.0), ("accelerated", 1e-3, 11.0), ("bcfw_gap", 1e-2, 61.0), ("bcfw_gap", 1e-3, math.inf),
    ]  # fmt: skip
    by_rule = {row["rule"]: row for row in comparison["paths"]}
    assert all(row["certified"] and row["sampled gap"] <= 0.1 for row in by_rule.values())
    assert by_rule["paper"]["breakpoints"] > by_rule["one_sided"]["breakpoints"] > by_rule["two_sided"]["breakpoints"]
    with (tmp_path / "frontier.csv").open() as file:
        assert len(list(csv.DictReader(file))) == 4 + 3
    written = (tmp_path / "frontier.md").read_text()
    assert "\n".join(comparison["text"]).strip() == written.strip()
    assert "not in 61" in written
    assert "| two_sided |" in written
    only = compare("frontier", runs[:1], tmp_path)
    assert (only["figures"], only["paths"]) == (["frontier.png"], [])


def test_frontier__says_who_needs_least(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    titles: list[str] = []
    monkeypatch.setattr("gapwise.stages.reports.sweep_figures.frontier.over_all", lambda _, words: titles.append(words))
    runs = []
    for variant, passes in (("accelerated", 10.0), ("bcfw_gap", 8.0)):
        for tolerance, lam in itertools.product((1e-1, 1e-2, 1e-3), ("0.1", "0.01")):
            run_dir, limit = tmp_path / f"{variant}-{tolerance}-{lam}", tolerance < 1e-2 and lam == "0.01"
            write_solve(run_dir, passes, tolerance, "PASS_LIMIT" if limit else "CONVERGED")
            runs.append((variant, lam, 0, run_dir))
    compare("frontier", runs, tmp_path)
    both = "at 2 of 2 λ's"
    assert titles == [
        f"To an accuracy of 0.01: fewest exact passes with bcfw gap {both}; fewest seconds with accelerated {both}"
    ]


@pytest.mark.parametrize("rule", RULES)
def test_whole_axis__is_above_every_exact_gap_and_below_eps(rule: str, paths: dict[str, Path]) -> None:
    arrays, attrs = without_weights(paths[rule] / "path.zarr")
    last = 0.1 * float(arrays["lambda"][-1])
    lams, bound = whole_axis(arrays, attrs, 2.0 * max(float(attrs["lam_top"]), float(arrays["lambda"][0])), last)
    assert np.all(np.diff(lams) <= 0)
    assert lams[-1] == pytest.approx(last)
    assert np.max(bound) <= 0.1 * (1 + 1e-9)
    assert np.min(bound) >= -1e-12
    samples = json.loads((paths[rule] / "verify.json").read_text())["samples"]
    assert len(samples) == 60
    for sample in samples:
        k = int(np.searchsorted(-lams, -sample["lambda"]))
        around = bound[max(k - 2, 0) : k + 2]  # the curve is drawn by points; they are dense
        assert sample["gap"] <= np.max(around) + 1e-9


def test_whole_axis__tends_to_the_gap_of_nothing_at_the_top(paths: dict[str, Path]) -> None:
    for rule, run_dir in paths.items():
        arrays, attrs = without_weights(run_dir / "path.zarr")
        lams, bound = whole_axis(arrays, attrs, 1e9, 0.1)
        far = (
            attrs["hinge_at_zero"] - arrays["loss_dual"][0] if rule == "paper" else attrs["psi_norm2"] / (2.0 * lams[0])
        )
        assert bound[0] == pytest.approx(far, abs=1e-7)


def test_whole_axis__mixes_the_gaps_of_the_first_lambda_and_of_nothing_for_paper() -> None:
    values = {"lambda": 0.5, "lambda_low": 0.4, "gap": 0.04, "hinge": 0.6, "loss_dual": 0.9, "norm2": 0.7}
    attrs = {"rule": "paper", "lam_top": 0.5, "hinge_at_zero": 1.0, "psi_norm2": 0.2, "relative": False}
    arrays = {name: np.array([value]) for name, value in values.items()}
    lams, bound = whole_axis({**arrays, **stepwise_model(arrays, [])}, attrs, 1.0, 0.4)
    first = np.flatnonzero(lams == 0.5)[0]
    assert (lams[0], lams[first], lams[-1]) == (pytest.approx(1.0), 0.5, pytest.approx(0.4))
    assert (bound[0], bound[first]) == (pytest.approx(0.5 * 0.04 + 0.5 * 0.1), pytest.approx(0.04))
