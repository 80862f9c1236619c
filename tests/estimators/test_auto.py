"""`lam="auto"`: a path on some blocks, lambda by the others, and the model of all blocks at that lambda."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from library import Bits, bits, blobs, sentences
from memory_sink import read
from sklearn.base import clone

from gapwise import ChainSVM, MulticlassSVM, StructuredSVM, load_model, open_path
from gapwise.pipeline.estimators.held_out import held_out
from gapwise.pipeline.estimators.solving import digest
from gapwise.pipeline.interrupt import Stop
from gapwise.stages.choice import rising_loss
from gapwise.stages.choice.held_out import extended, supports_of
from gapwise.stages.choice.rules import Edge, edge_of, picked
from gapwise.stages.datasets import open_dataset
from gapwise.stages.problems import build

KINDS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "chain": (ChainSVM, sentences),
    "multiclass": (MulticlassSVM, blobs),
    "structured": (lambda **choices: StructuredSVM(Bits(), **choices), lambda: bits(10)),
}


@pytest.fixture(params=sorted(KINDS))
def kind(request: pytest.FixtureRequest) -> tuple[Callable[..., Any], Any, Any]:
    make, data = KINDS[request.param]
    return (make, *data())


def test_auto__certifies_the_model_of_all_blocks(kind: Any, caplog: pytest.LogCaptureFixture) -> None:
    make, X, y = kind
    with caplog.at_level("INFO", "gapwise"):
        model = make(tolerance=0.01).fit(X, y)
    assert re.search(
        r"λ #1 = .* gap .*\n(.*\n)*.*lam \S+ was chosen; it is solved on all \d+ blocks\n.*λ #1 = ", caplog.text
    )
    n, losses, lams = len(X), model.path_["validated_loss"].values, model.path_["validated_lambda"].values
    assert model.lambda_ == lams[picked("parabola", lams, losses, model.path_["validated_error"].values)]
    held = {10: 2, 12: 2, 18: 3}[n]  # a fifth, of classes of six one each
    assert (model.path_.attrs["n"], model.refit_.attrs["n"]) == (n - held, n)
    certificate = model.certificate_
    assert certificate.holds
    assert certificate.verified
    assert certificate.lam_low == certificate.lam_high == model.lambda_
    assert certificate.gap == float(model.refit_["gap"][0]) <= 0.01 * float(model.refit_["dual"][0])
    cold = make(lam=model.lambda_, tolerance=0.01).fit(X, y)
    assert abs(float(model.refit_["primal"][0] - cold.path_["primal"][0])) <= certificate.allowed
    assert str(model.predict(X, lam=model.lambda_)) == str(model.predict(X))
    other = float(lams[-1])
    np.testing.assert_array_equal(model._weights_at(other), model.path_.weights_at(other).values)
    again = make(lam=model.lambda_, tolerance=0.02, warm_start=True)
    model.set_params(lam=model.lambda_, tolerance=0.02, warm_start=True)
    calls = model.fit(X, y).path_["oracle_calls"].values
    assert calls.tolist() <= again.fit(X, y).path_["oracle_calls"].values.tolist()


@pytest.mark.parametrize(("name", "checks"), [("structured", 4), ("chain", "refit")])
def test_stopped_auto__goes_on_to_the_same_bits(
    name: str, checks: int | str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, data = KINDS[name]
    X, y = data()
    model, where = make(tolerance=1e-4, random_state=3), tmp_path / "run"
    whole = clone(model).fit(X, y)
    with monkeypatch.context() as patch:
        asked = itertools.count()

        def stops(self: Stop) -> bool:
            if checks == "refit":  # in the refit, once it has something to commit
                return (where / "refit").is_dir() and next(asked) > 8
            return next(asked) > int(checks)

        patch.setattr(Stop, "__call__", stops)
        with pytest.raises(KeyboardInterrupt, match="the same call goes on from there"):
            clone(model).fit(X, y, run_dir=where)
    assert (where / "refit" / "state" / "HEAD.json").is_file() is (checks == "refit")
    for _ in range(2):
        again = clone(model).fit(X, y, run_dir=where)
        assert again.refit_["weights"].values.tobytes() == whole.refit_["weights"].values.tobytes()
        assert again.path_["weights"].values.tobytes() == whole.path_["weights"].values.tobytes()
        assert again.coef_.tobytes() == whole.coef_.tobytes()
    assert open_path(where / "refit")["weights"].values.tobytes() == whole.refit_["weights"].values.tobytes()


def test_path__ends_where_the_held_out_loss_has_risen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = blobs()
    whole = MulticlassSVM(criterion="error_rate").fit(X, y)
    monkeypatch.setattr(rising_loss, "has_risen", lambda lams, losses: lams.size > 3)
    model = MulticlassSVM().fit(X, y)
    path, lams = model.path_, model.path_["lambda"].values
    assert (path.attrs["status"], whole.path_.attrs["status"]) == ("LOSS_RISES", "CONVERGED")
    assert 3 < lams.size < whole.path_.sizes["breakpoint"]
    np.testing.assert_array_equal(lams, whole.path_["lambda"].values[: lams.size])
    assert "held-out blocks had clearly risen" in model._of_path.verdict.words
    assert (model.certificate_.holds, model.certificate_.lam_low) == (True, model.lambda_)
    with pytest.raises(ValueError, match="expected lambda > 0 and >="):
        model.predict(X, lam=0.9 * float(path["cell_low"][-1]))
    for _ in range(2):
        stored = MulticlassSVM().fit(X, y, run_dir=tmp_path / "auto")
        assert stored.path_.attrs["status"] == "LOSS_RISES"
        assert stored.coef_.tobytes() == model.coef_.tobytes()
    with pytest.raises(ValueError, match=r"holds another fit .*path.end 'loss_rises' there, None here"):
        MulticlassSVM(criterion="error_rate").fit(X, y, run_dir=tmp_path / "auto")


def test_few_blocks__are_told_of_and_get_one_over_n() -> None:
    X, y = blobs(9)
    with pytest.warns(UserWarning, match="lam='auto': expected at least 10 examples, .* got 9; lam='1/n' was used"):
        model = MulticlassSVM(tolerance=0.1).fit(X, y)
    assert (model.lambda_, model.refit_) == (1 / 9, None)
    with pytest.raises(ValueError, match=r"^validation: expected a share .* as lam='auto' chooses on held-out blocks"):
        MulticlassSVM(validation=None).fit(X, y)
    with pytest.raises(ValueError, match=r"^lam: expected a number > 0, 'auto', '1/n' or 'path', got 'best'"):
        MulticlassSVM(lam="best").fit(X, y)


def test_defaults__take_two_examples_a_class_and_say_what_they_do_with_one() -> None:
    two = np.repeat(np.arange(10), 2)
    (held,) = held_out(0.2, 20, two, 0)
    assert np.bincount(two[held], minlength=10).max() == 1 < np.count_nonzero(held) == 4
    assert MulticlassSVM(tolerance=0.05).fit(np.eye(10)[two], two).score(np.eye(10), np.arange(10)) == 1.0
    for lam, used in (
        ("auto", "lam='1/n'"),
        ("path", "the lam nearest to 1/n"),
        ([1.0, 0.1], "the lam nearest to 1/n"),
    ):
        said = f"^MulticlassSVM: validation: 0.2 of 10 blocks leaves none on one side; {used} was used$"
        with pytest.warns(UserWarning, match=said):
            model = MulticlassSVM(lam=lam, tolerance=0.05).fit(np.eye(10), np.arange(10))
        assert model.lambda_ == pytest.approx(0.1)


def test_choice_at_an_edge__warns() -> None:
    X, y = blobs(60)
    with pytest.warns(UserWarning, match=r"lam 50 was chosen at the upper edge of the λ's .* give more lambdas"):
        MulticlassSVM(lam=[50.0, 5.0], tolerance=0.1, fit_intercept=False).fit(X, y)
    lams = np.array([4.0, 2.0, 1.0])
    assert [edge_of(lams, k, None) for k in range(3)] == [Edge.HIGH, None, Edge.LOW]
    assert [edge_of(lams, k, 0.5) for k in range(3)] == [None, None, Edge.LOW]
    assert [edge_of(lams, k, 0.0) for k in range(3)] == [
        None,
        None,
        Edge.END,
    ]  # within eps all smaller ones have this model
    assert edge_of(lams[:1], 0, None) is None


def test_save__of_auto_is_the_refitted_model(tmp_path: Path) -> None:
    X, y = blobs()
    model = MulticlassSVM(tolerance=0.05).fit(X, y)
    model.save(tmp_path / "model")
    model.save(tmp_path / "other", lam=2 * model.lambda_)
    saved, other = (load_model(tmp_path / name) for name in ("model", "other"))
    assert saved.weights.tobytes() == model.refit_["weights"].values[0].tobytes()
    assert (saved.certificate["gap"], saved.certificate["relative"]) == (model.certificate_.gap, True)
    assert other.weights.tobytes() == model.path_.weights_at(2 * model.lambda_).values.tobytes()
    assert (other.certificate["eps"], other.certificate["certified"]) == (0.02, True)


def test_extended__keeps_the_dual_point_and_adds_truths() -> None:
    X, y = blobs()
    model = MulticlassSVM(tolerance=0.05, fit_intercept=False).fit(X, y)
    order = np.argsort(held_out(0.2, 18, y, 0)[0], kind="stable")
    whole = build("multiclass", {"x": X[order], "labels": y[order]}, {"classes": 3})
    old = supports_of(model.path_, 1)
    new = extended(old, whole)
    n, atoms = old.offset.size - 1, old.alpha.size
    for name in ("alpha", "losses", "label"):  # one label a labelling
        np.testing.assert_array_equal(getattr(new, name)[:atoms], getattr(old, name))
    assert new.offset.tolist() == [*old.offset, *range(atoms + 1, atoms + 19 - n)]
    assert new.label[atoms:].tolist() == y[order][n:].tolist()
    assert set(new.alpha[atoms:]) == {1.0}
    assert set(new.losses[atoms:]) == {0.0}
    assert new.label_offset.tolist() == list(range(new.alpha.size + 1))


def of_reader(name: str, root: Path, **options: str) -> str:
    reader = open_dataset(name, {"name": name, "root": str(root), **options})
    sink, facts = read(reader)
    return digest(build(reader.structure, sink.arrays("train"), facts))


def test_ocr__is_the_problem_of_the_reader(shared_data: Path) -> None:
    with np.load(shared_data / "ocr" / "ocr_letters.npz") as data:
        ends, small = data["word_start"][1:-1], np.flatnonzero(data["word_fold"] == 0)
        pixels, letters = np.split(data["pixels"], ends), np.split(data["letter"], ends)
    ours = ChainSVM(loss="per_sequence").problem([pixels[i] for i in small], [letters[i] for i in small])
    assert digest(ours) == of_reader("ocr", shared_data / "ocr", size="small")


def test_usps__is_the_problem_of_the_reader(shared_data: Path) -> None:
    with np.load(shared_data / "usps" / "usps.npz") as data:
        images, digits = (data["X_train"] / 1000.0).astype(np.float32), data["y_train"]
    ours = MulticlassSVM(fit_intercept=False).problem(images, digits)
    assert digest(ours) == of_reader("usps", shared_data / "usps")
