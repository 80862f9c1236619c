"""Lambda is chosen on validation blocks, with the one-standard-error choice beside it; the test blocks have no say."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from judged import GIVEN, judged

from gapwise.pipeline.result import summary
from gapwise.pipeline.stage_graph import stages
from gapwise.stages.choice.rules import choose, picked, standard_error
from gapwise.stages.evaluate import evaluate
from gapwise.stages.featurize import open_problem
from gapwise.stages.model.predict import predict
from gapwise.stages.reports.charts import losses as losses_chart
from gapwise.stages.reports.stored import StoredRun
from gapwise.stages.solve import Task, solve
from gapwise.stages.solver.methods import method_options
from gapwise.stages.solver.options import CacheOptions, PathOptions
from gapwise.storage.features import FeatureWriter, open_features
from gapwise.storage.files import tree_checksum
from gapwise.storage.format import MEASURES
from gapwise.storage.results import read_path

LAMS = [10.0, 0.3, 0.03, 0.003]
SEED = 16
"""Of data for which the least validation loss, the one-standard-error rule and the least test loss name three lambdas."""


def test_choose__takes_the_largest_lambda_within_one_standard_error() -> None:
    lams = np.array([1.0, 16.0, 4.0, 8.0, 2.0])  # in any order
    losses = np.array([0.21, 0.40, 0.20, 0.23, 0.20])
    errors = np.array([9.0, 9.0, 0.03, 9.0, 0.5])  # that of the least loss counts: 0.20 + 0.03 at 4, the larger on ties
    assert choose(lams, losses, errors) == (2, 3)
    assert choose(lams, losses, 0.99 * errors) == (2, 2)
    assert choose(lams, losses, np.full(5, 1.0)) == (2, 1)


def test_nan__is_never_chosen_and_one_se_needs_an_error() -> None:
    lams, losses = 10.0 ** np.arange(2, -4, -0.25), np.full(24, 0.5)
    losses[5], losses[7] = np.nan, 0.4
    assert choose(lams, losses, np.zeros(24)) == (7, 7)
    assert choose(lams, losses, np.where(np.isnan(losses), 0.0, np.nan)) == choose(lams, losses, None) == (7, None)
    curve = 0.1 + 0.02 * np.log10(lams) ** 2
    curve[[3, 6, 8]] = np.nan, np.inf, np.nan  # 8: where it is least
    assert lams[picked("parabola", lams, curve, None)] == pytest.approx(10**0.25)
    with pytest.raises(
        ValueError, match=r"^pick: one_se needs a standard error of what is compared, and there is none"
    ):
        picked("one_se", lams, losses, None)
    with pytest.raises(ValueError, match=r"^no lambda can be chosen: each of the 24 held-out losses is NaN"):
        choose(lams, 0.0 * losses + np.nan, None)


def test_parabola__takes_the_vertex_and_not_a_lucky_loss() -> None:
    lams = 10.0 ** -(np.arange(17) / 8)
    losses = 0.1 + 0.02 * (np.log10(lams) + 1.0) ** 2  # least at 0.1
    assert lams[picked("parabola", lams, losses, 0 * losses)] == pytest.approx(0.1)
    lucky = losses.copy()
    lucky[11] = 0.09  # 0.042, as a few blocks would have it
    assert lams[picked("least", lams, lucky, 0 * losses)] == pytest.approx(10 ** (-11 / 8))
    assert lams[picked("parabola", lams, lucky, 0 * losses)] == pytest.approx(0.1, rel=0.35)
    mixed = np.random.default_rng(0).permutation(17)
    assert lams[mixed][picked("parabola", lams[mixed], lucky[mixed], 0 * losses)] == pytest.approx(0.1, rel=0.35)
    for flat in (-losses, np.full(17, 0.1)):  # no minimum between the ends
        assert picked("parabola", lams, flat, 0 * losses) == picked("least", lams, flat, 0 * losses)
    assert picked("parabola", lams[:3], lucky[:3], 0 * lucky[:3]) == 2
    with pytest.raises(ValueError, match="pick: expected one of parabola, least, one_se, got 'x'"):
        picked("x", lams, losses, losses)


def test_standard_error__is_that_of_a_mean() -> None:
    assert standard_error(np.array([0.0, 1.0, 1.0, 0.0])) == pytest.approx(np.sqrt(1 / 3) / 2)
    assert standard_error(np.array([0.7])) == 0.0


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> tuple[Path, Path, dict]:
    """(features, run directory, metrics) of a solved grid with 12 validation blocks."""
    rng, folder = np.random.default_rng(SEED), tmp_path_factory.mktemp("choice")
    with FeatureWriter(folder / "features") as writer:
        for split, n in (("train", 6), ("validation", 12), ("test", 9)):
            labels = rng.integers(3, size=n)
            writer.put(split, "x", rng.normal(size=(n, 4)) + 0.7 * np.eye(3, 4)[labels])
            writer.put(split, "labels", labels)
        writer.meta = {"structure": "multiclass", "classes": 3}
    features, run_dir = folder / "features", folder / "run"
    path = PathOptions(rule="grid", lambdas=LAMS, tolerance=1e-3)
    options = method_options(cache=CacheOptions(kind="gap"), max_passes=500.0)
    solve(Task(open_problem(features, "train"), options, path), run_dir, key="k")
    solved = tree_checksum(run_dir / "path.zarr")
    measured = evaluate(features, run_dir)
    assert tree_checksum(run_dir / "path.zarr", without=MEASURES) == solved  # or the run would never be complete
    return features, run_dir, measured


def test_evaluate__chooses_on_the_validation_blocks(run) -> None:
    features, run_dir, measured = run
    arrays, _ = read_path(run_dir / "path.zarr")
    validation = open_problem(features, "validation")
    for b in range(len(LAMS)):
        _, losses = predict(validation, arrays["weights"][b])
        assert arrays["validation_loss"][b] == np.mean(losses)
        assert arrays["validation_standard_error"][b] == pytest.approx(np.std(losses, ddof=1) / np.sqrt(12))
    best, simple = choose(np.array(LAMS), arrays["validation_loss"], arrays["validation_standard_error"])
    assert len({measured["best_lambda"], measured["one_se_lambda"], measured["hindsight_lambda"]}) == 3
    assert (measured["best_lambda"], measured["best_breakpoint"]) == (LAMS[best], best)
    assert measured["test_loss"] == arrays["test_loss"][best]  # at the chosen lambda, and not the least
    assert (measured["one_se_lambda"], measured["one_se_test_loss"]) == (LAMS[simple], arrays["test_loss"][simple])
    assert measured["hindsight_test_loss"] == arrays["test_loss"].min()
    assert (measured["picked_on"], measured["validation_blocks"]) == ("validation", 12)
    at_edge = {LAMS[0]: "high", LAMS[-1]: "low"}.get(LAMS[best])
    assert measured.get("best_edge") == at_edge
    assert measured["validation_error_rate"] == arrays["validation_error_rate"][best]
    assert json.loads((run_dir / "metrics.json").read_text()) == measured
    labels = np.load(run_dir / "predictions.npz")["labels"]
    np.testing.assert_array_equal(labels, predict(open_problem(features, "test"), arrays["weights"][best])[0])


def test_evaluate__repairs_damaged_validation_losses(run, tmp_path: Path) -> None:
    features, run_dir, measured = run
    copy = tmp_path / "run"
    shutil.copytree(run_dir, copy)
    whole = tree_checksum(copy / "path.zarr", only=MEASURES)
    (chunk,) = (copy / "path.zarr" / "validation_loss" / "c").iterdir()
    chunk.write_bytes(b"damaged")
    assert tree_checksum(copy / "path.zarr", only=MEASURES) != whole  # what the manifest keeps of the stage
    for pattern in MEASURES:  # what `discard` of the stage removes
        for array in (copy / "path.zarr").glob(pattern):
            shutil.rmtree(array)
    assert evaluate(features, copy) == measured
    assert tree_checksum(copy / "path.zarr", only=MEASURES) == whole
    assert any("validation_*" in output for output in stages()["evaluate"].outputs)


def test_losses_chart__shows_the_choice(run) -> None:
    features, run_dir, measured = run
    chart = losses_chart.chart(StoredRun(run_dir, open_features(features)))
    assert f"λ = {measured['best_lambda']:.3g} chosen on validation examples" in chart.title
    (panel,) = chart.panels
    scales = [layer["encoding"]["color"]["scale"] for layer in panel.layers if "color" in layer["encoding"]]
    assert [scale["domain"] for scale in scales] == 2 * [["train", "validation", "test"]]
    words = [row.get("words") for layer in panel.layers for row in layer.get("data", {}).get("values", ())]
    assert f"one standard error:\nλ = {measured['one_se_lambda']:.3g}" in words
    assert all(row["least"] <= row["validation"] <= row["most"] for row in panel.rest["data"]["values"])


def test_summary__says_what_lambda_was_picked_on(run) -> None:
    *_, measured = run
    record = {"lambda": 1.0, "gap": 0.05, "primal": 0.5, "effective_passes": 1.0, "oracle_calls": 5, "seconds": 0.1}
    result = {
        "status": "CONVERGED", "problem": {"name": "x", "n": 5, "d": 3}, "path": [record],
        "verdict": judged(**GIVEN).record(),
        "evaluate": {**measured, "best_lambda": 16.0, "one_se_lambda": 31.0},
    }  # fmt: skip
    said = summary(result, Path("run"))
    assert "best  λ 16 (least loss on 12 validation examples; one standard error: λ 31) · test loss" in said
    assert "objective 0.5 at λ 1 · gap 0.05, 0.1 of it" in said
    assert "edge" not in said
    for rule, how in (
        (
            "parabola",
            "vertex of a parabola through the loss on 12 validation examples; least: λ 8; one standard error: λ 31",
        ),
        ("one_se", "largest λ within one standard error of the least loss on 12 validation examples; least: λ 8"),
    ):
        other = {**result, "evaluate": {**result["evaluate"], "picked_by": rule, "least_lambda": 8.0}}
        assert f"best  λ 16 ({how}) · test loss" in summary(other, Path("run"))
    result["evaluate"]["best_edge"] = "low"
    assert "this λ lies at the lower edge of the λ's that were compared" in summary(result, Path("run"))
    for name in ("validation_blocks", "one_se_lambda"):
        del result["evaluate"][name]
    assert (
        "best  λ 16 (optimistic: λ chosen on the test split; dataset.validation=0.2 gives an honest one) · test loss"
        in summary(result, Path("run"))
    )
