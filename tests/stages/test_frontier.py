"""The frontier: tables and figures of solves and paths, and the certified gap of paths over the whole axis."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path

import numpy as np
import pytest
import zarr
from PIL import Image
from tiny import multiclass

from gapwise.stages.reports.bounds import whole_axis
from gapwise.stages.reports.costs import path_lines
from gapwise.stages.reports.sweep_figures import compare
from gapwise.stages.solve import Task, solve
from gapwise.stages.solver.methods import method_options
from gapwise.stages.solver.options import CacheOptions, PathOptions, Status
from gapwise.stages.verify import verify
from gapwise.storage.format import FORMAT_VERSION
from gapwise.storage.results import without_weights


def write_solve(run_dir: Path, passes: list[float], status: str = "CONVERGED", **attrs: object) -> None:
    """What a solve of one lambda, or of a grid, leaves."""
    count = len(passes)
    columns = {
        "lambda": 0.5 ** np.arange(count), "gap": np.full(count, 1e-3), "seconds": np.full(count, 0.1),
        "effective_passes": passes, "oracle_calls": [int(100 * each) for each in passes],
        "status": np.full(count, [*Status].index(Status(status))),
    }  # fmt: skip
    group = zarr.open_group(run_dir / "path.zarr", mode="w")
    for name, values in columns.items():
        group.create_array(name, data=np.array(values))
    group.attrs.update({
        "format_version": FORMAT_VERSION, "rule": "single", "relative": True, "status": status, "certainty": "exact",
        "certified": True, "dual_point": True, "status_meanings": [str(one) for one in Status], **attrs,
    })  # fmt: skip


RULES = ("paper", "two_sided")


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
                write_solve(run_dir, [passes + seed], "PASS_LIMIT" if late else "CONVERGED", eps=tolerance)
                runs.append((variant, "0.01", seed, run_dir))
    comparison = compare("frontier", [*runs, *((rule, "", 0, run_dir) for rule, run_dir in paths.items())], tmp_path)
    assert comparison["figures"] == ["frontier.png", "certified.png"]
    for name in comparison["figures"]:
        with Image.open(tmp_path / "figures" / name) as picture:
            assert np.asarray(picture.convert("L")).std() > 5
    assert [(row["variant"], row["level"], row["passes"]) for row in comparison["table"]] == [
        ("accelerated", 1e-2, 11.0), ("accelerated", 1e-3, 11.0), ("bcfw_gap", 1e-2, 61.0), ("bcfw_gap", 1e-3, math.inf),
    ]  # fmt: skip
    by_rule = {row["rule"]: row for row in comparison["paths"]}
    assert all(row["certified"] and row["sampled gap"] <= 0.1 for row in by_rule.values())
    assert by_rule["paper"]["lambdas"] > by_rule["two_sided"]["lambdas"]
    with (tmp_path / "frontier.csv").open() as file:
        assert len(list(csv.DictReader(file))) == 4 + 2
    written = (tmp_path / "frontier.md").read_text()
    assert "\n".join(comparison["text"]).strip() == written.strip()
    assert "not in 61" in written
    assert "| two_sided " in written
    *_, refuted = path_lines([row | {"certified": False, "lambda_low": 1e-4} for row in comparison["paths"]])
    assert refuted.split("|")[6].strip() == "–", "certified from no lambda on"
    only = compare("frontier", runs[:1], tmp_path)
    assert (only["figures"], only["paths"]) == (["frontier.png"], [])


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


def test_work__is_drawn_and_counted_for_every_path(tmp_path: Path) -> None:
    runs = []
    for name, passes in (("two", [3.0, 2.0]), ("one", [4.0])):
        write_solve(tmp_path / name, passes, rule="grid", eps=0.1)
        runs.append((name, "", 0, tmp_path / name))
    comparison = compare("work", runs, tmp_path, ("png", "svg"))
    assert comparison["figures"] == ["work.png"]
    assert [row["passes"] for row in comparison["table"]] == [5.0, 4.0]
    assert (tmp_path / "figures" / "work.png").read_bytes()[:4] == b"\x89PNG"
    assert "two" in (tmp_path / "figures" / "work.svg").read_text()
