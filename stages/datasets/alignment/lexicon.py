"""What parallel text says of pairs of words: co-occurrence counts, and translation probabilities of IBM Model 1 and 2.

Model 1 (Brown, Della Pietra, Della Pietra and Mercer, Computational Linguistics 19, 1993) says that a sentence f comes
from e word by word: p(f_k) = sum_j a(j | k) t(f_k | e_j), with one j for null. There a is uniform. Model 2 has a table for
it, in place of which stands here the diagonal of Dyer, Chahuneau and Smith (NAACL-HLT 2013): a(j | k) is NULL for null and
otherwise proportional to exp(-TENSION |j/J - k/K|). Both directions are fitted by EM, MODEL_1 iterations of Model 1 and
then MODEL_2 of Model 2. A word that does not occur has no translation.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

import numpy as np
from numba import njit

from gapwise.stages.datasets.alignment.links import decoded, encoded
from gapwise.stages.problems.facts import Options
from gapwise.stages.problems.protocol import JIT

MODEL_1, MODEL_2 = 4, 3
NULL, TENSION = 0.08, 6.0
LEAST = 1e-3
"""Pairs whose Dice coefficient and translation probabilities are all below this are forgotten."""
FREQUENT = 50
"""Words up to this rank are frequent."""


@dataclass(frozen=True)
class Lexicon:
    """Statistics of word pairs of parallel text."""

    english: dict[str, int]
    french: dict[str, int]
    english_counts: np.ndarray
    """int32: sentences with each word"""
    french_counts: np.ndarray
    sentences: int
    keys: np.ndarray
    """int64, rising: English id * French words + French id of every pair that is kept"""
    pairs: np.ndarray
    """float32, (keys, 3): sentence pairs with both words, t(f | e), t(e | f)"""
    null: np.ndarray
    """float32, (French words,): t(f | null)"""
    null_back: np.ndarray
    """float32, (English words,): t(e | null)"""

    def ids(self, words: list[str], side: str) -> np.ndarray:
        """int64 (words,): ids, or -1 for unknown words; `side` is english or french."""
        known: dict[str, int] = getattr(self, side)
        return np.array([known.get(word, -1) for word in words], np.int64)

    def of(self, e: np.ndarray, f: np.ndarray) -> np.ndarray:
        """float64 (J, K, 3): `pairs` of all pairs of words of two sentences, 0 where a pair is not known."""
        keys = e[:, None] * len(self.french) + f[None]
        keys[(e < 0)[:, None] | (f < 0)[None]] = -1
        if not self.keys.size:
            return np.zeros((e.size, f.size, 3))
        entry = np.minimum(np.searchsorted(self.keys, keys.ravel()), self.keys.size - 1)
        values = self.pairs[entry].astype(np.float64) * (self.keys[entry] == keys.ravel())[:, None]
        return values.reshape(e.size, f.size, 3)

    def arrays(self) -> dict[str, np.ndarray]:
        """What a feature store keeps of it."""
        return {
            "english_words": encoded(self.english),
            "french_words": encoded(self.french),
            "english_counts": self.english_counts,
            "french_counts": self.french_counts,
            "pair_keys": self.keys,
            "pair_statistics": self.pairs,
            "null_french": self.null,
            "null_english": self.null_back,
        }

    @classmethod
    def restored(cls, arrays: Options, sentences: int) -> Lexicon:
        """Inverse of `arrays`."""
        words = [decoded(arrays[name]) for name in ("english_words", "french_words")]
        english, french = ({word: number for number, word in enumerate(side)} for side in words)
        names = "english_counts", "french_counts", "pair_keys", "pair_statistics", "null_french", "null_english"
        e_counts, f_counts, keys, pairs, null, null_back = (np.asarray(arrays[name]) for name in names)
        return cls(english, french, e_counts, f_counts, sentences, keys, pairs, null, null_back)


def learn(english: list[list[str]], french: list[list[str]]) -> Lexicon:
    """The lexicon of parallel sentences, which must not be empty."""
    e_words, e, e_ptr = _numbered(english)
    f_words, f, f_ptr = _numbered(french)
    keys = np.empty(int(np.sum(np.diff(e_ptr) * np.diff(f_ptr))), np.int64)
    new = np.empty(keys.size, np.uint8)
    e_counts, f_counts = np.zeros(len(e_words), np.int32), np.zeros(len(f_words), np.int32)
    _list_pairs(e, e_ptr, f, f_ptr, len(f_words), keys, new, e_counts, f_counts)
    known, pair = np.unique(keys, return_inverse=True)
    del keys
    pair = pair.astype(np.int32)
    both = np.bincount(pair, new, minlength=known.size)
    forward, null = _translations(pair, known // len(f_words), f, e_ptr, f_ptr, len(e_words), len(f_words), False)
    back, null_back = _translations(pair, known % len(f_words), e, e_ptr, f_ptr, len(f_words), len(e_words), True)
    dice = 2 * both / (e_counts[known // len(f_words)] + f_counts[known % len(f_words)])
    associated = np.maximum(np.maximum(dice, forward), back) >= LEAST
    pairs = np.stack([both, forward, back], axis=1)[associated].astype(np.float32)
    tables = null.astype(np.float32), null_back.astype(np.float32)
    return Lexicon(e_words, f_words, e_counts, f_counts, len(english), known[associated], pairs, *tables)


def _numbered(sentences: list[list[str]]) -> tuple[dict[str, int], np.ndarray, np.ndarray]:
    """Ids of words in order of first occurrence, for all sentences one after the other, and where each sentence begins."""
    known: dict[str, int] = {}
    ids = [known.setdefault(word, len(known)) for word in chain.from_iterable(sentences)]
    return known, np.array(ids, np.int64), np.cumsum([0, *map(len, sentences)])


@njit(cache=True, **JIT)
def _list_pairs(e, e_ptr, f, f_ptr, french_words, keys, new, e_counts, f_counts):
    """Keys of all pairs of words of each sentence pair; new is 1 where both words are there for the first time."""
    k_pair = 0
    e_last, f_last = np.full(e_counts.size, -1), np.full(f_counts.size, -1)
    for i in range(e_ptr.size - 1):
        fresh = np.zeros(f_ptr[i + 1] - f_ptr[i], np.uint8)
        for k in range(fresh.size):
            word = f[f_ptr[i] + k]
            if f_last[word] != i:
                f_last[word] = i
                f_counts[word] += 1
                fresh[k] = 1
        for a in range(e_ptr[i], e_ptr[i + 1]):
            first = e_last[e[a]] != i
            if first:
                e_last[e[a]] = i
                e_counts[e[a]] += 1
            for k in range(fresh.size):
                keys[k_pair] = e[a] * french_words + f[f_ptr[i] + k]
                new[k_pair] = fresh[k] if first else 0
                k_pair += 1


def _translations(
    pair: np.ndarray, source: np.ndarray, target: np.ndarray, e_ptr: np.ndarray, f_ptr: np.ndarray, sources: int,
    targets: int, backwards: bool,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """t(target | source) of all pairs and t(target | null), by EM; `source` is the source word of each pair."""
    t, null = np.full(source.size, 1.0 / targets), np.full(targets, 1.0 / targets)
    for step in range(MODEL_1 + MODEL_2):
        counts, null_counts = np.zeros(t.size), np.zeros(targets)
        tension = 0.0 if step < MODEL_1 else TENSION
        _expect(pair, target, e_ptr, f_ptr, backwards, t, null, tension, counts, null_counts)
        totals = np.bincount(source, counts, minlength=sources)
        t = counts / np.maximum(totals, np.finfo(float).tiny)[source]
        null = null_counts / max(null_counts.sum(), np.finfo(float).tiny)
    return t, null


@njit(cache=True, **JIT)
def _expect(pair, target, e_ptr, f_ptr, backwards, t, null, tension, counts, null_counts):
    """Adds expected counts of one pass over the text; backwards: English words come from French ones."""
    first_pair = 0
    longest = max(np.max(np.diff(e_ptr)), np.max(np.diff(f_ptr)))
    share, diagonal = np.empty(longest), np.empty(longest)
    for i in range(e_ptr.size - 1):
        J, K = e_ptr[i + 1] - e_ptr[i], f_ptr[i + 1] - f_ptr[i]
        n, m = (J, K) if backwards else (K, J)  # words that come, words that they come from
        first = e_ptr[i] if backwards else f_ptr[i]
        for q in range(n):
            norm = 0.0
            for s in range(m):
                diagonal[s] = np.exp(-tension * abs((s + 0.5) / m - (q + 0.5) / n)) if tension > 0.0 else 1.0
                norm += diagonal[s]
            total = NULL * null[target[first + q]]
            for s in range(m):
                cell = first_pair + (q * K + s if backwards else s * K + q)
                share[s] = (1.0 - NULL) * diagonal[s] / norm * t[pair[cell]]
                total += share[s]
            if total > 0.0:
                null_counts[target[first + q]] += NULL * null[target[first + q]] / total
                for s in range(m):
                    counts[pair[first_pair + (q * K + s if backwards else s * K + q)]] += share[s] / total
        first_pair += J * K


def posteriors(lexicon: Lexicon, e: np.ndarray, f: np.ndarray, statistics: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Model 2's probabilities that f_k comes from e_j, and that e_j comes from f_k: each (J, K).

    e, f are ids (-1: unknown), statistics those of `Lexicon.of`.
    """
    J, K = e.size, f.size
    distance = np.abs((np.arange(J)[:, None] + 0.5) / J - (np.arange(K)[None] + 0.5) / K)
    diagonal = np.exp(-TENSION * distance)
    probabilities = []
    for axis, ids, null, column in ((0, f, lexicon.null, 1), (1, e, lexicon.null_back, 2)):
        nulls = NULL * np.where(ids >= 0, null[np.maximum(ids, 0)] if null.size else 0.0, 0.0)
        weight = (1.0 - NULL) * diagonal / diagonal.sum(axis=axis, keepdims=True) * statistics[:, :, column]
        total = weight.sum(axis=axis, keepdims=True) + np.expand_dims(nulls, axis)
        probabilities.append(np.divide(weight, total, out=np.zeros_like(weight), where=total > 0))
    return probabilities[0], probabilities[1]


def both_best(forward: np.ndarray, back: np.ndarray) -> np.ndarray:
    """The intersection of both directions: True (J, K) where each word is the other's best, and better than null."""
    here = np.zeros(forward.shape, bool)
    j, k = forward.argmax(axis=0), back.argmax(axis=1)
    for column, row in enumerate(j):
        others = forward[:, column].sum()
        if forward[row, column] > 1.0 - others and k[row] == column and back[row, column] > 1.0 - back[row].sum():
            here[row, column] = True
    return here
