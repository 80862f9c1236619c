"""Evaluate against enumeration: the decoded labels, their losses, and the results computed from them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from reported import digits, pictures
from spreads import backwards
from tiny import all_labels

from gapwise.stages.choice.rules import baseline
from gapwise.stages.evaluate import evaluate
from gapwise.stages.featurize import open_problem
from gapwise.stages.model.predict import predict
from gapwise.stages.problems.parallel import HERE, Spread
from gapwise.stages.solve import Task, solve
from gapwise.stages.solver.methods import method_options
from gapwise.stages.solver.options import CacheOptions, PathOptions
from gapwise.storage.files import tree_checksum
from gapwise.storage.format import MEASURES
from gapwise.storage.paths import open_path
from gapwise.storage.results import read_path

STORES = {"multiclass": digits, "segmentation": pictures}


@pytest.fixture(scope="module", params=STORES)
def run(request, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """(features, run directory) of a solved grid."""
    folder = tmp_path_factory.mktemp(request.param)
    features = STORES[request.param](folder)
    solve(
        task_of(features, PathOptions(rule="grid", lambdas=[10.0, 0.3, 0.03, 0.003], tolerance=1e-3)),
        folder / "run",
        key="k",
    )
    return features, folder / "run"


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """(features, run directory) of a solved two-sided path."""
    folder = tmp_path_factory.mktemp("path")
    features = pictures(folder)
    solve(task_of(features, PathOptions(rule="two_sided", eps=0.05, lambda_min=0.01)), folder / "run", key="k")
    return features, folder / "run"


def task_of(features: Path, path: PathOptions) -> Task:
    return Task(open_problem(features, "train"), method_options(cache=CacheOptions(kind="gap"), max_passes=500.0), path)


def best_losses(problem, w: np.ndarray) -> list[set[float]]:
    """Of each block: the losses of all its labellings that score highest at w."""
    possible = []
    for i in range(problem.n):
        theta = np.empty(int(problem.local_ptr[i + 1] - problem.local_ptr[i]))
        problem.scores(i, w, theta)
        labels = all_labels(problem, i)
        values = np.array([problem.value(i, theta, y) for y in labels])
        possible.append({problem.loss(i, labels[k]) for k in np.flatnonzero(values >= values.max() - 1e-9)})
    return possible


def test_evaluate__losses_are_those_of_enumeration(run: tuple[Path, Path]) -> None:
    features, folder = run
    evaluate(features, folder)
    arrays, _ = read_path(folder / "path.zarr")
    for split in ("train", "test"):
        problem = open_problem(features, split)
        for b in range(4):
            candidates = best_losses(problem, arrays["weights"][b])
            low, high = (np.mean([pick(losses) for losses in candidates]) for pick in (min, max))
            assert low - 1e-9 <= arrays[f"{split}_loss"][b] <= high + 1e-9
            if b:  # away from w = 0 there are no ties
                assert low == pytest.approx(high, abs=1e-9)
    assert np.ptp(arrays["test_loss"]) > 0.0


def test_evaluate__chooses_the_least_test_loss_and_says_what_it_compares_to(run: tuple[Path, Path]) -> None:
    features, folder = run
    measured = evaluate(features, folder)
    assert json.loads((folder / "metrics.json").read_text()) == measured
    arrays, _ = read_path(folder / "path.zarr")
    best = int(np.flatnonzero(arrays["test_loss"] == arrays["test_loss"].min())[0])
    assert measured["best_breakpoint"] == best
    assert measured["best_lambda"] == arrays["lambda"][best]
    for name in ("train_loss", "test_loss"):
        assert measured[name] == arrays[name][best]
    test = open_problem(features, "test")
    zeros = [test.loss(i, np.zeros_like(all_labels(test, i)[0])) for i in range(test.n)]
    assert measured["all_zero_test_loss"] == pytest.approx(np.mean(zeros), abs=1e-12)
    counts = np.bincount(open_problem(features, "train").truth)
    same = [test.loss(i, np.full_like(all_labels(test, i)[0], counts.argmax())) for i in range(test.n)]
    assert measured["commonest_test_loss"] == pytest.approx(np.mean(same), abs=1e-12)
    words = "all background" if "test_foreground_iou" in measured else f"{measured['commonest_label']} everywhere"
    assert baseline(measured) == (f"baseline ({words})", measured["commonest_test_loss"])
    with np.load(folder / "predictions.npz") as stored:
        np.testing.assert_array_equal(stored["labels"], predict(test, arrays["weights"][best])[0])
        np.testing.assert_array_equal(stored["label_ptr"], test.label_ptr)


def test_evaluate__may_be_repeated_and_does_not_depend_on_the_workers(run: tuple[Path, Path]) -> None:
    features, folder = run
    seen = []
    first = evaluate(features, folder, report=lambda done, total, task: seen.append((done, total)))
    assert sorted(seen) == [(k, 4) for k in range(1, 5)]
    before = {name: array.tobytes() for name, array in read_path(folder / "path.zarr")[0].items()}

    assert evaluate(features, folder, spread=Spread(backwards)) == first
    after = {name: array.tobytes() for name, array in read_path(folder / "path.zarr")[0].items()}
    assert after == before


def test_evaluate__measures_a_two_sided_path_between_its_breakpoints_too(path: tuple[Path, Path]) -> None:
    features, tmp_path = path
    solved = tree_checksum(tmp_path / "path.zarr", without=MEASURES)
    measured = evaluate(features, tmp_path)
    assert tree_checksum(tmp_path / "path.zarr", without=MEASURES) == solved  # or the run would never be complete
    arrays, _ = read_path(tmp_path / "path.zarr")
    lams, losses = arrays["evaluated_lambda"], arrays["evaluated_test_loss"]
    assert lams.size == losses.size == 4 * arrays["lambda"].size - 3
    assert np.all(np.diff(lams) < 0)
    assert np.isin(arrays["lambda"], lams).all()
    np.testing.assert_array_equal(arrays["test_loss"], losses[np.isin(lams, arrays["lambda"])])
    assert measured["best_lambda"] == lams[np.argmin(losses)]
    assert measured["test_loss"] == losses.min()
    test, model = open_problem(features, "test"), open_path(tmp_path)
    for k in range(0, lams.size - 1):
        assert losses[k] == pytest.approx(np.mean(predict(test, model.weights_at(lams[k]).values)[1]))
    with np.load(tmp_path / "predictions.npz") as stored:
        labels = stored["labels"]
    np.testing.assert_array_equal(labels, predict(test, model.weights_at(measured["best_lambda"]).values)[0])


def test_evaluate__decodes_each_model_once_and_training_blocks_between_only_if_asked(
    path: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    features, tmp_path = path
    decoded: list[tuple[str, bytes]] = []

    def counted(problem, w, spread=HERE, split="train"):
        decoded.append((split, w.tobytes()))
        return predict(problem, w, spread, split)

    monkeypatch.setattr("gapwise.stages.model.measures.predict", counted)
    few = evaluate(features, tmp_path)
    between, _ = read_path(tmp_path / "path.zarr")
    lams, solved = between["evaluated_lambda"], np.isin(between["evaluated_lambda"], between["lambda"])
    known = ~np.isnan(between["evaluated_train_loss"])
    assert known[solved].all()
    assert known[lams == few["best_lambda"]].all()
    assert not known.all()
    decoded.clear()
    assert evaluate(features, tmp_path, train_between=True) == few
    of_train = [w for split, w in decoded if split == "train"]
    assert len(set(of_train)) == len(of_train) < lams.size
    everywhere, _ = read_path(tmp_path / "path.zarr")
    np.testing.assert_array_equal(everywhere["evaluated_train_loss"][known], between["evaluated_train_loss"][known])
    assert not np.isnan(everywhere["evaluated_train_loss"]).any()
    train, model = open_problem(features, "train"), open_path(tmp_path)
    for k in np.flatnonzero(~known)[:3]:
        assert everywhere["evaluated_train_loss"][k] == np.mean(predict(train, model.weights_at(lams[k]).values)[1])
