"""Commands on a model of a `ChainSVM` that was saved, with text."""

from __future__ import annotations

import gzip
import json
from itertools import chain
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from seqeval.metrics import classification_report, f1_score
from sklearn.metrics import accuracy_score, precision_recall_fscore_support

from gapwise import ChainSVM, load_model
from gapwise.pipeline.cli import carry_out
from gapwise.stages.model.measures import confusions
from gapwise.stages.model.named_weights import strongest


@pytest.fixture(scope="module")
def chunker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of the attributes p:DT, p:NN, w:the, w:dog and w:runs, which has learnt the labels B-NP, I-NP and O."""
    the, dog = {"w": "the", "p": "DT"}, {"w": "dog", "p": "NN"}
    X = [[the, dog, {"w": "runs"}], [{"w": "runs"}, the, {"p": "NN"}], [{"w": "runs"}, the, dog]]
    folder = tmp_path_factory.mktemp("text") / "model"
    ChainSVM(lam=0.01, tolerance=0.05).fit(
        X, [["B-NP", "I-NP", "O"], ["O", "B-NP", "I-NP"], ["O", "B-NP", "I-NP"]]
    ).save(folder)
    return folder


def test_predict__tells_how_many_attributes_are_known(
    chunker: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new = tmp_path / "new.txt"
    told = "; the others do not occur in the training data\n"
    for text, out, err in (
        ("O\tw\\:runs\n\tp\\:DT\n", "O\tw\\:runs\tO\n\tp\\:DT\tB-NP\n", ""),
        ("O\tw\\:runs\tq\n", None, f"predict: 1 of 2 attributes known{told}"),
        ("O\truns\tp\n\n\tNN\ta\n", None, f"predict: 0 of 4 attributes known{told}"),
        (
            "the\ndog\n",
            None,
            "predict: no token has an attribute; this model takes lines of a label, which may be "
            "empty, and attributes after tabs\n",
        ),
    ):
        new.write_text(text)
        assert carry_out(["predict", str(chunker), str(new)]) == 0
        shown = capsys.readouterr()
        assert shown.err == err
        assert out in (None, shown.out)


def test_predict__says_how_a_colon_is_written(
    chunker: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "new.txt").write_text("\tp:DT\n")
    assert carry_out(["predict", str(chunker), str(tmp_path / "new.txt")]) == 1
    assert capsys.readouterr().err.endswith("; a colon in a name is written \\:, as in p\\:DT\n")


def test_predict__takes_patterns_packed_files_and_those_from_windows(
    chunker: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "new-1.txt").write_bytes(b"\xef\xbb\xbfO\tw\\:runs\r\n\tp\\:DT\r\n")
    (tmp_path / "new-2.txt.gz").write_bytes(gzip.compress(b"\tp\\:NN\n"))
    assert carry_out(["predict", str(chunker), f"{tmp_path}/new-*"]) == 0
    assert capsys.readouterr() == ("O\tw\\:runs\tO\n\tp\\:DT\tB-NP\n\n\tp\\:NN\tI-NP\n", "")
    (tmp_path / "new-2.txt.gz").write_bytes(gzip.compress(b"\tp\\:NN\n\tp:\n"))
    assert carry_out(["predict", str(chunker), f"{tmp_path}/new-*"]) == 1
    assert "/new-2.txt.gz: line 2: 'p:': expected" in capsys.readouterr().err
    assert carry_out(["predict", str(chunker), f"{tmp_path}/old-*"]) == 1
    assert capsys.readouterr().err == f"error: predict: no file matches {tmp_path}/old-*\n"


LABELLED = "B-NP\tp\\:DT\nI-NP\tp\\:NN\nO\tw\\:runs\n\nB-NP\tp\\:NN\nB-VP\tq\nB-NP\tp\\:DT\n"


def test_evaluate__measures_what_predict_says_as_sklearn_and_seqeval_do(
    chunker: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.txt").write_text(LABELLED)
    assert carry_out(["evaluate", str(chunker), str(tmp_path / "a.txt"), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    true = [[line.split("\t")[0] for line in part.splitlines()] for part in LABELLED.split("\n\n")]
    predicted = load_model(chunker).answer(LABELLED)
    ours = [predicted.named(i) for i in range(2)]
    wrong = [np.mean(np.array(a) != np.array(b)) for a, b in zip(true, ours, strict=True)]
    flat, guess = [*chain(*true)], [*chain(*ours)]
    assert 0 < sum(wrong) < 2
    assert said["loss"] == pytest.approx(np.mean(wrong))
    assert said["metrics"]["token_error"] == pytest.approx(1 - accuracy_score(flat, guess))
    assert said["metrics"]["chunk_f1"] == pytest.approx(f1_score(true, ours))
    names = [row["label"] for row in said["labels"]]
    theirs = precision_recall_fscore_support(flat, guess, labels=names, zero_division=0)
    for row, *numbers in zip(said["labels"], *theirs, strict=True):
        assert [row[name] or 0 for name in ("precision", "recall", "f1", "support")] == pytest.approx(numbers)
    assert names == ["B-NP", "I-NP", "O", "B-VP"]
    by_kind = classification_report(true, ours, output_dict=True, zero_division=0)
    for row in said["chunks"]:
        theirs = by_kind[row["label"]]
        assert [row["precision"] or 0, row["recall"], row["f1"], row["support"]] == pytest.approx([*theirs.values()])
    assert [row["label"] for row in said["chunks"]] == ["NP", "VP"]
    assert said["known"] == {"known": 5, "total": 6}
    assert sum(row["count"] for row in said["confusions"]) == sum(a != b for a, b in zip(flat, guess, strict=True))
    assert {row["truth"]: row["share"] for row in said["confusions"]}["B-VP"] == 1.0


def test_evaluate__shows_labels_and_confusions_and_wants_labels(
    chunker: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.txt").write_text(LABELLED)
    assert carry_out(["evaluate", str(chunker), str(tmp_path / "a.txt")]) == 0
    first, *lines = capsys.readouterr().out.splitlines()
    assert first.startswith("ChainSVM, λ 0.01: 2 sequences, 6 tokens · 5 of 6 attributes known")
    assert [line.split()[0] for line in lines if line] == [
        *("loss", "token", "sequence", "chunk", "chunk", "chunk"),
        *("label", "B-NP", "I-NP", "O", "B-VP"),
        *("chunk", "NP", "VP"),
        *("true", "B-NP", "B-VP"),
    ]
    (tmp_path / "a.txt").write_text(LABELLED.replace("O\t", "\t"))
    assert carry_out(["evaluate", str(chunker), str(tmp_path / "a.txt")]) == 1
    assert "a.txt: line 3: no label before the first tab" in capsys.readouterr().err


def test_confusions__are_the_most_frequent_errors() -> None:
    matrix = np.array([[5.0, 1.0, 3.0], [0.0, 2.0, 0.0], [3.0, 0.0, 1.0]])
    rows = [(row["truth"], row["predicted"], row["count"], row["share"]) for row in confusions(["a", "b", "c"], matrix)]
    assert rows == [("a", "c", 3, 3 / 9), ("c", "a", 3, 0.75), ("a", "b", 1, 1 / 9)]
    assert len(confusions(["a", "b", "c"], matrix, most=2)) == 2


def test_weights__are_shown_by_name(chunker: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frame = load_model(chunker).named_weights
    assert carry_out(["explain", str(chunker), "-k", "2", "--label", "O"]) == 0
    head, first, *rest = capsys.readouterr().out.splitlines()
    most = frame[frame.label == "O"].nlargest(1, "weight").iloc[0]
    assert (head.split(), first.split()) == ([*frame], [most.attribute, "O", f"{most.weight:.6f}"])
    assert len(rest) <= 3
    assert carry_out(["explain", str(chunker), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    expected = [strongest(frame[frame.label == label], "weight", 10) for label in ("B-NP", "I-NP", "O")]
    assert said == pd.concat(expected).to_dict("records")
    assert carry_out(["explain", str(chunker), "--label", "Q"]) == 1
    assert "there is no 'Q'; known: B-NP, I-NP, O" in capsys.readouterr().err
