"""OCR letters of Kassel and Taskar: 6,877 handwritten words of binary 16 x 8 letters, in 10 folds (LJ13 6; O16 5.1).

Options: ``root``, the publisher's file ``letter.data``, gzipped or not, or a folder with it; ``size`` small (one fold
trains, the rest tests) or large (the other way round); ``fold`` (0). With ``validation: fold`` the rest is without
``validation_fold`` (the one after ``fold``): lambda is chosen on it. Every ink pixel is an attribute of its letter; with
128 pixels, 26 letters and the three biases, d = 26 (128 + 3) + 26^2 = 4,082.
"""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np
import numpy.typing as npt

from gapwise.records import Record
from gapwise.stages.datasets import UNREADABLE, DataError, MapBlocks, OptionError, Reader, Report, Sink
from gapwise.stages.datasets.common.files import one_of_files
from gapwise.stages.datasets.common.options import Values, between, one_of
from gapwise.stages.datasets.text.sequences import write_parts, write_specimen
from gapwise.stages.datasets.text.task import OPTIONS, Task
from gapwise.stages.datasets.text.vocabulary import Rows

PIXELS = 16 * 8
PIECE = 100_000
"""Lines in memory at a time."""
FOLDS = 10
LETTERS = [chr(ord("a") + k) for k in range(26)]
SPLITS = {"train": "small", "test": "large"}
"""The size for which a split is the chosen fold, and not the rest."""
FILES = ("letter.data.gz", "letter.data")
Fold = Annotated[int, between(0, FOLDS - 1)]


@dataclass(frozen=True)
class Words:
    """All words of a file: pixels (letters, 128) 0/1, letter (letters,) 0..25, start (words + 1,), fold (words,)."""

    pixels: np.ndarray
    letter: np.ndarray
    start: np.ndarray
    fold: np.ndarray


@dataclass(frozen=True)
class Ocr(Reader):
    """The OCR letters."""

    root: Annotated[Path, Values("the folder that holds letter.data (or .gz)")]
    task: Task
    size: Annotated[str, one_of(*SPLITS.values())] = "small"
    fold: Fold = 0
    validation: Annotated[str, one_of("fold")] | None = None
    validation_fold: Fold | None = None
    structure = "chain"
    where = ("root", *OPTIONS)
    validations: ClassVar = {"fold": ("validation_fold",)}
    picture = (16, 8)

    def __post_init__(self) -> None:
        if self.held_out == self.fold:
            raise OptionError(f"dataset.validation_fold: expected another fold than dataset.fold={self.fold}")
        self.files()

    @property
    def held_out(self) -> int | None:
        """The fold to validate on; None: there is no validation split."""
        following = (self.fold + 1) % FOLDS if self.validation_fold is None else self.validation_fold
        return None if self.validation is None else following

    @property
    def file(self) -> Path:
        """The file with the letters."""
        return self.root if self.root.is_file() else one_of_files(self.root, *FILES)

    def files(self) -> dict[str, Path]:
        return {"letters": self.file, **self.task.files()}

    def source(self) -> Record:
        return self.task.source()

    def featurize(self, sink: Sink, map_blocks: MapBlocks, report: Report) -> Record:
        from gapwise.stages.problems.chain.features import BIASES
        from gapwise.stages.problems.chain.metrics import encode_names

        words = read_letter_data(self.file)
        folds = np.unique(words.fold)
        for name, fold in (("fold", self.fold), ("validation_fold", self.held_out)):
            if fold is not None and fold not in folds:
                existing = ", ".join(str(fold) for fold in folds)
                raise DataError(f"{self.file}: dataset.{name}={fold} does not exist; there are folds {existing}")
        chosen = words.fold == self.fold
        held_out = words.fold == (-1 if self.held_out is None else self.held_out)
        if (chosen | held_out).all():
            existing = " and ".join(str(fold) for fold in folds)
            raise DataError(f"{self.file}: all words are in fold {existing}; nothing is left for the other split")
        sink.put("", "label_names", encode_names(LETTERS))
        attributes = PIXELS + len(BIASES)
        count = {}
        masks = {split: (chosen == (size == self.size)) & ~held_out for split, size in SPLITS.items()}
        if self.held_out is not None:
            masks["validation"] = held_out
        for split, mask in masks.items():
            letters = np.repeat(mask, np.diff(words.start))
            start = np.concatenate([[0], np.cumsum(np.diff(words.start)[mask])])
            of_split = np.flatnonzero(letters)

            def rows(first: int, last: int, start: np.ndarray = start, letters: np.ndarray = of_split) -> Rows:
                return _ink(words.pixels[letters[start[first] : start[last]]])

            def where(word: int, letter: int, split: str = split) -> str:
                return f"{self.file}: {split} word {word}, letter {letter}"

            self.task.check(LETTERS, len(LETTERS), words.letter[letters], start, where)
            write_parts(sink, report, split, start, words.letter[letters], rows, attributes)
            count[split] = int(mask.sum())
        return {
            "classes": len(LETTERS),
            "attributes": attributes,
            "d": attributes * len(LETTERS) + len(LETTERS) ** 2,
            **{f"n_{split}": words for split, words in count.items()},
            "label_names": LETTERS,
            **self.task.write(sink, LETTERS, words.letter[np.repeat(masks["train"], np.diff(words.start))]),
        }

    def specimen(self, sink: Sink) -> Record:
        return write_specimen(sink, len(LETTERS), PIXELS)


def _ink(pixels: np.ndarray) -> Rows:
    """Attributes of letters: their pixels > 0."""
    ink = pixels > 0
    return Rows(ink.sum(axis=1), np.nonzero(ink)[1])


def read_letter_data(file: Path) -> Words:
    """Words of the publisher's tab-separated file, gzipped or not; DataError names the line.

    Columns: id, letter, next id (-1 at the end of a word), word id, position from 1, fold, 128 pixels.
    """
    pieces: list[tuple[np.ndarray, ...]] = []
    try:
        with gzip.open(file) if file.suffix == ".gz" else file.open("rb") as stream:
            while lines := [*islice(stream, PIECE)]:
                pieces.append(_piece(file, lines, PIECE * len(pieces)))
    except UNREADABLE as error:
        raise error if isinstance(error, DataError) else DataError(f"{file}: cannot be read: {error}") from error
    if not pieces:
        raise DataError(f"{file}: the file is empty")
    pixels, letter, places = (np.concatenate(arrays) for arrays in zip(*pieces, strict=True))
    word, position, fold = places.T
    start = np.flatnonzero(np.concatenate([[True], word[1:] != word[:-1]]))
    lengths = np.diff(np.append(start, word.size))
    _refuse(
        file, position != np.arange(word.size) - np.repeat(start, lengths) + 1, "is not the next letter of its word"
    )
    _refuse(file, fold != np.repeat(fold[start], lengths), "changes its fold")
    return Words(pixels, letter, np.append(start, word.size).astype(np.int64), fold[start])


def _piece(file: Path, lines: list[bytes], before: int) -> tuple[np.ndarray, ...]:
    """Pixels, letters, and word, position and fold (letters, 3), of lines with so many `before` them."""
    parts = [line.rstrip(b"\r\n\t").split(b"\t", 6) for line in lines]
    width = 2 * PIXELS - 1
    misfit = [len(part) != 7 or len(part[6]) != width for part in parts]
    if any(misfit):
        ragged = [len(part) != 7 or part[6].count(b"\t") != PIXELS - 1 for part in parts]
        _refuse(file, ragged, f"has not {6 + PIXELS} tab-separated columns", before)
        _refuse(file, misfit, "has a pixel that is neither 0 nor 1", before)
    text = np.frombuffer(b"".join(part[6] for part in parts), dtype=np.uint8).reshape(-1, width)
    pixels = text[:, ::2] - ord("0")
    _refuse(
        file,
        (pixels > 1).any(axis=1) | (text[:, 1::2] != ord("\t")).any(axis=1),
        "has a pixel that is neither 0 nor 1",
        before,
    )
    wrong = [len(part[1]) != 1 or not b"a" <= part[1] <= b"z" for part in parts]
    _refuse(file, wrong, "has a letter outside a-z", before)
    letter = np.frombuffer(b"".join(part[1] for part in parts), np.uint8) - ord("a")
    places = [part[column] for column in (3, 4, 5) for part in parts]
    wrong = [not place.isdigit() for place in places]
    _refuse(
        file, np.reshape(wrong, (3, -1)).any(axis=0), "has a word id, position or fold that is no whole number", before
    )
    return pixels, letter, np.array([*map(int, places)]).reshape(3, -1).T


def _refuse(file: Path, bad: npt.ArrayLike, fault: str, before: int = 0) -> None:
    """DataError at the first True of `bad`, whose lines have so many `before` them."""
    if np.any(bad):
        raise DataError(f"{file}: line {int(np.argmax(bad)) + before + 1} {fault}")
