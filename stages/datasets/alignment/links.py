"""Files of aligned sentences as the HLT-NAACL 2003 task writes them: words between blanks, a line "sentence e f S" a link.

Sentences and words are numbered from 1; S means sure, P possible.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from gapwise.records import Facts
from gapwise.stages.datasets import DataError, unpacked
from gapwise.stages.datasets.common.files import lines_of, read_lines
from gapwise.stages.datasets.text.tables import words_of

Links = dict[tuple[int, int], str]
"""S or P of each link (j, k), from 0."""


def read_links(file: Path, pairs: list[tuple[list[str], list[str]]]) -> list[Links]:
    """The links of each of these sentence pairs; DataError names the line. A link without a letter is sure."""
    links_of: list[Links] = [{} for _ in pairs]
    for number, line in enumerate(lines_of(unpacked(file).decode("utf-8", "replace")), 1):
        parts = words_of(line)
        if not parts:
            continue
        where = f"{file}: line {number}"
        positions = len(parts) >= 3 and all(part.isdecimal() for part in parts[:3])
        if not positions or parts[3:] not in ([], ["S"], ["P"]):
            raise DataError(f"{where}: expected sentence, English and French position, S or P; got {line!r}")
        sentence, j, k = (int(part) for part in parts[:3])
        if not 1 <= sentence <= len(pairs):
            raise DataError(f"{where}: sentence {sentence} does not exist; there are {len(pairs)}")
        e, f = pairs[sentence - 1]
        if not (1 <= j <= len(e) and 1 <= k <= len(f)):
            raise DataError(f"{where}: positions {j} and {k}, but sentence {sentence} has {len(e)} and {len(f)} words")
        links, letter = links_of[sentence - 1], parts[3] if parts[3:] else "S"
        links[j - 1, k - 1] = "S" if links.get((j - 1, k - 1)) == "S" else letter
    return links_of


def read_pairs(english: Path, french: Path) -> list[tuple[list[str], list[str]]]:
    """Sentences of two files of blank-separated words, line by line; DataError names the line without words."""
    lines = [read_lines(file) for file in (english, french)]
    if len(lines[0]) != len(lines[1]):
        count = f"{len(lines[0])} lines, but {french.name} has {len(lines[1])}"
        raise DataError(f"{english}: {count}; expected a line of each for a pair")
    pairs = [(words_of(a), words_of(b)) for a, b in zip(*lines, strict=True)]
    for number, pair in enumerate(pairs, 1):
        for file, words in zip((english, french), pair, strict=True):
            if not words:
                raise DataError(f"{file}: line {number}: no words")
    if not pairs:
        raise DataError(f"{english}: no sentences")
    return pairs


def encoded(words: Iterable[str]) -> np.ndarray:
    """Words as uint8: UTF-8, a line each."""
    return np.frombuffer("\n".join(words).encode(), np.uint8)


def decoded(array: np.ndarray) -> list[str]:
    """Inverse of `encoded`."""
    text = bytes(np.asarray(array)).decode()
    return text.split("\n") if text else []


def word_pair(arrays: Facts, i: int) -> tuple[list[str], list[str]]:
    """Words of sentence pair i of a split of a feature store."""
    start, stop = np.asarray(arrays["text_ptr"][i : i + 2]).tolist()
    e, f = decoded(arrays["text"][start:stop])
    return e.split(" "), f.split(" ")
