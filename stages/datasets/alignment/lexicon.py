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


def learn(english: list[list[str]], french: list[list[str]]) -> Lexicon:
    """The lexicon of parallel sentences, which must not be empty."""
    e_words, e, e_ptr = _numbered(english)
    f_words, f, f_ptr = _numbered(french)
    E, F = len(e_words), len(f_words)
    e_new, f_new = _new(e, e_ptr, E), _new(f, f_ptr, F)
    e_counts, f_counts = (np.bincount(ids[new], minlength=size).astype(np.int32)
                          for ids, new, size in ((e, e_new, E), (f, f_new, F)))  # fmt: skip
    cells = np.append(0, np.cumsum(np.diff(e_ptr) * np.diff(f_ptr)))
    keys, both, pair = np.empty(cells[-1], np.int64), np.empty(cells[-1]), np.empty(cells[-1], np.int32)
    sentence = np.repeat(np.arange(len(english)), np.diff(e_ptr))
    by_word = np.argsort(e, kind="stable")
    met = _number_pairs(by_word, e, e_ptr, f, f_ptr, sentence, cells, F, e_new, f_new, keys, both, pair)
    order = np.argsort(keys[:met])  # of equal English words, by the French one
    known, both, rank = keys[:met][order], both[:met][order], np.empty(met, np.int32)
    del keys
    rank[order] = np.arange(met, dtype=np.int32)
    pair = rank[pair]
    t, null, null_back = _translations(pair, known // F, known % F, (e, e_ptr, E), (f, f_ptr, F))
    dice = 2 * both / (e_counts[known // F] + f_counts[known % F])
    associated = np.maximum(np.maximum(dice, t[:, 0]), t[:, 1]) >= LEAST
    pairs = np.concatenate([both[:, None], t], axis=1)[associated].astype(np.float32)
    tables = null.astype(np.float32), null_back.astype(np.float32)
    return Lexicon(e_words, f_words, e_counts, f_counts, len(english), known[associated], pairs, *tables)


class _Ids(dict[str, int]):
    """Ids of words in order of first use."""

    def __missing__(self, word: str) -> int:
        self[word] = number = len(self)
        return number


def _numbered(sentences: list[list[str]]) -> tuple[dict[str, int], np.ndarray, np.ndarray]:
    """Ids of words in order of first occurrence, for all sentences one after the other, and where each sentence begins."""
    known, start = _Ids(), np.cumsum([0, *map(len, sentences)])
    ids = np.fromiter(map(known.__getitem__, chain.from_iterable(sentences)), np.int64, int(start[-1]))
    return dict(known), ids, start


@njit(cache=True, **JIT)
def _new(ids, ptr, words):
    """Whether each word is there for the first time in its sentence."""
    last, new = np.full(words, -1), np.empty(ids.size, np.bool_)
    for i in range(ptr.size - 1):
        for t in range(ptr[i], ptr[i + 1]):
            new[t] = last[ids[t]] != i
            last[ids[t]] = i
    return new


@njit(cache=True, **JIT)
def _number_pairs(by_word, e, e_ptr, f, f_ptr, sentence, cells, french_words, e_new, f_new, keys, both, pair):
    """Number different pairs of words, those of one English word after the other; returns how many there are.

    `pair` gets the number of each cell of each sentence pair, `keys` the words of each number, and `both` how many sentence
    pairs have both. `by_word`: English tokens in the order of their words.
    """
    met, word = 0, -1
    owner, number = np.full(french_words, -1), np.empty(french_words, np.int32)
    for token in by_word:
        word, i = e[token], sentence[token]
        cell = cells[i] + (token - e_ptr[i]) * (f_ptr[i + 1] - f_ptr[i])
        for k in range(f_ptr[i], f_ptr[i + 1]):
            other = f[k]
            if owner[other] != word:
                owner[other] = word
                number[other] = met
                keys[met], both[met] = word * french_words + other, 0.0
                met += 1
            pair[cell] = number[other]
            both[number[other]] += e_new[token] and f_new[k]
            cell += 1
    return met


def _translations(
    pair: np.ndarray, e_of: np.ndarray, f_of: np.ndarray, english: tuple[np.ndarray, np.ndarray, int],
    french: tuple[np.ndarray, np.ndarray, int],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """t(f | e) and t(e | f) of all pairs (pairs, 2), t(f | null) and t(e | null), by EM; `e_of`, `f_of`: words of each pair.

    Both directions go through the text together: what they know of a pair is one place of memory.
    """
    (e, e_ptr, E), (f, f_ptr, F) = english, french
    t = np.empty((e_of.size, 2))
    t[:, 0], t[:, 1] = 1.0 / F, 1.0 / E
    null, null_back = np.full(F, 1.0 / F), np.full(E, 1.0 / E)
    tiny = np.finfo(float).tiny
    for tension, steps in ((0.0, MODEL_1), (TENSION, MODEL_2)):
        offset, shares = _shares(e_ptr, f_ptr, tension)
        for _ in range(steps):
            counts, null_counts, back_counts = np.zeros(t.shape), np.zeros(F), np.zeros(E)
            _expect(pair, e, e_ptr, f, f_ptr, offset, shares, t, null, null_back, counts, null_counts, back_counts)
            for side, (source, sources) in enumerate(((e_of, E), (f_of, F))):
                _normalise(counts, source, side, np.zeros(sources), tiny, t)
            null, null_back = (new / max(new.sum(), tiny) for new in (null_counts, back_counts))
    return t, null, null_back


@njit(cache=True, **JIT)
def _normalise(counts, source, side, totals, tiny, t):
    """Probabilities of one direction: counts as shares of those of all pairs with the same source word."""
    for k in range(source.size):
        totals[source[k]] += counts[k, side]
    for k in range(source.size):
        t[k, side] = counts[k, side] / max(totals[source[k]], tiny)


@njit(cache=True, **JIT)
def _shares(e_ptr, f_ptr, tension):
    """(1 - NULL) a(j | k) without null for all lengths (m, n) that occur, either side first: offset[m, n] of rows (n, m)."""
    longest = max(np.max(np.diff(e_ptr)), np.max(np.diff(f_ptr))) + 1
    offset, size = np.full((longest, longest), -1), 0
    for i in range(e_ptr.size - 1):
        J, K = e_ptr[i + 1] - e_ptr[i], f_ptr[i + 1] - f_ptr[i]
        for m, n in ((J, K), (K, J)):
            if offset[m, n] < 0:
                offset[m, n] = size
                size += m * n
    shares, diagonal = np.empty(size), np.empty(longest)
    for m in range(longest):
        for n in range(longest):
            if offset[m, n] < 0:
                continue
            for q in range(n):
                norm = 0.0
                for s in range(m):
                    diagonal[s] = np.exp(-tension * abs((s + 0.5) / m - (q + 0.5) / n)) if tension > 0.0 else 1.0
                    norm += diagonal[s]
                for s in range(m):
                    shares[offset[m, n] + q * m + s] = (1.0 - NULL) * diagonal[s] / norm
    return offset, shares


@njit(cache=True, **JIT)
def _expect_of(words, sources, of_word, of_source, pair, shares, known, null, share, counts, side, null_counts):
    """Adds what one sentence pair gives for one direction, to column `side` of the counts.

    `words` come from `sources` words or from null. The pair of word q and source s is pair[q of_word + s of_source], and its
    probability known[q, s].
    """
    for q in range(words.size):
        total = NULL * null[words[q]]
        for s in range(sources):
            share[s] = shares[q * sources + s] * known[q, s]
            total += share[s]
        if total > 0.0:
            null_counts[words[q]] += NULL * null[words[q]] / total
            for s in range(sources):
                counts[pair[q * of_word + s * of_source], side] += share[s] / total


@njit(cache=True, **JIT)
def _expect(pair, e, e_ptr, f, f_ptr, offset, shares, t, null, null_back, counts, null_counts, back_counts):
    """Adds expected counts of one pass over the text: French words come from English ones, and the other way round."""
    longest = offset.shape[0]
    forward, back, share = np.empty((longest, longest)), np.empty((longest, longest)), np.empty(longest)
    first = 0
    for i in range(e_ptr.size - 1):
        J, K = e_ptr[i + 1] - e_ptr[i], f_ptr[i + 1] - f_ptr[i]
        for j in range(J):
            for k in range(K):
                known = pair[first + j * K + k]
                forward[k, j], back[j, k] = t[known, 0], t[known, 1]
        here, e_here, f_here = pair[first : first + J * K], e[e_ptr[i] : e_ptr[i + 1]], f[f_ptr[i] : f_ptr[i + 1]]
        _expect_of(f_here, J, 1, K, here, shares[offset[J, K] :], forward, null, share, counts, 0, null_counts)
        _expect_of(e_here, K, K, 1, here, shares[offset[K, J] :], back, null_back, share, counts, 1, back_counts)
        first += J * K


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
