"""Sentences of two languages: files as the HLT-NAACL 2003 task writes them, and words of plain text in the same form.

Words stand between blanks; a line "sentence e f S" is a link. Sentences and words are numbered from 1; S means sure, P
possible. The hand-aligned French is tokenised with `du` as "de le", `l'` as "le" and so on; hyphens are words. The parallel
text is plain, has no accents, and is brought to that form: lower case, no accents, contractions undone.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterable
from itertools import chain
from pathlib import Path

import numpy as np

from gapwise.records import Facts
from gapwise.stages.datasets import DataError, unpacked
from gapwise.stages.datasets.common.files import lines_of, read_lines
from gapwise.stages.datasets.text.tables import words_of

Pair = tuple[list[str], list[str]]
"""Words of a sentence in both languages."""
Links = dict[tuple[int, int], str]
"""S or P of each link (j, k), from 0."""
ABBREVIATIONS = ("mr", "mrs", "ms", "dr", "hon", "m", "st", "no", "messrs", "p.m", "a.m")
"""Written with a full stop that is part of the word."""
_SHORT = "|".join(re.escape(word) for word in sorted(ABBREVIATIONS, key=len, reverse=True))
_BEFORE, _AFTER = rf"(?:{_SHORT})\.(?![a-z])|\d+(?:[.,]\d+)*", r"[a-z0-9]+|\.\.\.|\S"
_ENGLISH = re.compile(rf"{_BEFORE}|'s\b|{_AFTER}")
_FRENCH = re.compile(rf"{_BEFORE}|[a-z0-9]+'(?=[a-z])|{_AFTER}")
ELISIONS = {
    f"{word[:-1]}'": word
    for word in ("le", "de", "que", "je", "ne", "se", "me", "te", "ce", "lorsque", "puisque", "jusque", "quoique")
}
CONTRACTIONS = {"du": ("de", "le"), "des": ("de", "les"), "au": ("a", "le"), "aux": ("a", "les")}
NEGATIONS = re.compile(r"\b(?:(can)'t|(wo)n't|([a-z]+)n't)\b")


def read_links(file: Path, pairs: list[Pair]) -> list[Links]:
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


def read_pairs(english: Path, french: Path) -> list[Pair]:
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


def word_pair(arrays: Facts, i: int) -> Pair:
    """Words of sentence pair i of a split of a feature store."""
    start, stop = np.asarray(arrays["text_ptr"][i : i + 2]).tolist()
    e, f = bytes(np.asarray(arrays["text"][start:stop])).decode().split("\n")
    return e.split(" "), f.split(" ")


@functools.lru_cache(maxsize=1 << 16)
def normal(word: str) -> str:
    """A word in lower case and without accents; the word itself if that leaves nothing."""
    lower = word.lower()
    if lower.isascii():  # nearly every line of the parallel text
        return lower
    plain = unicodedata.normalize("NFKD", lower.replace("œ", "oe").replace("æ", "ae"))
    return "".join(letter for letter in plain if not unicodedata.combining(letter)) or word


def english(words: Iterable[str]) -> list[str]:
    """Words of plain English text that was split at blanks, normalised."""
    return [*chain.from_iterable(map(_english, words))]


def french(words: Iterable[str]) -> list[str]:
    """Words of plain French text that was split at blanks, normalised, elisions and contractions undone."""
    return [*chain.from_iterable(map(_french, words))]


# No pattern reaches over a blank, so what stands between two is looked up: a text has few different words.
@functools.lru_cache(maxsize=1 << 18)
def _english(word: str) -> list[str]:
    return _ENGLISH.findall(NEGATIONS.sub(lambda m: (m[1] or (m[2] and "will") or m[3]) + " not", _plain(word)))


@functools.lru_cache(maxsize=1 << 18)
def _french(word: str) -> list[str]:
    words: list[str] = []
    for token in _FRENCH.findall(_plain(word)):
        words += CONTRACTIONS.get(token) or (ELISIONS.get(token, token),)
    return words


def _plain(line: str) -> str:
    return normal(line.replace("’", "'").replace("`", "'"))
