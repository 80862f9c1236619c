"""Cross-validation of whole paths: losses of all folds at the same lambdas, the choice, and the estimate on test blocks."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from gapwise.stages.choice import folds as module
from gapwise.stages.choice.folds import FinishedRun, cross_validated, lines, table
from gapwise.stages.choice.grid import common_grid
from gapwise.stages.choice.rules import PICKS, choose, picked
from gapwise.stages.featurize import open_problem
from gapwise.stages.model.predict import predict
from gapwise.stages.problems.held_out import HeldOut
from gapwise.stages.reports.sweep_charts import folds as folds_figure
from gapwise.stages.solve import Task, solve
from gapwise.stages.solver.methods import method_options
from gapwise.stages.solver.options import CacheOptions, PathOptions
from gapwise.storage.features import FeatureWriter
from gapwise.storage.paths import open_path

FOLDS = 2
PATH = PathOptions(eps=0.2, lambda_min=0.1)


def finished(folder: Path, name: str, fold: int | None, path: PathOptions) -> FinishedRun:
    """A solved run on 14 training blocks, some of which are held out if there is a fold."""
    rng = np.random.default_rng(4)
    features, run_dir = folder / f"{name}-features", folder / name
    with FeatureWriter(features) as writer:
        for split, n in (("train", 14), ("test", 20)):
            labels = rng.integers(3, size=n)
            x = rng.normal(size=(n, 4)) + 0.7 * np.eye(3, 4)[labels]
            rule = None if fold is None else HeldOut.of({"folds": FOLDS, "fold": fold})
            held_out = np.zeros(n, bool) if rule is None or split == "test" else rule.among(n)
            for target, part in ((split, ~held_out), ("validation", held_out)):
                if part.any():
                    writer.put(target, "x", x[part])
                    writer.put(target, "labels", labels[part])
        writer.meta = {"structure": "multiclass", "classes": 3}
    solve(
        Task(open_problem(features, "train"), method_options(cache=CacheOptions(kind="gap")), path), run_dir, key=name
    )
    return FinishedRun(name, run_dir, features)


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> tuple[list[FinishedRun], FinishedRun]:
    """The folds, and the run on all training blocks."""
    folder = tmp_path_factory.mktemp("folds")
    return [finished(folder, f"fold{k}", k, PATH) for k in range(FOLDS)], finished(folder, "whole", None, PATH)


def test_common_grid__is_where_every_path_has_a_model(runs) -> None:
    folds, whole = runs
    paths = [open_path(done.run) for done in (*folds, whole)]
    lams = common_grid(paths)
    np.testing.assert_allclose(16 * np.log10(lams), np.round(16 * np.log10(lams)), atol=1e-9)
    np.testing.assert_allclose(np.diff(np.log10(lams)), -1 / 16)
    assert lams[1] < max(float(path["lambda"][0]) for path in paths) <= lams[0]
    for path in paths:
        assert path.weights_at(float(lams[-1])).shape == (12,)
    ends = [path.assign(cell_low=path["cell_low"] + 0 * path["cell_low"]) for path in paths]
    ends[1]["cell_low"].values[-1] = lams[3] * 1.01  # one path ends earlier than the others
    assert common_grid(ends)[-1] == lams[2]
    ends[1]["cell_low"].values[-1] = 2 * lams[0]
    with pytest.raises(ValueError, match="the paths have no lambda in common"):
        common_grid(ends)


def test_cross_validated__means_are_over_folds_and_the_estimate_is_of_the_whole(runs, tmp_path: Path) -> None:
    folds, whole = runs
    chosen = cross_validated(folds, whole, tmp_path)
    lams = np.array(chosen["lambda"])
    for done, losses in zip(folds, chosen["fold_losses"], strict=True):
        path, problem = open_path(done.run), open_problem(done.features, "validation")
        alone = [np.mean(predict(problem, path.weights_at(float(lam)).values)[1]) for lam in lams]
        np.testing.assert_array_equal(losses, alone)
    losses = np.array(chosen["fold_losses"])
    assert np.ptp(losses, axis=1).max() > 0.0
    np.testing.assert_allclose(chosen["validation_loss"], losses.mean(axis=0))
    np.testing.assert_allclose(chosen["standard_error"], losses.std(axis=0, ddof=1) / np.sqrt(FOLDS))
    best, simple = choose(lams, losses.mean(axis=0), np.array(chosen["standard_error"]))
    assert (chosen["best_lambda"], chosen["one_se_lambda"]) == (lams[best], lams[simple])
    test, path = open_problem(whole.features, "test"), open_path(whole.run)
    for name in ("best", "one_se"):
        _, losses = predict(test, path.weights_at(chosen[f"{name}_lambda"]).values)
        assert chosen[f"{name}_test_loss"] == np.mean(losses)
        assert chosen[f"{name}_test_standard_error"] == pytest.approx(np.std(losses, ddof=1) / np.sqrt(test.n))
    assert json.loads(json.dumps(chosen)) == chosen
    assert [row["lambda"] for row in table(chosen)] == chosen["lambda"]
    assert {f"fold_{k}" for k in range(FOLDS)} <= set(table(chosen)[0])
    said = lines(chosen)
    assert (
        f"λ {chosen['best_lambda']:.3g} (least mean loss of 2 folds: {chosen['best_validation_loss']:.3g} ±" in said[0]
    )
    figure = Figure()
    folds_figure(chosen)[0](figure)
    assert f"λ = {chosen['best_lambda']:.3g} chosen on 2 folds" in figure.axes[0].get_title()


@pytest.mark.parametrize("pick", PICKS)
def test_best_lambda__is_that_of_the_rule(runs, tmp_path: Path, pick: str) -> None:
    folds, whole = runs
    chosen = cross_validated(folds, whole, tmp_path, pick=pick)
    lams, means, errors = (np.array(chosen[name]) for name in ("lambda", "validation_loss", "standard_error"))
    values = np.array(chosen["fold_losses"])
    np.testing.assert_allclose(errors, values.std(axis=0, ddof=1) / np.sqrt(FOLDS))  # of what is compared
    assert chosen["best_lambda"] == lams[picked(pick, lams, means, errors)]
    assert chosen["one_se_lambda"] == lams[picked("one_se", lams, means, errors)]
    assert chosen.get("least_lambda", chosen["best_lambda"]) == lams[picked("least", lams, means, errors)]
    assert f"λ {chosen['best_lambda']:.3g} (" in lines(chosen)[0]
    assert f"--lambda {chosen['best_lambda']:.6g} " in lines(chosen)[-1]


def test_cross_validated__computes_a_fold_once(runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folds, whole = runs
    chosen = cross_validated(folds, whole, tmp_path)
    (tmp_path / "fold-0.json").write_text("{")  # damaged
    other = json.loads((tmp_path / "fold-1.json").read_text())
    (tmp_path / "fold-1.json").write_text(json.dumps({**other, "key": "of another run"}))
    asked, original = [], module.values_at

    def counted(done, split, *more):
        asked.append((done.key, split))
        return original(done, split, *more)

    monkeypatch.setattr(module, "values_at", counted)
    assert cross_validated(folds, whole, tmp_path) == chosen
    assert asked == [("fold0", "validation"), ("fold1", "validation"), ("whole", "test")]


def test_criterion__of_the_folds_takes_the_place_of_their_loss(runs, tmp_path: Path) -> None:
    folds, whole = runs
    result = cross_validated(folds, whole, tmp_path, criterion="error_rate")
    assert result["criterion"] == "error_rate"
    lams, means = np.array(result["lambda"]), np.array(result["validation_error_rate"])
    first = folds[0]
    problem, path = open_problem(first.features, "validation"), open_path(first.run)
    for j in range(0, lams.size, 9):
        labels, _ = predict(problem, path.weights_at(float(lams[j])).values)
        assert result["fold_error_rate"][0][j] == np.mean(labels != problem.truth)
    np.testing.assert_allclose(means, np.mean(result["fold_error_rate"], axis=0))
    assert result["best_lambda"] == lams[choose(lams, means, np.zeros(means.size)).best]
    assert result["best_validation_error_rate"] == means.min()
    assert [*table(result)[0]][:3] == ["lambda", "validation_error_rate", "standard_error"]
    assert "best mean error rate of 2 folds" in lines(result)[0]
    assert f", error rate {result['best_test_error_rate']:.3g}" in lines(result)[0]
    figure = Figure()
    folds_figure(result)[0](figure)
    assert figure.axes[0].get_ylabel() == "error rate"
