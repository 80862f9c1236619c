"""The figures and tables of `+experiment=compare_solvers`, from traces made up here."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from gapwise.stages.reports.suboptimality import calls_lines, calls_table, winners, with_suboptimality
from gapwise.stages.reports.sweep_figures import compare_parts, figure_file
from gapwise.storage.layout import GAP_TRACE, TRACE_LOSSES, write_group

BEST = 0.5


def trace(error: float, lack: float, fall: float, lam: float = 0.01) -> dict[str, np.ndarray]:
    """Both suboptimalities fall by the factor `fall` each pass; without a dual point where `lack` is nan."""
    passes = np.arange(9.0)
    primal, dual = BEST + error * fall**passes, BEST - lack * fall**passes
    whole = {"breakpoint": passes * 0, "oracle_calls": 100 * passes, "steps": 100 * passes}
    return {
        **{name: values.astype(np.int64) for name, values in whole.items()},
        "lambda": 0 * passes + lam, "passes": passes, "seconds": 0.01 * passes, "stale_gap": 0 * passes,
        "dual": dual, "primal": primal, "gap": primal - dual, "test_loss": 0.2 + 0.1 * fall**passes,
        "nonuniformity": 0 * passes + 1.0, "curvature_nonuniformity": 0 * passes + 1.0,
    }  # fmt: skip


FAST, SLOW, PRIMAL_ONLY = (0.5, 0.5, 0.1), (0.5, 0.5, 0.6), (0.4, np.nan, 0.5)


def test_suboptimality__is_bounded_by_the_best_dual_value_of_all_runs() -> None:
    curves = {("bcpfw", "0.01"): [trace(*SLOW)], ("ssg", "0.01"): [trace(*PRIMAL_ONLY)]}
    bounded = with_suboptimality(curves)
    assert [*bounded] == [*curves]
    (ssg,), (other,) = bounded["ssg", "0.01"], bounded["bcpfw", "0.01"]
    passes = np.arange(9.0)
    np.testing.assert_allclose(ssg["primal_excess"], 0.4 * 0.5**passes + 0.5 * 0.6**8, rtol=1e-12)
    assert np.isnan(ssg["dual_lack"]).all()
    np.testing.assert_allclose(other["dual_lack"], 0.5 * 0.6**passes + 0.4 * 0.5**8, rtol=1e-12)
    wrong = {**curves, ("bcfw", "0.01"): [trace(0.5, -0.1, 0.5)]}
    with pytest.raises(ValueError, match=r"bcfw has a dual value of 0\.6, above the primal value 0\.5.* of ssg"):
        with_suboptimality(wrong)


def test_table__has_calls_to_each_accuracy_and_says_who_wins() -> None:
    curves = {
        ("accelerated", "1/n"): [trace(*FAST), trace(*FAST), trace(0.5, 0.5, 0.3)],
        ("bcfw", "1/n"): [trace(*SLOW)] * 3,
        ("ssg", "1/n"): [trace(*PRIMAL_ONLY)] * 3,
    }
    table = calls_table(with_suboptimality(curves))
    ours, bcfw, ssg = table
    assert [row["seeds"] for row in table] == [3, 3, 3]
    # 0.5 * 0.1 ** k <= 0.5 * level; the slower seed is the largest, not the median
    assert [ours[f"primal calls {level:g}"] for level in (0.1, 0.01, 0.001)] == [200.0, 300.0, 400.0]
    assert [ours["primal calls 0.01 least"], ours["primal calls 0.01 most"]] == [300.0, 400.0]
    assert bcfw["primal calls 0.1"] == 500.0
    assert (ssg["primal calls 0.1"], ssg["primal seconds 0.1"], ssg["gap calls 0.1"]) == (400.0, 0.04, np.inf)
    assert bcfw["primal calls 0.01"] == np.inf
    text = calls_lines(table)
    assert any(line.startswith("| bcfw ") and "R²/(λε)" in line for line in text)
    assert winners(table)[1] == (
        "- to 0.1: fewest calls: accelerated (200); accelerated needs 1/2 of those of ssg. "
        "fewest seconds: accelerated (0.02); accelerated needs 1/2 of those of ssg."
    )
    assert winners(table[1:2])[3] == "- to 0.001: nobody gets there."


def test_figures__of_every_data_set_lie_in_a_folder_of_its_own(tmp_path: Path) -> None:
    def run(name: str, lam: str, *numbers: float) -> tuple:
        write_group(tmp_path / name / "gap_trace.zarr", (*GAP_TRACE, *TRACE_LOSSES), trace(*numbers), {})
        return name.rpartition("-")[2], lam, 0, tmp_path / name

    runs = [run("0-accelerated", "0.01", *FAST), run("1-ssg", "0.01", *PRIMAL_ONLY)]
    comparison = compare_parts("solvers", {"small": runs}, tmp_path / "sweep")
    assert comparison["figures"] == ["small/passes.png", "small/seconds.png"]
    for name in comparison["figures"]:
        with Image.open(figure_file(tmp_path / "sweep", name)) as picture:
            assert np.asarray(picture.convert("L")).std() > 5
    assert [(row["dataset"], row["variant"]) for row in comparison["table"]] == [
        ("small", "accelerated"),
        ("small", "ssg"),
    ]
    assert comparison["text"][0] == "small:"
    with (tmp_path / "sweep" / "small" / "solvers.csv").open() as file:
        assert [row["variant"] for row in csv.DictReader(file)] == ["accelerated", "ssg"]
    assert figure_file(tmp_path, "gaps.png") == tmp_path / "figures" / "gaps.png", "where there is one data set"
