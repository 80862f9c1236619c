"""Lambda is chosen on validation blocks, with the one-standard-error choice beside it; the test blocks have no say."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from gapwise.stages.choice.rules import choose, picked, standard_error
from gapwise.stages.evaluate import evaluate
from gapwise.stages.featurize import open_problem
from gapwise.stages.model.predict import predict
from gapwise.stages.solve import Task, solve
from gapwise.stages.solver.methods import method_options
from gapwise.stages.solver.options import CacheOptions, PathOptions
from gapwise.storage.features import FeatureWriter
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
    with np.load(run_dir / "predictions.npz") as stored:
        labels = stored["labels"]
    np.testing.assert_array_equal(labels, predict(open_problem(features, "test"), arrays["weights"][best])[0])
