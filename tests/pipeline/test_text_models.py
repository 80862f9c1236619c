"""Commands on a model of a `ChainSVM` that was saved, with text."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from gapwise import ChainSVM
from gapwise.pipeline.cli import carry_out


@pytest.fixture(scope="module")
def chunker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of the attributes p:DT, p:NN, w:the, w:dog and w:runs, which has learnt the labels B-NP, I-NP and O."""
    X = [[{"w": "the", "p": "DT"}, {"w": "dog", "p": "NN"}], [{"w": "runs"}, {"w": "the", "p": "DT"}], [{"p": "NN"}]]
    folder = tmp_path_factory.mktemp("text") / "model"
    ChainSVM(lam=0.01, tolerance=0.05).fit(X, [["B-NP", "I-NP"], ["O", "B-NP"], ["B-NP"]]).save(folder)
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
    assert capsys.readouterr() == ("O\tw\\:runs\tO\n\tp\\:DT\tB-NP\n\n\tp\\:NN\tB-NP\n", "")
    (tmp_path / "new-2.txt.gz").write_bytes(gzip.compress(b"\tp\\:NN\n\tp:\n"))
    assert carry_out(["predict", str(chunker), f"{tmp_path}/new-*"]) == 1
    assert "/new-2.txt.gz: line 2: 'p:': expected" in capsys.readouterr().err
    assert carry_out(["predict", str(chunker), f"{tmp_path}/old-*"]) == 1
    assert capsys.readouterr().err == f"error: predict: no file matches {tmp_path}/old-*\n"
