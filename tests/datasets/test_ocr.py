"""OCR letters: words of the publisher's file, folds, errors with line numbers, sizes of the real data."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from memory_sink import problems

from gapwise.stages.datasets import DataError, OptionError, ocr, open_dataset
from gapwise.stages.datasets.ocr import read_letter_data


def words(seed: int = 0) -> dict[str, np.ndarray]:
    """Three words of 2, 1 and 3 letters in folds 0, 1, 1."""
    rng = np.random.default_rng(seed)
    return {
        "pixels": (rng.random((6, 128)) < 0.3).astype(np.uint8),
        "letter": np.array([0, 25, 3, 3, 1, 0], dtype=np.uint8),
        "word_start": np.array([0, 2, 3, 6], dtype=np.int32),
        "word_fold": np.array([0, 1, 1], dtype=np.uint8),
    }


def lines(data) -> list[str]:
    """The same in the publisher's format."""
    result = []
    for word, (a, b) in enumerate(zip(data["word_start"][:-1], data["word_start"][1:], strict=True)):
        for row in range(a, b):
            head = [row + 1, chr(97 + data["letter"][row]), row + 2 if row + 1 < b else -1, word + 1, row - a + 1,
                    data["word_fold"][word]]  # fmt: skip
            result.append("\t".join(str(x) for x in [*head, *data["pixels"][row]]) + "\t")
    return result


def write(tmp_path, text: list[str], name: str = "letter.data"):
    raw = ("\n".join(text) + "\n").encode()
    (tmp_path / name).write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
    return {"root": tmp_path}


@pytest.mark.parametrize("name", ["letter.data", "letter.data.gz"])
def test_ocr__words_are_those_of_the_file(tmp_path, monkeypatch, name):
    monkeypatch.setattr(ocr, "PIECE", 4)  # a word begins in one piece and ends in the next
    data = words()
    write(tmp_path, lines(data), name)
    read = read_letter_data(tmp_path / name)
    for got, expected in ((read.pixels, "pixels"), (read.letter, "letter"), (read.start, "word_start"),
                          (read.fold, "word_fold")):  # fmt: skip
        np.testing.assert_array_equal(got, data[expected])
    train, test, _sink, meta = problems(open_dataset("ocr", {"root": tmp_path}))
    assert (train.n, test.n, train.d, meta["d"]) == (1, 2, 4082, 4082)
    np.testing.assert_array_equal(train.truth, [0, 25])
    first = np.flatnonzero(data["pixels"][0])
    np.testing.assert_array_equal(train.tokens.ids[: first.size + 2], [*first, 128, 129])
    assert train.tokens.ids[-1] == 130


def test_ocr__size_and_fold_choose_the_split(tmp_path):
    root = write(tmp_path, lines(words()))
    assert problems(open_dataset("ocr", {**root, "size": "large"}))[0].n == 2
    assert problems(open_dataset("ocr", {**root, "size": "small", "fold": 1}))[0].n == 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: [*t[:3], t[3][:-2] + "2\t", *t[4:]], "line 4 has a pixel that is neither 0 nor 1"),
        (lambda t: [*t[:1], t[1].rsplit("\t", 2)[0], *t[2:]], "line 2 has not 134 tab-separated columns"),
        (lambda t: [*t[:5], ""], "line 6 has not 134 tab-separated columns"),
        (
            lambda t: [*t[:5], t[5].replace("\t3\t", "\tx\t")],
            "line 6 has a word id, position or fold that is no whole number",
        ),
        (lambda t: [t[0].replace("\ta\t", "\tA\t"), *t[1:]], "line 1 has a letter outside a-z"),
        (lambda t: t[:4] + t[5:], "line 5 is not the next letter of its word"),
        (lambda t: [t[0], t[1].replace("\t1\t2\t0\t", "\t1\t2\t1\t", 1), *t[2:]], "line 2 changes its fold"),
    ],
)
def test_ocr__bad_lines_are_named(tmp_path, change, message):
    root = write(tmp_path, change(lines(words())))
    with pytest.raises(DataError, match=rf"letter\.data: {message}"):
        problems(open_dataset("ocr", root))


def test_ocr__real_data_has_the_sizes_of_the_papers(shared_data):
    reader = open_dataset("ocr", {"root": shared_data / "ocr", "size": "small"})
    train, test, _, meta = problems(reader)
    assert (train.n, test.n, train.d, meta["classes"]) == (626, 6251, 4082, 26)
    assert (train.truth.size, test.truth.size) == (4617, 47535)


def test_ocr__a_validation_fold_is_on_neither_other_side(tmp_path):
    data = words() | {"word_fold": np.array([0, 1, 2], np.uint8)}
    write(tmp_path, lines(data))
    for size, sizes in (("small", (1, 1, 1)), ("large", (1, 1, 1))):
        options = {"root": tmp_path, "size": size, "validation": "fold"}
        train, test, sink, meta = problems(open_dataset("ocr", options))
        validation = sink.arrays("validation")["labels"]
        assert (meta["n_train"], meta["n_validation"], meta["n_test"]) == sizes
        np.testing.assert_array_equal(validation, [3])  # fold 1, the one after fold 0
        np.testing.assert_array_equal(train.truth, [0, 25] if size == "small" else [3, 1, 0])
        np.testing.assert_array_equal(test.truth, [3, 1, 0] if size == "small" else [0, 25])
    for fold, error, says in (
        (
            0,
            OptionError,
            r"dataset\.validation_fold: expected another fold than dataset\.fold=0",
        ),
        (10, OptionError, r"dataset\.validation_fold: expected a whole number from 0 to 9"),
        (7, DataError, r"dataset\.validation_fold=7 does not exist; there are folds 0, 1, 2"),
    ):
        with pytest.raises(error, match=says):
            problems(open_dataset("ocr", {"root": tmp_path, "validation": "fold", "validation_fold": fold}))
    write(tmp_path, lines(words()))
    with pytest.raises(DataError, match="all words are in fold 0 and 1; nothing is left for the other split"):
        problems(open_dataset("ocr", {"root": tmp_path, "validation": "fold"}))
