"""`run.refit`: the chosen lambda on all training blocks as a step of the run: committed, verified, what leaves home."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from configs import composed
from in_process import issued, result_of

from gapwise.pipeline.cli import carry_out
from gapwise.pipeline.config.run_options import ConfigError
from gapwise.pipeline.config.settings import own_data, read
from gapwise.pipeline.export import Export
from gapwise.pipeline.result import summary
from gapwise.pipeline.rundir import read_json, write_json
from gapwise.pipeline.stage_graph import stages
from gapwise.pipeline.sweep import table
from gapwise.pipeline.tracking import curves
from gapwise.stages.choice.rules import picked
from gapwise.stages.featurize import open_problem
from gapwise.stages.model.folders import save_model
from gapwise.stages.model.from_run import model_of
from gapwise.stages.model.predict import predict
from gapwise.stages.reports.html import number
from gapwise.stages.reports.stored import StoredRun
from gapwise.stages.solver.methods import bcfw
from gapwise.storage.features import open_features
from gapwise.storage.layout import read_group
from gapwise.storage.results import read_path

WORDS = ("dataset=multiclass_arrays", "compute=serial", "tracking=none", "path.eps=0.2", "solver.cache.kind=gap")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> str:
    rng, folder = np.random.default_rng(0), tmp_path_factory.mktemp("data")
    y = {"y_train": rng.integers(3, size=30), "y_test": rng.integers(3, size=12)}
    x = {f"x{name[1:]}": rng.normal(size=(k.size, 4)) + 1.5 * np.eye(3, 4)[k] for name, k in y.items()}
    np.savez(folder / "own.npz", **x, **y)
    return f"dataset.file={folder / 'own.npz'}"


COLUMNS = tuple(f"evaluated_{name}" for name in ("lambda", "validation_loss", "validation_standard_error"))
"""Of path.zarr, what lambda is picked on."""


def picked_by(rule: str, arrays: Mapping[str, np.ndarray]) -> float:
    return float(arrays[COLUMNS[0]][picked(rule, *(arrays[name] for name in COLUMNS))])


def refitted(root: Path, data: str, *more: str) -> Path:
    """A run with blocks held out, whose lambda is solved once more on all of them."""
    return issued(root, *WORDS, data, "dataset.validation=0.2", *more)[0]


@pytest.fixture(scope="module")
def run(data: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return refitted(tmp_path_factory.mktemp("runs"), data)


def test_refit__certifies_lambda_on_all_blocks(run: Path, data: str, tmp_path: Path) -> None:
    refit = result_of(run)["refit"]
    _, attrs = read_path(run / "refit" / "path.zarr")
    arrays, _ = read_group(run / "path.zarr", COLUMNS)
    assert (attrs["n"], refit["lambda"]) == (30, picked_by("parabola", arrays))
    assert refit["verdict"]["certified"]
    assert refit["verdict"]["verified"]
    assert refit["gap"] <= 1e-3 * refit["dual"]
    alone = issued(tmp_path, *WORDS, data, "path=single", "solver=bcpfw_gap_cache", f"path.lambda={refit['lambda']!r}")[
        0
    ]
    other = result_of(alone)["path"][0]
    assert abs(other["primal"] - refit["primal"]) <= max(other["gap"], refit["gap"])
    assert not (run / "refit" / "features").exists()


def test_hard_refit__goes_on_with_accelerated_steps(data: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bcfw, "HARD", 0.0)
    monkeypatch.setattr(bcfw, "CALLS", 1)
    run = refitted(tmp_path, data)
    _, attrs = read_path(run / "refit" / "path.zarr", ())
    refit = result_of(run)["refit"]
    assert attrs["accelerated_from"] == refit["lambda"]
    assert refit["verdict"]["verified"]


def test_refitted_model__is_what_leaves_home(run: Path, tmp_path: Path) -> None:
    arrays, _ = read_path(run / "refit" / "path.zarr")
    model = model_of(run)
    assert model.weights.tobytes() == arrays["weights"][0].tobytes()
    assert (model.certificate["gap"], model.certificate["certified"]) == (float(arrays["gap"][0]), True)
    assert model_of(run, model.lambda_).weights.tobytes() != model.weights.tobytes()  # a number: the path's
    save_model(run, "best", tmp_path / "model")
    (run / "refit" / "verify.json").rename(tmp_path / "verify.json")
    with pytest.raises((ValueError, OSError), match=r"verify\.json: changed since the run wrote it"):
        model_of(run)
    (tmp_path / "verify.json").rename(run / "refit" / "verify.json")


def test_what_is_shown__is_the_model_that_leaves_home(run: Path, tmp_path: Path) -> None:
    w = read_path(run / "refit" / "path.zarr")[0]["weights"][0]
    (features,) = run.parent.glob("features/*[0-9a-f]")
    labels, losses = predict(open_problem(features, "test"), w)
    shown = StoredRun(run, open_features(features))
    np.testing.assert_array_equal(shown.predictions["labels"], labels)
    refit = result_of(run)["refit"]
    assert refit["test_loss"] == np.mean(losses)
    page = (run / "report.html").read_text()
    assert "was solved once more on all training data" in page
    assert (run / "refit" / "predictions" / "predicted.csv").read_text().count("\n") == labels.size + 1
    stages()["report"].export(Export(run, features, tmp_path))  # type: ignore[misc]
    assert read_json(tmp_path / "served.json") == {
        "lambda": refit["lambda"], "refit": True, "test_loss": refit["test_loss"]
    }  # fmt: skip


def test_model__has_the_same_numbers_wherever_a_run_shows_them(
    run: Path, data: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = result_of(run)
    refit, before = result["refit"], result["evaluate"]
    lam, loss, error = refit["lambda"], refit["test_loss"], refit["test_error_rate"]
    assert (before["best_lambda"], before["test_loss"] == loss) == (lam, False)
    with np.load(data.removeprefix("dataset.file=")) as arrays:
        np.savez(tmp_path / "test.npz", x=arrays["x_test"], y=arrays["y_test"])
    assert carry_out(["evaluate", str(run), str(tmp_path / "test.npz"), "--json"]) == 0
    measured = json.loads(capsys.readouterr().out)
    assert (measured["lambda"], measured["loss"], measured["metrics"]["error_rate"]) == (lam, loss, error)
    assert carry_out(["ls", str(run), "--json"]) == 0
    (listed,) = json.loads(capsys.readouterr().out)
    assert (listed["best_lambda"], listed["test_loss"]) == (lam, loss)
    assert listed["before_refit_test_loss"] == before["test_loss"]
    row = table.facts(run)
    assert (row["best_lambda"], row["test_loss"]) == (lam, loss)
    shown = {point.name: point.value for point in curves.headline(result, 0)}
    assert (shown["best_lambda"], shown["best_test_loss"], shown["with_refit/test_error_rate"]) == (lam, loss, error)
    assert shown["with_best_lambda/test_loss"] == before["test_loss"]
    page, said = (run / "report.html").read_text(), summary(result, run)
    for name, value in (
        ("best λ", lam), ("test loss", loss), ("test loss before the refit", before["test_loss"]),
    ):  # fmt: skip
        assert f"<b>{number(value)}</b><span>{name}</span>" in page
    assert f"all training examples · test loss {loss:.3g} ·" in said
    assert f"test loss before the refit {before['test_loss']:.3g} ·" in said


def test_another_rule__picks_another_lambda_in_the_same_run(data: str, tmp_path: Path) -> None:
    run = refitted(tmp_path, data, "run.pick=least")
    least = result_of(run)
    assert (least["evaluate"]["picked_by"], least["refit"]["lambda"]) == ("least", least["evaluate"]["best_lambda"])
    assert refitted(tmp_path, data, "run.pick=one_se") == run
    other = result_of(run)
    arrays, _ = read_group(run / "path.zarr", COLUMNS)
    assert (other["evaluate"]["picked_by"], other["refit"]["lambda"]) == ("one_se", picked_by("one_se", arrays))
    assert model_of(run).lambda_ == other["evaluate"]["best_lambda"]


def test_refit__of_another_lambda_begins_anew(data: str, tmp_path: Path) -> None:
    run = refitted(tmp_path, data)
    weights = read_path(run / "refit" / "path.zarr")[0]["weights"].tobytes()
    record = read_json(run / "refit" / "refit.json")
    write_json(run / "refit" / "refit.json", {**record, "initial": "of a path that has gone on since"})
    (run / "refit" / "metrics.json").unlink()
    assert refitted(tmp_path, data) == run
    assert read_json(run / "refit" / "refit.json") == record
    assert read_path(run / "refit" / "path.zarr")[0]["weights"].tobytes() == weights


def test_refit__is_asked_for_with_own_data_and_held_out_blocks() -> None:
    def refits(*words: str) -> bool:
        return read(composed(*words)).refits

    own = ("dataset=multiclass_arrays", "dataset.file=x", "dataset.validation=0.2")
    assert refits(*own)
    assert not refits(*own, "run.refit=false")
    assert not refits(*own[:2])
    assert not refits(*own[:2], "dataset.validation={folds: 3, fold: 1}")
    assert not refits("dataset.validation=0.2")
    assert refits("dataset.validation=0.2", "run.refit=true")
    assert [own_data(name) for name in ("sequences_csv", "images", "ocr", "conll")] == [True, True, False, False]
    structure = ("dataset=python_structure", "dataset.module=a:B", "dataset.validation=split")
    assert not refits(*structure)
    with pytest.raises(ConfigError, match=r"^run\.refit: python_structure cannot join the blocks of two splits"):
        refits(*structure, "run.refit=true")
    assert read(composed(*own)).run_key({}) == read(composed(*own, "run.refit=false")).run_key({})
    with pytest.raises(ConfigError, match=r"^run\.refit: expected blocks that lambda is chosen on"):
        read(composed("run.refit=true"))
