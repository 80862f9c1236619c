"""The 82 features of a link between two words, in the manner of Taskar, Lacoste-Julien and Klein (HLT-EMNLP 2005).

`NAMES` lists them in order. C(e,f), C(e), C(f) count the sentence pairs with the words, of N in all; t(f|e), t(e|f) and
the two posteriors of a link are those of `lexicon`; t is the root of t(f|e) t(e|f), "agreement" that of the posteriors'
product. j/J and k/K are the places of the words in their sentences, at the middle of each word. Words are compared in
lower case and without accents. All values are in [-1, 1].

* Association (27, `ASSOCIATION`): how often the words occur together, also compared with the rivals in their row and column.
* Neighbours (13): association of the words around. Those outside of the sentences count as 0.
* Position (17). Spelling (17). Frequency (7). Bias (1).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from gapwise.stages.datasets.alignment.lexicon import FREQUENT, Lexicon, posteriors
from gapwise.stages.datasets.alignment.sentences import normal

ASSOCIATION_NAMES = (
    "dice", "dice squared", "root of dice", "C(e,f)/C(e)", "C(e,f)/C(f)", "pointwise information", "phi squared",
    "t(f|e)", "t(e|f)", "t", "posterior from e", "posterior from f", "agreement",
    "dice / best of row", "dice / best of column", "dice is best of row", "dice is best of column", "dice is best of both",
    "dice - best rival in row", "dice - best rival in column",
    "agreement is best of row", "agreement is best of column", "agreement is best of both",
    "agreement - best rival in row", "agreement - best rival in column", "log of dice", "log of t",
)  # fmt: skip
NEIGHBOUR_NAMES = (
    "dice before both", "dice after both", "dice after e, before f", "dice before e, after f",
    "dice after f", "dice before f", "dice after e", "dice before e", "agreement before both", "agreement after both",
    "dice x dice before and after both", "agreement x agreement before and after both", "dice two before or after both",
)  # fmt: skip
POSITION_NAMES = (
    "distance |j/J - k/K|", "distance squared", "root of distance", "distance <= 0.05", "distance <= 0.1", "distance > 0.2",
    "distance > 0.4", "j = k", "|j - k| = 1", "|j - k| up to 10", "both first", "both last", "only one first",
    "only one last", "dice x distance", "agreement x distance", "difference of lengths of sentences",
)  # fmt: skip
SPELLING_NAMES = (
    "same word", "same as written", "share of common prefix", "prefix of 3", "prefix of 5", "suffix of 3",
    "common subsequence", "cognates", "both with digits", "only one with digits", "same with digits", "both punctuation",
    "same punctuation", "only one punctuation", "both capitalised", "only one capitalised", "difference of lengths of words",
)  # fmt: skip
FREQUENCY_NAMES = (
    "both frequent", "only one frequent", "difference of log counts", "both rare", "e unknown", "f unknown",
    "least log count",
)  # fmt: skip
NAMES = (*ASSOCIATION_NAMES, *NEIGHBOUR_NAMES, *POSITION_NAMES, *SPELLING_NAMES, *FREQUENCY_NAMES, "bias")
ASSOCIATION = range(len(ASSOCIATION_NAMES))
"""Features that grow with the association of the words."""
RARE = 5
"""Words in at most this many sentences are rare."""
COGNATES = 0.58
"""Least common subsequence, as a share of the longer word, of words that are taken for cognates (Melamed 1999)."""
CLASSES = 4
"""Classes of words by frequency (`word_classes`)."""


def link_features(e: Sequence[str], f: Sequence[str], lexicon: Lexicon) -> np.ndarray:
    """float32 (J, K, 82): features of all links between the words of two sentences, as they are written."""
    e_plain, f_plain = [normal(word) for word in e], [normal(word) for word in f]
    e_id, f_id = lexicon.ids(e_plain, "english"), lexicon.ids(f_plain, "french")
    statistics = lexicon.of(e_id, f_id)
    e_count, f_count = counts(e_id, lexicon.english_counts)[:, None], counts(f_id, lexicon.french_counts)[None]
    N = max(lexicon.sentences, 2)
    dice = 2 * statistics[:, :, 0] / np.maximum(e_count + f_count, 1)
    forward, back = posteriors(lexicon, e_id, f_id, statistics)
    agreement = np.sqrt(forward * back)
    columns = [
        *_association(statistics, e_count, f_count, N, dice, forward, back, agreement),
        *_neighbours(dice, agreement),
        *_position(dice, agreement),
        *_spelling(e, f, e_plain, f_plain),
        *_frequency(e_count, f_count, lexicon, N),
        np.ones(dice.shape),
    ]
    return np.stack(np.broadcast_arrays(*columns), axis=2).astype(np.float32)


def counts(ids: np.ndarray, table: np.ndarray) -> np.ndarray:
    """float64: sentences with each word, 0 for unknown ones (-1)."""
    return np.where(ids >= 0, table[np.maximum(ids, 0)] if table.size else 0, 0).astype(float)


def word_classes(ids: np.ndarray, table: np.ndarray) -> np.ndarray:
    """uint8: 0 unknown, 1 rare, 2 neither, 3 frequent."""
    count = counts(ids, table)
    return (count > 0).astype(np.uint8) + (count > RARE) + (count >= frequent(table))


def frequent(table: np.ndarray) -> int:
    """Sentences with the word of rank FREQUENT; more than RARE."""
    place = max(table.size - FREQUENT, 0)
    return max(int(np.partition(table, place)[place]) if table.size else 0, RARE + 1)


def _association(
    statistics: np.ndarray, e_count: np.ndarray, f_count: np.ndarray, N: int, dice: np.ndarray,
    forward: np.ndarray, back: np.ndarray, agreement: np.ndarray,
) -> list[np.ndarray]:  # fmt: skip
    both, t_f, t_e = (statistics[:, :, k] for k in range(3))
    e, f = np.maximum(e_count, 1), np.maximum(f_count, 1)
    some = np.maximum(both, 1)
    information = np.where(both > 0, np.log(some * N / (e * f)) / np.maximum(np.log(N / some), 1e-9), 0.0)
    spread = e * f * np.maximum(N - e, 1) * np.maximum(N - f, 1)
    phi2 = np.where(both > 0, (both * N - e * f) ** 2.0 / spread, 0.0)
    t = np.sqrt(t_f * t_e)
    result = [dice, dice**2, np.sqrt(dice), both / e, both / f, np.clip(information, 0, 1), np.clip(phi2, 0, 1)]
    result += [t_f, t_e, t, forward, back, agreement]
    result += [dice / np.maximum(dice.max(axis=axis, keepdims=True), 1e-9) for axis in (1, 0)]
    result += [*_best(dice), *_margins(dice), *_best(agreement), *_margins(agreement)]
    return [*result, 1 + np.log10(np.maximum(dice, 1e-4)) / 4, 1 + np.log10(np.maximum(t, 1e-4)) / 4]


def _best(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Whether an entry is the largest, and not 0, of its row, of its column, of both."""
    row, column = ((x == x.max(axis=axis, keepdims=True)) & (x > 0) for axis in (1, 0))
    return row, column, row & column


def _margins(x: np.ndarray) -> list[np.ndarray]:
    """Each entry minus the largest other entry of its row, and of its column; minus 0 where there is no other."""
    margins = []
    for axis in (1, 0):
        ranked = np.sort(x, axis=axis)
        top = np.take(ranked, [-1], axis=axis)
        next_ = np.take(ranked, [-2], axis=axis) if x.shape[axis] > 1 else np.zeros_like(top)
        margins.append(x - np.where(x == top, next_, top))
    return margins


def _shifted(x: np.ndarray, down: int, right: int) -> np.ndarray:
    """x[j + down, k + right], 0 outside."""
    J, K = x.shape
    shifted = np.zeros_like(x)
    rows, columns = np.arange(J) + down, np.arange(K) + right
    r, c = (rows >= 0) & (rows < J), (columns >= 0) & (columns < K)
    shifted[np.ix_(r, c)] = x[np.ix_(rows[r], columns[c])]
    return shifted


def _neighbours(dice: np.ndarray, agreement: np.ndarray) -> list[np.ndarray]:
    around = [_shifted(dice, j, k) for j, k in ((-1, -1), (1, 1), (1, -1), (-1, 1), (0, 1), (0, -1), (1, 0), (-1, 0))]
    agree = [_shifted(agreement, j, j) for j in (-1, 1)]
    own = dice * (around[0] + around[1]) / 2, agreement * (agree[0] + agree[1]) / 2
    return [*around, *agree, *own, np.maximum(_shifted(dice, -2, -2), _shifted(dice, 2, 2))]


def _position(dice: np.ndarray, agreement: np.ndarray) -> list[np.ndarray]:
    J, K = dice.shape
    j, k = np.arange(J)[:, None], np.arange(K)[None]
    far = np.abs((j + 0.5) / J - (k + 0.5) / K)
    first, last = (j == 0, k == 0), (j == J - 1, k == K - 1)
    steps = np.abs(j - k)
    return [
        far, far**2, np.sqrt(far), far <= 0.05, far <= 0.1, far > 0.2, far > 0.4, steps == 0, steps == 1,
        np.minimum(steps, 10) / 10, first[0] & first[1], last[0] & last[1], first[0] ^ first[1], last[0] ^ last[1],
        dice * far, agreement * far, np.full(dice.shape, abs(J - K) / (J + K)),
    ]  # fmt: skip


def _spelling(e: Sequence[str], f: Sequence[str], e_plain: Sequence[str], f_plain: Sequence[str]) -> list[np.ndarray]:
    spelled = np.array([[compared(a, b) for b in f_plain] for a in e_plain])
    same = np.array([[a == b for b in f] for a in e])
    up = [np.array([k > 0 and word[:1].isupper() for k, word in enumerate(words)]) for words in (e, f)]
    capital = up[0][:, None], up[1][None]
    before, after = [spelled[:, :, k] for k in range(13)], spelled[:, :, 13]
    return [before[0], same, *before[1:], capital[0] & capital[1], capital[0] ^ capital[1], after]


@functools.lru_cache(maxsize=1 << 18)
def compared(a: str, b: str) -> tuple[float, ...]:
    """The features of spelling that need neither case nor accents."""
    longest = max(len(a), len(b))
    prefix, suffix = _common(a, b), _common(a[::-1], b[::-1])
    digits, points = zip(_signs(a), _signs(b), strict=True)
    letters = not (any(digits) or any(points))
    common = _subsequence(a, b) / longest if letters and min(len(a), len(b)) >= 4 else 0.0
    return (
        float(a == b), prefix / longest, float(letters and prefix >= 3), float(letters and prefix >= 5),
        float(letters and suffix >= 3), common, float(common >= COGNATES), float(all(digits)),
        float(digits[0] != digits[1]), float(all(digits) and a == b), float(all(points)), float(all(points) and a == b),
        float(points[0] != points[1]), abs(len(a) - len(b)) / (len(a) + len(b)),
    )  # fmt: skip


@functools.lru_cache(maxsize=1 << 16)
def _signs(word: str) -> tuple[bool, bool]:
    """Whether there is a digit, and whether there is neither a digit nor a letter."""
    return any(map(str.isdigit, word)), not any(map(str.isalnum, word))


def _common(a: str, b: str) -> int:
    """Letters that both begin with."""
    count = 0
    if a[:1] != b[:1]:  # most words
        return count
    for x, y in zip(a, b, strict=False):
        if x != y:
            break
        count += 1
    return count


def _subsequence(a: str, b: str) -> int:
    """Length of the longest common subsequence.

    Bit k of `falls` is 0 where the row of the usual table rises at letter k of b (Hyyrö 2004): a row in a few operations.
    """
    places: dict[str, int] = {}
    for k, letter in enumerate(b):
        places[letter] = places.get(letter, 0) | 1 << k
    every = (1 << len(b)) - 1
    falls = every
    for letter in a:
        here = falls & places.get(letter, 0)
        falls = (falls + here | falls - here) & every
    return len(b) - falls.bit_count()


def _frequency(e_count: np.ndarray, f_count: np.ndarray, lexicon: Lexicon, N: int) -> list[np.ndarray]:
    often = e_count >= frequent(lexicon.english_counts), f_count >= frequent(lexicon.french_counts)
    logs = np.log1p(e_count) / np.log1p(N), np.log1p(f_count) / np.log1p(N)
    return [
        often[0] & often[1], often[0] ^ often[1], np.abs(logs[0] - logs[1]), (e_count <= RARE) & (f_count <= RARE),
        e_count == 0, f_count == 0, np.minimum(*logs),
    ]  # fmt: skip
