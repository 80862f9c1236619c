"""`run.criterion`: lambda by a measure of the field, in evaluate, refit, report and cross-validation, and in the key."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from configs import composed
from in_process import Here

from gapwise.pipeline.config.run_options import ConfigError
from gapwise.pipeline.config.settings import read
from gapwise.pipeline.interrupt import Stop
from gapwise.pipeline.overview.standing import standing
from gapwise.pipeline.rundir import read_json
from gapwise.pipeline.stage_graph.evaluate import by_split
from gapwise.pipeline.tracking.curves import headline
from gapwise.stages.choice.rules import PICKS, picked
from gapwise.stages.model.from_run import model_of
from gapwise.stages.reports.charts import losses as losses_chart
from gapwise.stages.reports.stored import StoredRun
from gapwise.storage.features import open_features
from gapwise.storage.layout import read_group
from gapwise.storage.results import read_path

WORDS = ("dataset=multiclass_arrays", "compute=serial", "tracking=none", "path.eps=0.5", "solver.cache.kind=gap",
         "dataset.validation=0.4", "run.pick=least")  # fmt: skip
BY_ERROR = "run.criterion=error_rate"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """Three classes of which errors in the first cost nine times as much."""
    rng, folder = np.random.default_rng(10), tmp_path_factory.mktemp("data")
    y = {"y_train": np.arange(60) % 3, "y_test": np.arange(30) % 3}
    x = {f"x{name[1:]}": rng.normal(size=(k.size, 4)) + np.eye(3, 4)[k] for name, k in y.items()}
    np.savez(folder / "own.npz", **x, **y)
    np.save(folder / "costs.npy", np.array([[0.0, 9.0, 9.0], [1.0, 0.0, 1.0], [1.0, 1.0, 0.0]]))
    return f"dataset.file={folder / 'own.npz'}", f"dataset.costs={folder / 'costs.npy'}"


def issued(root: Path, data: tuple[str, ...], *more: str) -> tuple[Path, str]:
    done = Here(root, (*WORDS, *data)).issue(*more)
    assert done.code == 0, done.err
    return Path(done.out.rsplit("run: ", 1)[1].strip()), done.out


def result_of(run: Path) -> dict[str, Any]:
    result = read_json(run / "result.json", seal=True)
    assert isinstance(result, dict)
    return result


@pytest.fixture(scope="module")
def chosen(data: tuple[str, str], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    return issued(tmp_path_factory.mktemp("by_error"), data, BY_ERROR)


@pytest.mark.slow
def test_error_rate__chooses_lambda_and_refits_there(
    chosen: tuple[Path, str], data: tuple[str, str], tmp_path: Path
) -> None:
    run, said = chosen
    names = [f"evaluated_{name}" for name in ("lambda", "validation_error_rate", "validation_loss")]
    lams, errors, losses = read_group(run / "path.zarr", tuple(names))[0].values()
    best = result_of(run)["evaluate"]
    at = picked("least", lams, errors, errors)
    assert (best["best_lambda"], best["criterion"]) == (lams[at], "error_rate")
    assert best["validation_error_rate"] == errors[at]
    assert best["best_lambda"] != lams[picked("least", lams, losses, losses)]
    assert "one_se_lambda" not in best
    assert result_of(run)["refit"]["lambda"] == best["best_lambda"]
    assert result_of(run)["refit"]["verdict"]["certified"]
    assert f"(best error rate on 24 validation examples: {errors[at]:.3g}) · test loss" in said
    assert f"refit  λ {lams[at]:.3g} trained again on all training examples · test loss" in said
    page = (run / "report.html").read_text()
    assert f"The best λ is {lams[at]:.3g} (best error rate on validation examples)" in page
    assert "while error rate chose λ." in page
    assert f"by the model that was trained again on all examples, at λ = {lams[at]:.3g}." in page
    split = by_split(read_json(run / "metrics.json"))
    assert set(split["picked_on_test"]) == {"best_lambda", "test_error_rate"}
    other, _ = issued(tmp_path, data)
    assert other.name != run.name
    assert result_of(other)["evaluate"]["best_lambda"] != best["best_lambda"]
    assert (
        read_path(other / "path.zarr")[0]["weights"].tobytes() == read_path(run / "path.zarr")[0]["weights"].tobytes()
    )


@pytest.mark.slow
@pytest.mark.parametrize("criterion", ["loss", "error_rate"])
def test_every_rule__names_one_lambda_everywhere(criterion: str, data: tuple[str, str], tmp_path: Path) -> None:
    picked_lams = []
    for pick in PICKS if criterion == "loss" else PICKS[:2]:
        run, said = issued(tmp_path, data, "dataset.validation=0.5", f"run.criterion={criterion}", f"run.pick={pick}")
        result = result_of(run)
        best = result["evaluate"]
        lam = best["best_lambda"]
        names = ("lambda", f"validation_{criterion}", "validation_standard_error")
        lams, values, errors = read_group(run / "path.zarr", tuple(f"evaluated_{name}" for name in names))[0].values()
        assert lam == lams[picked(pick, lams, values, errors)]
        assert (best["picked_by"], "least_lambda" in best) == (pick, lam != lams[picked("least", lams, values, errors)])
        assert lam == result["refit"]["lambda"] == model_of(run).lambda_ == standing(run).facts()["best_lambda"]
        assert lam == next(point.value for point in headline(result, 0) if point.name == "best_lambda")
        assert lam == read_json(run / "refit" / "metrics.json")["lambda"]
        assert f"best  λ {lam:.3g} (" in said
        assert f"refit  λ {lam:.3g} trained again" in said
        page = (run / "report.html").read_text()
        assert f"The best λ is {lam:.3g} (" in page
        assert f"<b>{lam:.3g}</b><span>best λ</span>" in page
        losses = losses_chart.chart(StoredRun(run, open_features(next(tmp_path.glob("features/*[0-9a-f]")))))
        assert f"λ = {lam:.3g} chosen" in losses.title
        picked_lams.append(lam)
    assert len({*picked_lams}) == len(picked_lams)


@pytest.mark.slow
def test_killed_refit__by_a_criterion_goes_on_to_the_same_bits(
    chosen: tuple[Path, str], data: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, _ = issued(tmp_path, data, BY_ERROR, "run.refit=false")
    with monkeypatch.context() as patch:
        asked = itertools.count()
        stops = lambda self: (folder / "refit" / "features").is_dir() and next(asked) > 8  # noqa: E731
        patch.setattr(Stop, "__call__", stops)
        patch.setattr(Stop, "signal", 2, raising=False)
        assert Here(tmp_path, (*WORDS, *data)).issue(BY_ERROR).code == 130
    assert (folder / "refit" / "state" / "HEAD.json").is_file()
    issued(tmp_path, data, BY_ERROR)
    assert result_of(folder)["refit"]["lambda"] == result_of(chosen[0])["evaluate"]["best_lambda"]
    ours, theirs = (read_path(some / "refit" / "path.zarr")[0] for some in (folder, chosen[0]))
    assert ours["weights"].tobytes() == theirs["weights"].tobytes()


def test_criterion__is_in_the_key_unless_it_is_the_loss() -> None:
    words = ("dataset=multiclass_arrays", "dataset.file=x", "dataset.validation=0.2")
    key = read(composed(*words)).run_key({})
    assert read(composed(*words, "run.criterion=loss")).run_key({}) == key
    assert read(composed(*words, BY_ERROR)).run_key({}) != key
    with pytest.raises(
        ConfigError, match=r"^run\.pick: one_se needs a standard error, and run\.criterion=error_rate has"
    ):
        read(composed(*words, BY_ERROR, "run.pick=one_se"))
    read(composed(*words[:2], BY_ERROR, "run.pick=one_se", "sweep.cv=3"))


def test_wrong_name__is_refused_before_anything_is_made(data: tuple[str, str], tmp_path: Path) -> None:
    done = Here(tmp_path / "runs", (*WORDS, *data)).issue("run.criterion=chunk_f1")
    assert done.code == 2
    assert "run.criterion: expected one of loss, error_rate for the structure multiclass, got 'chunk_f1'" in done.err
    assert not list(tmp_path.glob("runs/multiclass_arrays-*"))


def test_measure__that_these_data_lack_is_refused_before_anything_is_solved(tmp_path: Path) -> None:
    text = "a\tD\nb\tN\n\n" * 12
    (tmp_path / "train.txt").write_text(text)
    (tmp_path / "template").write_text("U:%x[0,0]\n")
    file = tmp_path / "train.txt"
    own = ("dataset=sequences_csv", f"dataset.file={file}", f"dataset.test_file={file}", "dataset.validation=0.2",
           f"dataset.template={tmp_path / 'template'}", "compute=serial", "tracking=none")  # fmt: skip
    done = Here(tmp_path / "runs", own).issue("run.criterion=chunk_f1")
    assert done.code == 2
    assert (
        "run.criterion: expected one of loss, token_error, sequence_error, which these data have, got 'chunk_f1'"
        in done.err
    )
    assert not list((tmp_path / "runs").glob("*/path.zarr"))
