"""Every estimator: the pipeline's own numbers, scikit-learn's tools, resuming, warm starts, limits."""

from __future__ import annotations

import copy
import itertools
import pickle
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from library import Bits, bits, blobs, graphs, sentences
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import f1_score
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from solved import Kept, bits_of, restored

from gapwise import ChainSVM, MulticlassSVM, SegmentationSVM, StructuredSVM, open_path, path, solve
from gapwise.pipeline.estimators import base, solving
from gapwise.pipeline.estimators.data import cautions_of_columns
from gapwise.pipeline.interrupt import Stop
from gapwise.stages.problems import build
from gapwise.stages.solve import Task
from gapwise.stages.solve import solve as solve_stage
from gapwise.stages.solver.engine import Engine
from gapwise.stages.solver.events import Kind
from gapwise.stages.solver.methods import method_options
from gapwise.stages.solver.options import PathOptions, Status

KINDS: dict[str, tuple[Callable[..., Any], Callable[[], Any]]] = {
    "chain": (ChainSVM, sentences),
    "multiclass": (MulticlassSVM, blobs),
    "segmentation": (SegmentationSVM, graphs),
    "structured": (lambda **choices: StructuredSVM(Bits(), **choices), bits),
}


@pytest.fixture(params=sorted(KINDS))
def kind(request: pytest.FixtureRequest) -> tuple[Callable[..., Any], Any, Any]:
    """Each estimator, and tiny data for it."""
    make, data = KINDS[request.param]
    return (make, *data())


# -- what is fitted -----------------------------------------------------------------------------------------------------
def test_fit__is_certified_and_predicts(kind: Any) -> None:
    make, X, y = kind
    model = make(lam=0.1, tolerance=0.05)
    assert model.fit(X, y) is model
    certificate = model.certificate_
    assert certificate.holds
    assert certificate.verified
    assert certificate.exact
    assert (certificate.lam_low, certificate.lam_high, certificate.status) == (0.1, 0.1, "CONVERGED")
    assert certificate.gap <= 0.05 * float(model.path_["dual"][0])
    assert model.score(X, y) > 0.6
    assert len(model.predict(X)) == len(X)


def test_fit__has_the_bits_of_the_stage(tmp_path: Path) -> None:
    X, y = blobs()
    model = MulticlassSVM(lam=0.05, tolerance=0.01, fit_intercept=False).fit(X, y)
    problem = build("multiclass", {"x": X, "labels": y}, {"classes": 3})
    chosen = PathOptions(rule="single", lam=0.05, tolerance=0.01, relative=True)
    solve_stage(Task(problem, method_options("accelerated"), chosen), tmp_path, key="other")
    assert model.coef_.tobytes() == open_path(tmp_path)["weights"].values[0].tobytes()


@pytest.mark.parametrize("name", ["chain", "structured"])
def test_path__has_the_model_of_every_lambda(name: str) -> None:
    make, data = KINDS[name]
    X, y = data()
    model = make(lam="path", validation=0.4).fit(X, y)
    losses = model.path_["validated_loss"].values
    least = model.path_["validated_lambda"].values[losses == losses.min()].max()
    assert np.abs(np.log10(model.lambda_ / least)) <= 1.0
    assert make(lam="path", validation=0.4, pick="least").fit(X, y).lambda_ == least
    assert model.certificate_.holds
    assert model.certificate_.lam_high == np.inf
    between = float(np.sqrt(np.prod(model.path_["lambda"].values[:2])))
    assert len(model.predict(X, lam=between)) == len(X)
    assert make(lam="path", validation=None).fit(X, y).path_.attrs["n"] == len(X)


def test_pickle__keeps_predictions_and_path() -> None:
    X, y = sentences()
    model = ChainSVM(lam="path", eps=0.3).fit(X, y)
    for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert str(other.predict(X)) == str(model.predict(X))
        assert other.path_.identical(model.path_)


@pytest.mark.parametrize("name", ["chain", "multiclass"])
def test_problem_and_failed_fits__leave_a_fitted_estimator_as_it_was(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same objects, also after other labels, other sizes, and a fit that fails at its end."""
    make, data = KINDS[name]
    X, y = data()
    model = make(lam=0.1, tolerance=0.1).fit(X, y)
    before, predicted = dict(vars(model)), str(model.predict(X))
    other = X[3:], y[3:]
    if make is ChainSVM:
        other = [[{"word": "zebra"}, {"word": "gnu"}]] * 2, [["A", "B"], ["B", "A"]]
    model.problem(*other)
    monkeypatch.setattr(base, "fit", lambda *_, **__: pytest.fail("at its end"))
    with pytest.raises(pytest.fail.Exception):
        model.fit(*other)
    assert {name: id(value) for name, value in vars(model).items()} == {
        name: id(value) for name, value in before.items()
    }
    assert str(model.predict(X)) == predicted


@pytest.mark.parametrize(
    ("name", "choices"),
    [
        ("multiclass", {"class_weight": "balanced"}),
        pytest.param("chain", {"label_weights": "balanced"}, marks=pytest.mark.interpreted),
        pytest.param("segmentation", {"loss": "per_pixel"}, marks=pytest.mark.interpreted),
        pytest.param("multiclass", {"kernel": "rbf"}, marks=pytest.mark.interpreted),
    ],
)
def test_weights__are_repetitions_at_any_scale(name: str, choices: dict[str, Any]) -> None:
    """A weight of 0 leaves an example out, and with its last one a class."""
    make, data = KINDS[name]
    X, y = data()
    if name == "segmentation":  # of different sizes
        X = [{**graph, "area": np.full(5, 1.0 + 9.0 * (i % 2))} for i, graph in enumerate(X)]
    weight = np.arange(len(X)) % 4
    times = np.repeat(np.arange(len(X)), weight)
    again = make(lam=0.1, tolerance=1e-7, **choices).fit([X[i] for i in times], [y[i] for i in times])
    for scale in (1e-8, 1e8):
        model = make(lam=0.1, tolerance=1e-7, **choices).fit(X, y, sample_weight=scale * weight)
        assert float(model.path_["primal"][0]) == pytest.approx(float(again.path_["primal"][0]), rel=1e-6)


# -- scikit-learn's tools -------------------------------------------------------------------------------------------------


def test_grid_search__takes_lam() -> None:
    X, y = blobs()
    search = GridSearchCV(MulticlassSVM(tolerance=0.1, verify=False), {"lam": [0.1, 10.0]}, cv=2).fit(X, y)
    assert search.best_params_["lam"] in (0.1, 10.0)
    assert not search.best_estimator_.certificate_.verified


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_far_columns__are_told_with_the_remedy() -> None:
    X, y = blobs()
    table = pd.DataFrame(X + 1e6 * (np.arange(X.shape[1]) == 2), columns=[f"c{j}" for j in range(X.shape[1])])
    with pytest.warns(UserWarning, match=r"column 'c2' of X has a mean of \d\.\de\+0\d standard .*StandardScaler"):
        MulticlassSVM(lam=0.1, max_passes=1).fit(table, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        MulticlassSVM(lam=0.1, max_passes=1).fit(X + 10.0, y)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_columns_far_larger_than_others__are_named() -> None:
    X, y = load_wine(return_X_y=True, as_frame=True)
    with pytest.warns(
        UserWarning, match=r"^MulticlassSVM: column 'proline' of X has a range of 1\.4e\+03, half of the"
    ):
        MulticlassSVM(lam="1/n", max_passes=1).fit(X, y)
    for some in (np.array([[1.0], [5e3]]), np.ones((3, 2)), StandardScaler().fit_transform(X), np.eye(3) * 1e-9):
        assert not list(cautions_of_columns(some, None, None))
    assert len(list(cautions_of_columns(np.array([[1.0, 1.0], [2.0, 1e3]], np.float32), None, 1.0))) == 1
    (said,) = cautions_of_columns(np.eye(3) * 1e-8, None, 1.0)
    assert said.startswith(
        "the columns of X have a range of at most 1.0e-08, far less than the intercept's column of 1; "
    )


def test_chain__works_in_pipelines_searches_and_columns_of_tables() -> None:
    X, y = sentences(12)
    words = FunctionTransformer(lambda X: [[{"w": token["word"]} for token in some] for some in X])
    steps = make_pipeline(words, ChainSVM(tolerance=0.1, verify=False))
    search = GridSearchCV(steps, {"chainsvm__lam": [0.1, 10.0]}, cv=2).fit(X, y)
    assert search.best_params_["chainsvm__lam"] == 0.1
    frames = [pd.DataFrame({"w": [token["word"] for token in some]}) for some in X]
    model = search.best_estimator_[-1]
    assert model.predict(frames) == search.predict(X) == search.predict(pd.Series(X, index=range(5, 17)))


# -- folders, stops, warm starts ------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("name", "lam", "checks"), [("chain", 0.02, 4), ("multiclass", "path", 16), ("structured", 0.02, 4)]
)
def test_stopped_fit__goes_on_to_the_same_bits(
    name: str, lam: Any, checks: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, data = KINDS[name]
    X, y = data()
    model = make(lam=lam, eps=0.1)
    whole = model.fit(X, y).path_
    with monkeypatch.context() as patch:
        asked = itertools.count()
        patch.setattr(Stop, "__call__", lambda self: next(asked) > checks)
        with pytest.raises(KeyboardInterrupt, match="the same call goes on from there"):
            clone(model).fit(X, y, run_dir=tmp_path / "run")
    assert (tmp_path / "run" / "state" / "HEAD.json").is_file()
    again = clone(model).fit(X, y, run_dir=tmp_path / "run").path_
    assert again["weights"].values.tobytes() == whole["weights"].values.tobytes()
    at_once = clone(model).fit(X, y, run_dir=tmp_path / "run").path_
    assert at_once["gap"].values.tobytes() == again["gap"].values.tobytes()


WEIGHTED = {
    "chain": {"label_weights": "balanced"},
    "multiclass": {"class_weight": "balanced"},
    "kernel": {"kernel": "rbf"},
}


@pytest.mark.parametrize(
    ("name", "solver"),
    [
        ("chain", "accelerated"),
        ("multiclass", "auto"),
        ("segmentation", "auto"),
        ("structured", "expensive_oracle"),
        pytest.param("kernel", "auto", marks=pytest.mark.interpreted),
    ],
)
def test_fit__goes_on_from_every_boundary_to_the_same_bits(
    name: str, solver: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, data = KINDS.get(name, KINDS["multiclass"])
    X, y = data()
    weights = {"sample_weight": np.random.default_rng(0).uniform(0.5, 2.0, len(y))} if name != "structured" else {}
    to_the_end = solving._in_memory

    def stopped_everywhere(engine: Engine, *others: Any) -> Any:
        whole = Kept()
        engine.run(sink=whole)
        for state, after in itertools.pairwise(whole.offers):
            left, here = [None, Status.INTERRUPTED], Kept()
            again = restored(engine.task, state)
            again.run([lambda event, left=left: left.pop(0) if event.kind is Kind.BOUNDARY else None], here)
            assert bits_of(here.state) == bits_of(after)
        return to_the_end(Engine.begin(engine.task), *others)

    monkeypatch.setattr(solving, "_in_memory", stopped_everywhere)
    make(lam="path", eps=0.1, validation=None, solver=solver, **WEIGHTED.get(name, {})).fit(X, y, **weights)


def test_fit__warns_where_rounding_hides_the_gap() -> None:
    """The classes are far apart, so that the dual value, of which the tolerance is a share, is next to nothing."""
    rng, y = np.random.default_rng(0), np.repeat([0, 1, 2], 20)
    X = 1e5 * (rng.normal(size=(60, 4)) + 9.0 * np.eye(3, 4)[y])
    with pytest.warns(ConvergenceWarning, match=r"rounding hides .*\(ROUNDING_LIMIT\) .*raise tolerance or eps$"):
        model = MulticlassSVM(lam="1/n").fit(X, y)
    assert model.score(X, y) == 1.0
    assert model.certificate_.verified
    assert model.certificate_.gap < 1e-13
    assert (model.certificate_.status, model.certificate_.holds) == ("ROUNDING_LIMIT", False)


def test_folder__of_another_fit_is_refused(tmp_path: Path) -> None:
    make, where, (X, y) = MulticlassSVM, tmp_path / "run", blobs()
    make(lam=0.1, tolerance=0.1).fit(X, y, run_dir=where)
    with pytest.raises(ValueError, match=r"^run_dir: .*run holds a fit of other data; give another folder"):
        make(lam=0.1, tolerance=0.1).fit(X[:-1], y[:-1], run_dir=where)
    with pytest.raises(ValueError, match=r"^run_dir: .*run holds another fit \(path.lam 0.1 there, 0.2 here\)"):
        make(lam=0.2, tolerance=0.1).fit(X, y, run_dir=where)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").touch()
    with pytest.raises(ValueError, match=r"^run_dir: .*mine holds thesis.tex and no fit.json"):
        make().fit(X, y, run_dir=tmp_path / "mine")


def test_warm_start__begins_at_the_last_dual_solution() -> None:
    make, (X, y) = ChainSVM, sentences()
    chosen = {"lam": 0.05, "tolerance": 1e-3}
    cold = make(**chosen).fit(X, y)
    model = make(lam=0.06, tolerance=1e-3, warm_start=True).fit(X, y)
    model.set_params(**chosen).fit(X, y)
    assert model.certificate_.verified
    assert model.certificate_.holds
    gap = float(model.path_["primal"][0] - cold.path_["primal"][0])
    assert abs(gap) <= 2 * cold.certificate_.allowed
    calls = model.set_params(tolerance=2e-3).fit(X, y).path_["oracle_calls"].values
    assert calls.tolist() < cold.path_["oracle_calls"].values.tolist()


@pytest.mark.parametrize("limit", [{"max_passes": 2}, {"max_seconds": 1e-6}])
def test_limit__warns_with_the_gap_it_reached(limit: dict[str, float], tmp_path: Path) -> None:
    make, (X, y) = MulticlassSVM, blobs()
    for where in (None, tmp_path / "run"):
        with pytest.warns(ConvergenceWarning, match=f"ended at {next(iter(limit))} .* with a gap of .* was asked for"):
            model = make(lam=0.01, tolerance=1e-6, **limit).fit(X, y, run_dir=where)
        assert not model.certificate_.holds
        assert model.certificate_.gap > 0
        ended = "PASS_LIMIT" if "max_passes" in limit else "TIME_LIMIT"
        assert model.path_.attrs["status"] == model.certificate_.status == ended
        assert model.path_.attrs["status_meanings"][int(model.path_["status"][-1])] == ended
        model.predict(X)


def test_limit_of_a_path__leaves_the_part_above() -> None:
    X, y = blobs()
    with pytest.raises(
        ValueError, match="max_seconds: 1e-06 s were over before the first lambda was solved; give more"
    ):
        MulticlassSVM(lam="path", max_seconds=1e-6).fit(X, y)
    with pytest.warns(ConvergenceWarning, match=r"ended at max_passes \(PASS_LIMIT\) with a gap"):
        model = MulticlassSVM(lam="path", eps=0.01, max_passes=3).fit(X, y)
    model.predict(X, lam=2 * model.certificate_.lam_low)
    with pytest.raises(ValueError, match="expected lambda > 0 and >="):
        model.predict(X, lam=0.5 * model.certificate_.lam_low)


def test_threads__change_no_bit() -> None:
    X, y = sentences()
    single, double = (ChainSVM(lam="path", eps=0.2, n_jobs=jobs).fit(X, y) for jobs in (1, 2))
    assert single.path_["weights"].values.tobytes() == double.path_["weights"].values.tobytes()
    assert single.predict(X) == double.predict(X)


# -- functions ------------------------------------------------------------------------------------------------------------
def test_functions__solve_the_problem_of_an_estimator(tmp_path: Path) -> None:
    X, y = sentences()
    model = ChainSVM(lam=0.1, tolerance=0.01).fit(X, y)
    single = solve(ChainSVM().problem(X, y), 0.1, tolerance=0.01, run_dir=tmp_path / "run")
    np.testing.assert_array_equal(single["weights"].values[0], model.path_["weights"].values[0])
    assert open_path(tmp_path / "run")["weights"].shape == single["weights"].shape
    grid = solve(ChainSVM().problem(X, y), [0.1, 1.0], tolerance=0.1)
    assert grid["lambda"].values.tolist() == [1.0, 0.1]
    whole = path(ChainSVM().problem(X, y), 0.3)
    assert whole.weights_at(0.05).shape == (model.path_.sizes["feature"],)


def test_label_sequences__are_cross_validated_and_have_f1() -> None:
    X, y = sentences(20)
    model = ChainSVM(lam=0.1, tolerance=0.1)
    predicted = cross_val_predict(model, X, y, cv=4)
    assert [len(labels) for labels in predicted] == [len(labels) for labels in y]
    train, test = next(iter(KFold(4).split(X)))
    there = model.fit([X[i] for i in train], [y[i] for i in train])
    assert predicted[: len(test)].tolist() == there.predict([X[i] for i in test])
    measured = there.measures(X, y)
    assert measured.metrics["token_error"] == pytest.approx(1.0 - there.score(X, y))
    flat = [np.concatenate(labels) for labels in (y, there.predict(X))]
    for row in measured.labels:
        assert row["f1"] == pytest.approx(f1_score(*flat, labels=[row["label"]], average="macro"))
    by_f1 = cross_val_score(model, X, y, cv=4, scoring=lambda m, X, y: m.measures(X, y).labels[0]["f1"])
    assert by_f1.shape == (4,)
