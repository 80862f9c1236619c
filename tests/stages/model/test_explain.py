"""What spoke for a label and against it: parts of the margin, with names."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from library import blobs, sentences

from gapwise import ChainSVM, MulticlassSVM, load_model

X, Y = sentences()


@pytest.fixture(scope="module")
def tagger() -> ChainSVM:
    return ChainSVM(lam=[0.5, 0.05], tolerance=0.05, validation=None).fit(X, Y)


def test_parts__sum_to_the_margin_and_have_the_weights_of_both_labels(tagger: ChainSVM) -> None:
    for x, margins in zip(X, tagger.margins(X, lam=0.05), strict=True):
        for t, margin in enumerate(margins.tolist()):
            explanation = tagger.explain(x, t, lam=0.05)
            scores = explanation.parts["score"].tolist()
            assert explanation.margin == pytest.approx(margin, abs=1e-12)
            assert sum(scores) == pytest.approx(margin, abs=1e-12)
            assert scores == sorted(scores, reverse=True)
            assert 0.0 not in scores
            assert [explanation.predicted] == tagger.predict([x], lam=0.05)
            assert explanation.rival[t] != explanation.predicted[t]


def test_parts__of_one_token_are_differences_of_named_weights(tagger: ChainSVM) -> None:
    explanation = tagger.explain([{"word": "dog", "half": 0.5}, {"word": "runs"}][:1], 0, rival="D")
    assert (explanation.predicted, explanation.rival) == (["N"], ["D"])
    weights = tagger.named_weights().set_index(["attribute", "label"])["weight"]
    for part in explanation.parts.itertuples():
        assert part.score == weights[part.attribute, "N"] - weights[part.attribute, "D"]
    assert {*explanation.parts["attribute"]} <= {"word:dog", "bias", "bias:first", "bias:last"}


def test_printed__are_the_margin_and_the_strongest_parts_of_either_side(tagger: ChainSVM) -> None:
    explanation = tagger.explain(X[0], 1)
    head, _, first, *others, rest = explanation.text(1).splitlines()
    most, least = (explanation.parts.iloc[row] for row in (0, -1))
    assert head == f"entry 1: {explanation.predicted[1]}, not {explanation.rival[1]}: margin {explanation.margin:.4f}"
    assert first.split()[-1] == f"{most.score:+.4f}"
    assert [line.split()[-1] for line in others] == [f"{least.score:+.4f}"] * bool(least.score < 0.0)
    left = len(explanation.parts) - 1 - len(others)
    assert rest.startswith(f"{left} more: ")
    assert str(explanation) == explanation.text(10)


def test_loaded_model__explains_the_same(tagger: ChainSVM, tmp_path: Path) -> None:
    tagger.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    for i in (0, 5):
        theirs, ours = loaded.explain(X, i, 0), tagger.explain(X[i], 0)
        assert theirs == ours
        assert theirs.parts.equals(ours.parts)


def test_classes__have_the_columns_as_parts(tmp_path: Path) -> None:
    points, labels = blobs()
    model = MulticlassSVM(lam=0.1, tolerance=0.05).fit(points, labels)
    model.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    names = ["x0", "x1", "x2", "x3", "bias"]
    for i, margin in enumerate(model.margins(points[:3]).tolist()):
        explanation = loaded.explain(points[:3], i)
        best, second = model.predict(points[i : i + 1], n_best=2)[0].tolist()
        assert (explanation.predicted, explanation.rival) == ([best], [second])
        assert explanation.margin == pytest.approx(margin, abs=1e-9)
        difference = (model.coef_[best] - model.coef_[second]) * points[i]
        expected = dict(zip(names, [*difference, model.intercept_[best] - model.intercept_[second]], strict=True))
        assert explanation.parts.set_index("attribute")["score"].to_dict() == pytest.approx(expected, abs=1e-9)


def test_refused__are_what_is_not_there_and_what_constraints_forbid(tagger: ChainSVM) -> None:
    for words, message in (
        ((X[0], 99), r"^block 0 has no entry 99; expected 0 to "),
        ((X[0], -1), r"has no entry -1"),
        (([{"word": "dog"}], 0, "X"), r"^there is no label 'X'; known: D, N, V$"),
        (([{"word": "dog"}], 0, "N"), r"'N' is the predicted label; expected another one$"),
        (([], 0), r"^sequence: expected a sequence with tokens"),
    ):
        with pytest.raises(ValueError, match=message):
            tagger.explain(*words)
    pairs = [(None, "N"), (None, "V"), ("D", "D"), ("D", "V")]
    strict = ChainSVM(lam=0.1, tolerance=0.05, constraints=pairs).fit(*_obeying(pairs))
    the = [{"word": "the"}, {"word": "dog"}]
    with pytest.raises(ValueError, match=r"entry 0: the constraints allow no other label there$"):
        strict.explain(the, 0)
    with pytest.raises(ValueError, match=r"entry 1: the constraints allow no 'V' there$"):
        strict.explain(the, 1, "V")
    assert np.isinf(strict.margins([the])[0]).all()


def _obeying(pairs: list[tuple[str | None, str]]) -> tuple[list[object], list[list[str]]]:
    """Sentences whose labels keep to the constraints."""
    kept = [k for k, labels in enumerate(Y) if not {*zip([None, *labels], labels, strict=False)} & {*pairs}]
    return [X[k] for k in kept] * 3 + [[{"word": "the"}, {"word": "cat"}, {"word": "sleeps"}]], [
        Y[k] for k in kept
    ] * 3 + [["D", "N", "V"]]
