"""`run.criterion`: lambda by a measure of the field, in evaluate, refit, report and cross-validation, and in the key."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from configs import composed
from in_process import Here, issued, result_of

from gapwise.pipeline.config.run_options import ConfigError
from gapwise.pipeline.config.settings import read
from gapwise.pipeline.overview.run_state import run_state
from gapwise.pipeline.rundir import read_json
from gapwise.pipeline.stage_graph.evaluate import by_split
from gapwise.pipeline.tracking.curves import headline
from gapwise.stages.choice.rules import PICKS, picked
from gapwise.stages.model.from_run import model_of
from gapwise.stages.reports import charts
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
    (folder / "costs.csv").write_text("0,9,9\n1,0,1\n1,1,0\n")
    return f"dataset.file={folder / 'own.npz'}", f"dataset.costs={folder / 'costs.csv'}"


def one_lambda(run: Path, said: str) -> float:
    """The lambda that was picked, which everything names that the run leaves or says."""
    result = result_of(run)
    best = result["evaluate"]
    lam, criterion, pick = best["best_lambda"], best.get("criterion", "loss"), best["picked_by"]
    names = ("lambda", f"validation_{criterion}", "validation_standard_error")
    if criterion != "loss":  # without a standard error
        names = (*names[:2], names[1])
    arrays = read_group(run / "path.zarr", tuple(f"evaluated_{name}" for name in {*names}))[0]
    lams, values, errors = (arrays[f"evaluated_{name}"] for name in names)
    assert lam == lams[picked(pick, lams, values, errors)]
    assert ("least_lambda" in best) == (lam != lams[picked("least", lams, values, errors)])
    assert lam == result["refit"]["lambda"] == model_of(run).lambda_ == run_state(run).facts()["best_lambda"]
    assert lam == next(point.value for point in headline(result, 0) if point.name == "best_lambda")
    assert lam == read_json(run / "refit" / "metrics.json")["lambda"]
    assert f"best  λ {lam:.3g} (" in said
    assert f"refit  λ {lam:.3g} trained again" in said
    page = (run / "report.html").read_text()
    assert f"The best λ is {lam:.3g} (" in page
    assert f"<b>{lam:.3g}</b><span>best λ</span>" in page
    features = open_features(next(run.parent.glob("features/*[0-9a-f]")))
    assert f"λ = {lam:.3g} chosen" in charts.losses(StoredRun(run, features)).title  # type: ignore[union-attr]
    return float(lam)


def test_error_rate__chooses_lambda_and_refits_there(data: tuple[str, str], tmp_path: Path) -> None:
    run, said = issued(tmp_path / "by_error", *WORDS, *data, BY_ERROR)
    lam, best = one_lambda(run, said), result_of(run)["evaluate"]
    assert (best["criterion"], "one_se_lambda" in best) == ("error_rate", False)
    assert result_of(run)["refit"]["verdict"]["certified"]
    assert f"(best error rate on 24 validation examples: {best['validation_error_rate']:.3g}) · test loss" in said
    assert "while error rate chose λ." in (run / "report.html").read_text()
    assert set(by_split(read_json(run / "metrics.json"))["picked_on_test"]) == {"best_lambda", "test_error_rate"}
    other, _ = issued(tmp_path, *WORDS, *data)
    assert other.name != run.name
    assert result_of(other)["evaluate"]["best_lambda"] != lam
    ours, theirs = (read_path(some / "path.zarr")[0]["weights"] for some in (run, other))
    assert ours.tobytes() == theirs.tobytes()


def test_every_rule__names_one_lambda_everywhere(data: tuple[str, str], tmp_path: Path) -> None:
    words = (*WORDS, *data, "dataset.validation=0.5")
    lams = [one_lambda(*issued(tmp_path, *words, f"run.pick={pick}")) for pick in PICKS]
    assert len({*lams}) == len(PICKS)


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


def test_measure__that_there_is_not_is_refused_before_anything_is_solved(chain, data, tmp_path: Path) -> None:
    for words, said in (
        ((*WORDS, *data), "loss, error_rate for the structure multiclass"),
        ((*chain.words, "dataset.validation=0.25"), "loss, token_error, sequence_error, which these data have"),
    ):
        done = Here(tmp_path / "runs", [*words]).issue("run.criterion=chunk_f1")
        assert (done.code, f"run.criterion: expected one of {said}, got 'chunk_f1'" in done.err) == (2, True), done.err
        assert not list((tmp_path / "runs").glob("*/path.zarr"))
