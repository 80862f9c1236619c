"""The figures and tables of `+experiment=compare_solvers`, from traces made up here."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from omegaconf import OmegaConf
from PIL import Image
from reported import falling
from solved import path_of, solved
from tiny import TINY

from gapwise.pipeline.config import CONF
from gapwise.stages.reports.costs import LEVELS, conclusion, costs_to_levels, lines, summarised
from gapwise.stages.reports.gap_trace import gap_trace
from gapwise.stages.reports.paint import looks
from gapwise.stages.reports.suboptimality import with_suboptimality
from gapwise.stages.reports.sweep_figures import compare, compare_parts, figure_file
from gapwise.stages.solver.methods import method_options
from gapwise.stages.solver.options import CacheOptions, MultiplaneGroup
from gapwise.storage.layout import GAP_TRACE, TRACE_LOSSES, write_group

FAST, SLOW, PRIMAL_ONLY = (0.5, 0.5, 0.1), (0.5, 0.5, 0.6), (0.4, np.nan, 0.5)


def test_suboptimality__is_bounded_by_the_best_dual_value_of_all_runs() -> None:
    curves = {("bcpfw", "0.01"): [falling(*SLOW)], ("ssg", "0.01"): [falling(*PRIMAL_ONLY)]}
    bounded = with_suboptimality(curves)
    assert [*bounded] == [*curves]
    (ssg,), (other,) = bounded["ssg", "0.01"], bounded["bcpfw", "0.01"]
    passes = np.arange(9.0)
    np.testing.assert_allclose(ssg["primal_excess"], 0.4 * 0.5**passes + 0.5 * 0.6**8, rtol=1e-12)
    assert np.isnan(ssg["dual_lack"]).all()
    np.testing.assert_allclose(other["dual_lack"], 0.5 * 0.6**passes + 0.4 * 0.5**8, rtol=1e-12)
    wrong = {**curves, ("bcfw", "0.01"): [falling(0.5, -0.1, 0.5)]}
    with pytest.raises(ValueError, match=r"bcfw has a dual value of 0\.6, above the primal value 0\.5.* of ssg"):
        with_suboptimality(wrong)


CURVES = {
    ("accelerated", "1/n"): [falling(*FAST), falling(*FAST), falling(0.5, 0.5, 0.3)],
    ("bcfw", "1/n"): [falling(*SLOW)] * 3,
    ("ssg", "1/n"): [falling(*PRIMAL_ONLY)] * 3,
}


def test_costs__are_quantiles_over_seeds_of_the_work_to_each_level() -> None:
    frame = costs_to_levels(with_suboptimality(CURVES), ("primal_excess", "gap"))
    assert len(frame) == 3 * 3 * 2 * len(LEVELS)
    table = summarised(frame)
    primal = {(row["variant"], row["level"]): row for row in table if row["measure"] == "primal_excess"}
    # 0.5 * 0.1 ** k <= 0.5 * level; the slower seed is the largest, not the median
    assert [primal["accelerated", level]["calls"] for level in LEVELS] == [200.0, 300.0, 400.0, 500.0]
    ours = primal["accelerated", 0.01]
    assert [ours[name] for name in ("seeds", "reached", "calls least", "calls most")] == [3, 3, 300.0, 400.0]
    assert (ours["value"], ours["passes"], ours["seconds"], ours["spent_passes"]) == (0.01, 3.0, 0.03, 8.0)
    assert [primal[name, 0.1]["calls"] for name in ("bcfw", "ssg")] == [500.0, 400.0]
    assert (primal["bcfw", 0.01]["calls"], primal["bcfw", 0.01]["reached"]) == (np.inf, 0)
    assert {row["calls"] for row in table if (row["variant"], row["measure"]) == ("ssg", "gap")} == {np.inf}
    text = lines(table, "calls")
    assert text[1] == "λ = 1/n = 0.01, medians of 3 seeds: calls / seconds"
    rows = {line.split("|")[1].strip(): line for line in text if line.startswith("| ")}
    assert rows["accelerated"].split("|")[2].strip() == "**200** / **0.02**"
    assert rows["bcfw"].split("|")[3].strip() == "not in 800"


def test_costs__to_a_level_that_half_of_the_seeds_reach_are_infinite() -> None:
    seeds = [falling(*FAST), falling(*SLOW)]
    table = summarised(costs_to_levels(with_suboptimality({("a", "0.01"): seeds}), ("primal_excess",)))
    assert [(row["level"], row["passes"], row["reached"]) for row in table] == [
        (0.1, 5.0, 2), (0.01, np.inf, 1), (0.001, np.inf, 1), (0.0001, np.inf, 1),
    ]  # fmt: skip
    assert "not in 8, 1 of 2 seeds did" in lines(table)[-1]


def test_conclusion__is_about_the_smallest_level_that_somebody_reaches_at_every_lambda() -> None:
    other = {(name, "0.1"): traces for (name, _), traces in CURVES.items() if name != "accelerated"}
    table = summarised(costs_to_levels(with_suboptimality(CURVES | other), ("primal_excess",)))
    said = "accelerated at 1 of 2 λ's"
    whole = f"To an accuracy of 0.1: fewest calls with {said}; fewest seconds with {said}"
    assert conclusion(table, ("calls", "seconds"), "primal_excess") == whole
    assert conclusion(table, ("calls",)) == "", "nothing is known of gaps"


def test_figures__of_every_data_set_lie_in_a_folder_of_its_own(tmp_path: Path) -> None:
    def run(name: str, lam: str, *numbers: float) -> tuple:
        write_group(tmp_path / name / "gap_trace.zarr", (*GAP_TRACE, *TRACE_LOSSES), falling(*numbers), {})
        return name.rpartition("-")[2], lam, 0, tmp_path / name

    runs = [run("0-accelerated", "0.01", *FAST), run("1-ssg", "0.01", *PRIMAL_ONLY)]
    comparison = compare_parts("solvers", {"small": runs}, tmp_path / "sweep")
    assert comparison["figures"] == ["small/passes.png", "small/seconds.png"]
    for name in comparison["figures"]:
        with Image.open(figure_file(tmp_path / "sweep", name)) as picture:
            assert np.asarray(picture.convert("L")).std() > 5
    assert {(row["dataset"], row["variant"]) for row in comparison["table"]} == {
        ("small", "accelerated"),
        ("small", "ssg"),
    }
    assert comparison["text"][0] == "small:"
    with (tmp_path / "sweep" / "small" / "solvers.csv").open() as file:
        assert len([*csv.DictReader(file)]) == len(comparison["table"]) == 2 * 2 * len(LEVELS)
    assert figure_file(tmp_path, "gaps.png") == tmp_path / "figures" / "gaps.png", "where there is one data set"


VARIANTS = {
    "BCFW": {"multiplane": MultiplaneGroup(approximate_passes=0)},
    "MP-BCFW-avg": {"averaging": "two_track"},
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory):
    problem, made, folder = TINY["multiclass"](), [], tmp_path_factory.mktemp("multiplane")
    for seed in range(2):
        for name, choices in VARIANTS.items():
            run = folder / f"{name}-{seed}"
            cache = CacheOptions(kind="gap", capacity=1000)
            options = method_options("mpbcfw", cache=cache, max_passes=8.0, rebase_steps=1, **choices)
            path = path_of(rule="single", lam=0.05, tolerance=1e-12)
            solved(problem, run, options, path, seed=seed, every_passes=1.0)
            gap_trace(problem, run)
            made.append((name, "0.05", seed, run))
    return made


def test_figures__are_drawn_with_bands_over_seeds(tmp_path: Path, runs) -> None:
    comparison = compare("multiplane", runs, tmp_path / "sweep")
    assert comparison["figures"] == ["calls.png", "seconds.png", "planes.png"]
    for name in comparison["figures"]:
        with Image.open(tmp_path / "sweep" / "figures" / name) as picture:
            assert np.asarray(picture.convert("L")).std() > 5
    assert {(row["variant"], row["seeds"]) for row in comparison["table"]} == {("BCFW", 2), ("MP-BCFW-avg", 2)}


def test_variants__of_the_experiment_differ_in_colour_or_dash() -> None:
    variants = [*OmegaConf.load(CONF / "experiment" / "multiplane.yaml").sweep.variants]
    for names in (variants, range(40)):
        styles = {(style["color"], style["ls"]) for style in looks([str(name) for name in names]).values()}
        assert len(styles) == len(names) > 5
