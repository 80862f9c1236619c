"""Commands predict, export and explain where they say how sure a model is."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pytest
from library import blobs

from gapwise import ChainSVM, MulticlassSVM, load_model
from gapwise.pipeline.cli import carry_out
from gapwise.stages.model.model import Model

THE, DOG, RUNS = {"w": "the", "p": "DT"}, {"w": "dog", "p": "NN"}, {"w": "runs"}
TEXT = "O\tw\\:runs\n\tp\\:DT\n\n\tp\\:NN\n"
ROWS = [["O\tw\\:runs", "\tp\\:DT"], ["\tp\\:NN"]]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Models ``plain`` and ``calibrated`` of sequences, ``rows`` of numbers, and new input of each."""
    folder = tmp_path_factory.mktemp("confident")
    X = [[THE, DOG, RUNS], [RUNS, THE, {"p": "NN"}], [RUNS, THE, DOG]] * 6
    y = [["B-NP", "I-NP", "O"], ["O", "B-NP", "I-NP"], ["O", "B-NP", "I-NP"]] * 5
    y += [["B-NP", "I-NP", "O"], ["O", "O", "I-NP"], ["O", "B-NP", "B-NP"]]
    ChainSVM(lam=0.01, tolerance=0.05).fit(X, y).save(folder / "plain")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of two lambdas either is an edge
        ChainSVM(lam=[0.1, 0.01], tolerance=0.05, calibration="isotonic").fit(X, y).save(folder / "calibrated")
    points, labels = blobs()
    MulticlassSVM(lam=0.1, tolerance=0.05).fit(points, labels).save(folder / "rows")
    np.save(folder / "rows.npy", points[:3])
    (folder / "new.txt").write_text(TEXT)
    return folder


def said(made: Path, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[str, str]:
    assert carry_out(["predict", *(str(made / word) if (made / word).exists() else word for word in words)]) == 0
    shown = capsys.readouterr()
    return shown.out, shown.err


def text_answers(made: Path, name: str, **asked: object) -> tuple[Model, object]:
    model = load_model(made / name)
    from gapwise.stages.datasets import reader_of

    return model, model.answer(
        reader_of(model.meta["dataset"]).read_new([str(made / "new.txt")], model.meta).raw, **asked
    )


def test_margins__are_one_more_column_of_text(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, predicted = text_answers(made, "plain", margins=True)
    lines = [
        f"{line}\t{model.labels[label]}\t{margin:.6g}"
        for line, label, margin in zip([*ROWS[0], *ROWS[1]], predicted.labels, predicted.margins, strict=True)
    ]
    assert said(made, capsys, "plain", "new.txt", "--margins") == ("\n".join([*lines[:2], "", lines[2]]) + "\n", "")
    plain = [line.rpartition("\t")[0] for line in lines]
    assert said(made, capsys, "plain", "new.txt") == ("\n".join([*plain[:2], "", plain[2]]) + "\n", "")


def test_n_best__has_the_form_of_crfpp(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, predicted = text_answers(made, "plain", n_best=4)
    out, _ = said(made, capsys, "plain", "new.txt", "--n-best", "4")
    parts = out.removesuffix("\n").split("\n\n")
    order = [(i, r) for i in range(2) for r in range(predicted.n_best.count(i))]
    assert [predicted.n_best.count(i) for i in range(2)] == [4, 3]
    for part, (i, r) in zip(parts, order, strict=True):
        head, *lines = part.split("\n")
        assert head == f"# {r} {predicted.n_best.scores[i, r]:.6g}"
        labels = [model.labels[k] for k in predicted.n_best[i][r]]
        assert lines == [f"{row}\t{label}" for row, label in zip(ROWS[i], labels, strict=True)]


def test_rows__have_one_more_column(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, points = load_model(made / "rows"), np.load(made / "rows.npy")
    predicted = model.answer(points, margins=True)
    out, _ = said(made, capsys, "rows", "rows.npy", "--margins")
    rows = [[str(i), str(predicted.named(i)[0]), f"{predicted.margins[i]:.6g}"] for i in range(3)]
    assert [line.split(",") for line in out.splitlines()] == [["example", "predicted", "margin"], *rows]


def test_npz__holds_what_was_asked_for(made: Path, tmp_path: Path) -> None:
    for words, names in (
        (["--margins"], {"margins", "probabilities", "calibration"}),
        (["--n-best", "3"], {"n_best_labels", "n_best_scores"}),
    ):
        out = tmp_path / f"{words[0]}.npz"
        assert carry_out(["predict", str(made / "calibrated"), str(made / "new.txt"), "-o", str(out), *words]) == 0
        with np.load(out) as arrays:
            assert {*arrays.files} == {"labels", "label_ptr", *names}


def test_calibrate__of_a_model_without_its_run_is_refused(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert carry_out(["predict", str(made / "plain"), str(made / "new.txt"), "--calibrate", "sigmoid"]) == 1
    assert "--calibrate fits on the validation split of a run" in capsys.readouterr().err
    words = ["predict", str(made / "plain"), str(made / "new.txt"), "--calibrate", "sigmoid", "--n-best", "2"]
    assert carry_out(words) == 1
    assert "which lists of labellings lack; leave out one of them" in capsys.readouterr().err


def test_explain__says_what_spoke_for_a_label(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["explain", str(made / "plain"), str(made / "new.txt"), "--block", "0", "--entry", "1"]
    assert carry_out([*words, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    _, predicted = text_answers(made, "plain", margins=True)
    assert facts["margin"] == pytest.approx(predicted.margins[1], abs=1e-9)
    assert sum(part["score"] for part in facts["parts"]) == pytest.approx(facts["margin"], abs=1e-12)
    assert carry_out(words) == 0
    assert capsys.readouterr().out.startswith(f"entry 1: {facts['predicted'][1]}, not {facts['rival'][1]}: margin ")
    assert carry_out([*words, "--rival", "B-VP"]) == 1
    assert capsys.readouterr().err.startswith("error: explain: there is no label 'B-VP'")
