"""The curves that MLflow shows: their steps mean the same in every run, and their values are those of the path."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from judged import judged
from shown import columns, finished_run, result_of, trace

from gapwise.pipeline.rundir import read_json
from gapwise.pipeline.tracking import curves
from gapwise.pipeline.tracking.names import command_of, experiment_of, parameters, run_name, source_tags
from gapwise.storage.paths import open_path


def over_lambda(run: Path) -> dict[str, dict[int, float]]:
    """Metric to step to value."""
    series: dict[str, dict[int, float]] = {}
    for point in curves.over_lambda(run, 0):
        series.setdefault(point.name, {})[point.step] = point.value
    return series


def test_over_lambda__two_paths_with_other_breakpoints_share_their_steps(tmp_path: Path) -> None:
    first, second = (over_lambda(finished_run(tmp_path, seed=seed, count=5 + seed).path) for seed in (0, 1))
    assert not set(columns(5)["lambda"]) & set(columns(6, 1)["lambda"])
    shared = first["vs_lambda/test_loss"].keys() & second["vs_lambda/test_loss"].keys()
    assert shared >= set(range(930, 1101, 10))  # a step is a hundredth of log10 lambda, 1000 is lambda = 1
    for step in shared:
        assert first["vs_lambda/log10_lambda"][step] == pytest.approx((step - 1000) / 100)
    assert max(first["vs_lambda/test_loss"]) == 1100
    assert min(first["vs_lambda/test_loss"]) == 910  # the last lambda is 10 / 81


def test_over_lambda__measures_are_those_of_the_breakpoint_whose_multiple_w_is(tmp_path: Path) -> None:
    run = finished_run(tmp_path).path
    path, shown = open_path(run), over_lambda(run)
    weights, losses = path["weights"].values, columns(5)["test_loss"]
    assert len(shown["vs_lambda/test_loss"]) > 15
    for step, loss in shown["vs_lambda/test_loss"].items():
        w = path.weights_at(10.0 ** ((step - 1000) / 100)).values
        of = [b for b in range(5) if np.allclose(np.cross(w, weights[b]), 0.0)]
        assert loss in losses[of]
    spent = shown["vs_lambda/passes"]
    assert spent[1100] == pytest.approx(2.0)
    assert spent[910] == pytest.approx(columns(5)["effective_passes"][:4].sum())


def test_over_lambda__a_mixture_has_the_measures_of_the_nearest_lambda_evaluated(tmp_path: Path) -> None:
    run = finished_run(tmp_path).path
    group: Any = zarr.open_group(run / "path.zarr", mode="a")
    group["cell_primal"][2] = [0.5, 0.5]  # the cell from 10/3 down to 10/9
    lams = np.array([3.0, 2.0, 1.2])
    for name, values in {
        "lambda": lams,
        **dict.fromkeys(("test_loss", "train_loss", "test_accuracy"), lams / 10),
    }.items():
        group.create_array(f"evaluated_{name}", data=values, dimension_names=("evaluated",))
    shown = over_lambda(run)["vs_lambda/test_loss"]
    assert shown[1030] == pytest.approx(0.2)  # lambda 2
    assert shown[1010] == pytest.approx(0.12)
    assert shown[1060] == columns(5)["test_loss"][0]  # another cell


@pytest.mark.parametrize("lams", [[1.0], [4.0, 1.0, 0.25]])
def test_over_lambda__given_lambdas_stay_where_they_are(tmp_path: Path, lams: list[float]) -> None:
    run = finished_run(tmp_path, count=len(lams)).path
    group: Any = zarr.open_group(run / "path.zarr", mode="a")
    for name in [name for name in group.array_keys() if name.startswith("cell_")]:
        del group[name]
    group["lambda"][:] = lams
    group.attrs.update({"rule": "grid"})
    shown = over_lambda(run)
    steps = {
        1000 + round(100 * math.log10(lam)): loss for lam, loss in zip(lams, columns(3)["test_loss"], strict=False)
    }
    assert shown["vs_lambda/test_loss"] == steps
    assert set(shown["vs_lambda/certified_gap"].values()) == {0.08}


def test_convergence__steps_are_hundredths_of_a_pass() -> None:
    points = [point for point in curves.convergence(trace(3, seed=1)) if point.name == "vs_passes/log10_gap"]
    assert [point.step for point in points] == [200, 400, 600, 800, 1000, 1200]
    assert [point.value for point in points] == pytest.approx([-math.log10(row + 1) for row in range(6)])
    assert list(curves.convergence({})) == []


def test_headline__names_come_first_and_an_estimate_is_no_certified_gap() -> None:
    result = result_of(5)
    values = {point.name: point.value for point in curves.headline(result, 0)}
    alone = ["best_lambda", "best_test_loss", "certified_gap", "oracle_calls", "passes", "seconds"]
    assert sorted(values)[:6] == alone
    others = {point.name for point in curves.convergence(trace())} | values.keys() - set(alone)
    assert all("/" in name and name > max(alone) for name in others)
    result["refit"] = {"lambda": 0.5, "test_loss": 0.1, "gap": 0.01, "verdict": result["verdict"]}
    refit = {point.name: point.value for point in curves.headline(result, 0) if point.name.startswith("with_refit/")}
    assert refit == {"with_refit/lambda": 0.5, "with_refit/test_loss": 0.1, "with_refit/gap": 0.01}
    result["verdict"] = judged(certainty="estimate", certified=False).record()
    assert "certified_gap" not in {point.name for point in curves.headline(result, 0)}


def test_parameters__are_those_that_the_run_depends_on(tmp_path: Path) -> None:
    manifest = read_json(finished_run(tmp_path, solver="bcfw").path / "manifest.json")
    manifest["science"]["path"]["lambdas"] = [1.0] * 1000
    shown = parameters("bcfw", manifest["science"])
    assert shown.items() >= {
        "dataset": "horses_sample", "dataset.n_train": "147", "solver": "bcfw", "solver.step": "fw",
        "solver.cache.kind": "none", "path.rule": "paper", "path.eps": "0.1", "seed": "0",
    }.items()  # fmt: skip
    assert len(shown["path.lambdas"]) == 500


@pytest.mark.parametrize(
    ("rule", "experiment"), [("paper", "path"), ("two_sided", "path"), ("single", "single"), ("grid", "grid")]
)
def test_names__say_what_sets_a_run_apart(tmp_path: Path, rule: str, experiment: str) -> None:
    manifest = read_json(finished_run(tmp_path, seed=2).path / "manifest.json")
    manifest["science"]["path"]["rule"] = rule
    assert run_name(manifest) == f"seed 2 · bcpfw_gap_cache · {rule}"
    data = {"name": "horses_sample", "validation": {"folds": 3, "fold": 1, "seed": 0}}
    other = {**manifest, "science": {**manifest["science"], "dataset": data}}
    assert run_name(other) == f"seed 2 · bcpfw_gap_cache · {rule} · fold 2 of 3"
    assert experiment_of(manifest["science"]) == f"horses_sample-{experiment}"
    assert experiment_of({**manifest["science"], "dataset": {"name": "ocr", "size": "small"}}).startswith("ocr-small-")


def test_source__is_the_command_without_what_changes_no_number(tmp_path: Path) -> None:
    run = finished_run(tmp_path, seed=2).path
    manifest = read_json(run / "manifest.json")
    made_by = "python -m gapwise +experiment=regpath_horseseg solver=bcpfw_gap_cache seed=2"
    assert command_of(manifest, run) == made_by
    tags = source_tags({**manifest, "commit": f"{'c' * 40}-dirty"}, run)
    assert (tags["mlflow.source.git.commit"], tags["mlflow.source.git.dirty"]) == ("c" * 40, "true")
    assert "mlflow.source.git.commit" not in source_tags({**manifest, "commit": None}, run)
