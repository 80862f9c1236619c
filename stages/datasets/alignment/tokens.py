"""Words of parallel text in one form: lower case, no accents, contractions undone as in the hand-aligned sentences.

French is tokenised there with `du` as "de le", `l'` as "le" and so on; hyphens are words. The parallel text is plain, has no
accents, and is brought to that form.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterable
from itertools import chain

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
