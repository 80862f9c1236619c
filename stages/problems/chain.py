"""Chains: linear sequences with pairwise transitions and a Viterbi oracle (LJ13 6, O16 5.1: OCR and CoNLL).

Every token is a sparse row of attribute ids (and of values, where they are not all 1), so that binary pixels and a million
word features take the same path. The three biases are attributes too: every token carries the id of the constant, the
first token of a block that of "first", the last that of "last" (`with_biases`). Hence, with p attributes and K labels,

    w = (E[p, K] attribute by attribute, the last three rows being the biases;  T[K, K], T[a, b] for a before b)

and d = p K + K^2. Local coordinates of a block of T tokens are its T K label indicators and K^2 transition counts, theta
being (T, K) node scores and the (K, K) transition scores. With G the T x T Gram matrix of the tokens (`derived`),
||B_i delta||^2 = sum_k delta_k' G delta_k + ||delta_transitions||^2. Loss: wrong labels / T.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from stages.problems.protocol import FAST, JIT, frozen

BIASES = ("bias", "bias:first", "bias:last")
"""The last three attributes of every chain problem."""


@njit(**JIT)
def _token_scores(ids, values, start, stop, K, w, theta, o):
    """theta[o:o + K] <- sum of the weight rows ids[start:stop], eight rows at a time."""
    for k in range(K):
        theta[o + k] = 0.0
    j = start
    if values.size == 0:
        while j + 8 <= stop:
            r0, r1, r2, r3 = ids[j] * K, ids[j + 1] * K, ids[j + 2] * K, ids[j + 3] * K
            r4, r5, r6, r7 = ids[j + 4] * K, ids[j + 5] * K, ids[j + 6] * K, ids[j + 7] * K
            for k in range(K):
                theta[o + k] += ((w[r0 + k] + w[r1 + k]) + (w[r2 + k] + w[r3 + k])) + (
                    (w[r4 + k] + w[r5 + k]) + (w[r6 + k] + w[r7 + k])
                )
            j += 8
        while j < stop:
            r0 = ids[j] * K
            for k in range(K):
                theta[o + k] += w[r0 + k]
            j += 1
    else:
        while j < stop:
            r0, x = ids[j] * K, values[j]
            for k in range(K):
                theta[o + k] += x * w[r0 + k]
            j += 1


@njit(**JIT)
def _viterbi(theta, T, K, bonus, truth, first, y, best):
    """y <- argmax of theta plus `bonus` for every wrong label; best (T K,) holds max-values of prefixes only.

    Ties go to the smallest label. The argmax is derived again along the one path that is followed back.
    """
    step = T * K
    for k in range(K):
        best[k] = theta[k] + bonus
    if bonus > 0.0 and truth[first] < K:
        best[truth[first]] = theta[truth[first]]
    for t in range(1, T):
        before, here = (t - 1) * K, t * K
        x = best[before]
        for b in range(K):
            best[here + b] = x + theta[step + b]
        for a in range(1, K):
            x, row = best[before + a], step + a * K
            for b in range(K):
                value = x + theta[row + b]
                best[here + b] = value if value > best[here + b] else best[here + b]
        true = truth[first + t] if bonus > 0.0 else K
        kept = best[here + true] + theta[here + true] if true < K else 0.0
        for b in range(K):
            best[here + b] += theta[here + b] + bonus
        if true < K:
            best[here + true] = kept
    label, top = 0, best[(T - 1) * K]
    for k in range(1, K):
        if best[(T - 1) * K + k] > top:
            label, top = k, best[(T - 1) * K + k]
    y[T - 1] = label
    for t in range(T - 2, -1, -1):
        b, label, top = label, 0, best[t * K] + theta[step + label]
        for a in range(1, K):
            value = best[t * K + a] + theta[step + a * K + b]
            if value > top:
                label, top = a, value
        y[t] = label


@njit(**FAST)
def _dot(x, a, b, size):
    total = 0.0
    for k in range(size):
        total += x[a + k] * x[b + k]
    return total


@njit(**JIT)
def _nonzeros(x, start, size):
    count = 0
    for k in range(size):
        count += x[start + k] != 0.0
    return count


@njit(**JIT)
def _norm2(delta, T, K, gram, g):
    """delta' (G (x) I_K) delta + ||delta_transitions||^2; rows with few non-zeros cost their non-zeros only."""
    total = 0.0
    for t in range(T):
        row, o = g + t * T, t * K
        count = _nonzeros(delta, o, K)
        if count > FEW:
            total += gram[row + t] * _dot(delta, o, o, K)
            for s in range(t):
                if gram[row + s] != 0.0:
                    total += 2.0 * gram[row + s] * _dot(delta, o, s * K, K)
        elif count > 0:
            for k in range(K):
                x = delta[o + k]
                if x != 0.0:
                    cross = 0.5 * gram[row + t] * x
                    for s in range(t):
                        cross += gram[row + s] * delta[s * K + k]
                    total += 2.0 * x * cross
    return max(total, 0.0) + _dot(delta, T * K, T * K, K * K)


@njit(**JIT)
def _push(ids, values, row_ptr, first, T, K, c, delta, w, transitions):
    for t in range(T):
        start, stop, o = row_ptr[first + t], row_ptr[first + t + 1], t * K
        count = _nonzeros(delta, o, K)
        if count > FEW:
            for j in range(start, stop):
                row = ids[j] * K
                x = c * values[j] if values.size else c
                for k in range(K):
                    w[row + k] += x * delta[o + k]
        elif count > 0:
            for k in range(K):
                x = c * delta[o + k]
                if x != 0.0:
                    for j in range(start, stop):
                        w[ids[j] * K + k] += x * values[j] if values.size else x
    for j in range(K * K):
        w[transitions + j] += c * delta[T * K + j]


FEW = 4
"""Rows of a direction with at most this many non-zero labels are handled label by label."""


class Chain(NamedTuple):
    """n label sequences over `attributes` features and `labels` labels; d = attributes * labels + labels**2."""

    n: int
    d: int
    local_ptr: np.ndarray
    label_ptr: np.ndarray
    truth: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    labels: int
    """K. Labels >= K in `truth` occur in a test split only: never predicted, always wrong."""
    longest: int
    """Largest number of tokens of a block."""
    row_ptr: np.ndarray
    """int64, (tokens + 1,): token t has the attributes ids[row_ptr[t]:row_ptr[t + 1]]"""
    ids: np.ndarray
    """int32, (row_ptr[-1],)"""
    values: np.ndarray
    """float32, (row_ptr[-1],), or (0,) where every value is 1"""
    gram_ptr: np.ndarray
    """int64, (n + 1,)"""
    gram: np.ndarray
    """float32, flat (T, T) per block: inner products of tokens"""

    def scores(self, i, w, theta):
        K, first, last = self.labels, self.label_ptr[i], self.label_ptr[i + 1]
        for t in range(first, last):
            _token_scores(self.ids, self.values, self.row_ptr[t], self.row_ptr[t + 1], K, w, theta, (t - first) * K)
        o, transitions = (last - first) * K, self.d - K * K
        for j in range(K * K):
            theta[o + j] = w[transitions + j]

    def max_oracle(self, i, theta, y, scratch):
        first, T = self.label_ptr[i], self.label_ptr[i + 1] - self.label_ptr[i]
        _viterbi(theta, T, self.labels, 1.0 / T, self.truth, first, y, scratch[0])
        wrong = 0
        for t in range(T):
            wrong += y[t] != self.truth[first + t]
        return wrong / T

    def decode(self, i, theta, y, scratch):
        first, T = self.label_ptr[i], self.label_ptr[i + 1] - self.label_ptr[i]
        _viterbi(theta, T, self.labels, 0.0, self.truth, first, y, scratch[0])

    def value(self, i, theta, y):
        K, T = self.labels, self.label_ptr[i + 1] - self.label_ptr[i]
        total = theta[y[0]]
        for t in range(1, T):
            total += theta[t * K + y[t]] + theta[(T + y[t - 1]) * K + y[t]]
        return total

    def add(self, i, y, c, out):
        K, T = self.labels, self.label_ptr[i + 1] - self.label_ptr[i]
        out[y[0]] += c
        for t in range(1, T):
            out[t * K + y[t]] += c
            out[(T + y[t - 1]) * K + y[t]] += c

    def norm2(self, i, delta):
        T = self.label_ptr[i + 1] - self.label_ptr[i]
        return _norm2(delta, T, self.labels, self.gram, self.gram_ptr[i])

    def push(self, i, c, delta, w):
        K, first, T = self.labels, self.label_ptr[i], self.label_ptr[i + 1] - self.label_ptr[i]
        _push(self.ids, self.values, self.row_ptr, first, T, K, c, delta, w, self.d - K * K)

    def loss(self, i, y):
        first, T = self.label_ptr[i], self.label_ptr[i + 1] - self.label_ptr[i]
        wrong = 0
        for t in range(T):
            wrong += y[t] != self.truth[first + t]
        return wrong / T

    def scratch(self):
        return (np.empty(self.longest * self.labels),)


def with_biases(rows: list[np.ndarray], attributes: int) -> dict[str, np.ndarray]:
    """Arrays ``ids`` and ``counts`` of one block from its tokens' sorted attribute ids (each < attributes - 3).

    The last three of the `attributes` ids are those of the constant, of the first and of the last token.
    """
    tails = np.full((len(rows), 3), -1, dtype=np.int32)
    tails[:, 0], tails[0, 1], tails[-1, 2] = attributes - 3, attributes - 2, attributes - 1
    full = [np.concatenate([row, tail[tail >= 0]]) for row, tail in zip(rows, tails, strict=True)]
    counts = np.array([row.size for row in full], dtype=np.int32)
    return {"ids": np.concatenate(full).astype(np.int32), "counts": counts}


def derived(**block: np.ndarray) -> dict[str, np.ndarray]:
    """``gram`` (T * T,) float32 of one block's ``ids``, ``counts`` and optional ``values``; exact for binary attributes."""
    ids, counts = block["ids"], block["counts"]
    values = block.get("values", ids[:0])
    known, column = np.unique(ids, return_inverse=True)
    cell = np.repeat(np.arange(counts.size), counts) * known.size + column.reshape(-1)
    weights = np.asarray(values, dtype=np.float64) if values.size else None
    rows = np.bincount(cell, weights=weights, minlength=counts.size * known.size)
    rows = rows.reshape(counts.size, -1).astype(np.float64)
    return {"gram": (rows @ rows.T).astype(np.float32).reshape(-1)}


def encode_names(names: list[str]) -> np.ndarray:
    """Label names as uint8 (labels, width), UTF-8 padded with zeros: a form that any store keeps."""
    raw = np.array([name.encode() for name in names], dtype=bytes)
    return raw.view(np.uint8).reshape(len(names), -1)


def decode_names(array: np.ndarray) -> list[str]:
    """Inverse of `encode_names`."""
    return [bytes(row).rstrip(b"\0").decode() for row in np.asarray(array)]


def build(arrays: Mapping[str, np.ndarray], meta: Mapping[str, Any]) -> Chain:
    """Chain problem of one split.

    Parameters
    ----------
    arrays
        ``labels`` (tokens,) with ``labels_ptr`` (n + 1,): label ids, one block after the other. ``counts`` (tokens,) and
        ``ids`` (sum of counts,): attributes of each token, biases included. Optional: ``values`` like ids, where not all
        are 1; ``gram`` with ``gram_ptr``, else computed here; ``decode_only`` (any array): a split with labels >= K.
    meta
        ``classes`` (K) and ``attributes`` (p, including the three biases); optional ``lower`` and ``upper`` (d,).

    Raises
    ------
    ValueError
        Naming the first block that is empty, has a label outside 0..K-1, an attribute outside 0..p-1, or a value that is not
        finite; or arrays whose lengths do not agree.
    """
    K, p = int(meta["classes"]), int(meta["attributes"])
    labels, ptr = np.asarray(arrays["labels"]), np.asarray(arrays["labels_ptr"], dtype=np.int64)
    ids, counts = np.asarray(arrays["ids"]), np.asarray(arrays["counts"])
    values = np.asarray(arrays.get("values", np.empty(0)))
    row_ptr = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
    lengths = np.diff(ptr)
    for name, got, expected in (
        ("labels", labels.size, int(ptr[-1])),
        ("counts", counts.size, labels.size),
        ("ids", ids.size, int(row_ptr[-1])),
        ("values", values.size, ids.size if values.size else 0),
    ):
        if got != expected:
            raise ValueError(f"chain: {name} has {got} entries, expected {expected}")
    if p * K >= 2**31:
        raise ValueError(f"chain: {p} attributes x {K} labels exceed the 2^31 weights that 32-bit ids can address")
    _refuse("no tokens", lengths <= 0, np.arange(lengths.size + 1))
    wrong = labels < 0 if "decode_only" in arrays else (labels < 0) | (labels >= K)
    _refuse(f"a label outside 0..{K - 1}", wrong, ptr)
    _refuse(f"an attribute outside 0..{p - 1}", (ids < 0) | (ids >= p), row_ptr[ptr])
    _refuse("a value that is not finite", ~np.isfinite(values), row_ptr[ptr])
    if "gram" in arrays:
        gram, gram_ptr = np.asarray(arrays["gram"]), np.asarray(arrays["gram_ptr"])
    else:
        gram, gram_ptr = _all_grams(ids, counts, values, ptr, row_ptr)
    if not np.array_equal(np.diff(gram_ptr), lengths**2):
        raise ValueError("chain: gram must hold T * T entries per block; featurize again")
    return Chain(
        n=lengths.size,
        d=p * K + K * K,
        local_ptr=frozen(np.concatenate([[0], np.cumsum(lengths * K + K * K)]), np.int64),
        label_ptr=frozen(ptr),
        truth=frozen(labels, np.uint8 if max(K, int(labels.max(initial=0)) + 1) <= 256 else np.int16),
        lower=frozen(np.asarray(meta.get("lower", ())), np.float64),
        upper=frozen(np.asarray(meta.get("upper", ())), np.float64),
        labels=K,
        longest=int(lengths.max(initial=1)),
        row_ptr=frozen(row_ptr, np.int64),
        ids=frozen(ids, np.int32),
        values=frozen(values, np.float32),
        gram_ptr=frozen(gram_ptr, np.int64),
        gram=frozen(gram, np.float32),
    )


def _refuse(what: str, bad: np.ndarray, ptr: np.ndarray) -> None:
    """ValueError naming the block (of the entries ptr[i]:ptr[i + 1]) of the first True in `bad`."""
    if bad.any():
        block = int(np.searchsorted(ptr, int(np.argmax(bad)), side="right")) - 1
        raise ValueError(f"chain: block {block} has {what}")


def _all_grams(ids, counts, values, ptr, row_ptr) -> tuple[np.ndarray, np.ndarray]:
    grams = []
    for a, b in zip(ptr[:-1], ptr[1:], strict=True):
        block = {"ids": ids[row_ptr[a] : row_ptr[b]], "counts": counts[a:b]}
        if values.size:
            block["values"] = values[row_ptr[a] : row_ptr[b]]
        grams.append(derived(**block)["gram"])
    return np.concatenate(grams), np.concatenate([[0], np.cumsum([gram.size for gram in grams])])


def metrics(problem: Chain, arrays: Mapping[str, np.ndarray], predictions: np.ndarray) -> dict[str, float]:
    """Share of wrong tokens and of sequences with a wrong token; with IOB label names also chunk precision, recall and F1.

    On OCR the first two are the errors by letter and by word. Names come from ``arrays["label_names"]`` (`encode_names`),
    those of labels that occur in a test split only included.
    """
    wrong = np.asarray(predictions) != problem.truth
    by_sequence = np.add.reduceat(wrong, problem.label_ptr[:-1]) if problem.n else wrong
    result = {"token_error": float(wrong.mean()), "sequence_error": float((by_sequence > 0).mean())}
    names = decode_names(arrays["label_names"]) if "label_names" in arrays else []
    if "O" in names and all(name == "O" or name[:2] in ("B-", "I-") for name in names):
        result |= chunk_scores(names, problem.label_ptr, problem.truth, predictions)
    return result


def chunk_scores(names: list[str], ptr: np.ndarray, truth: np.ndarray, predictions: np.ndarray) -> dict[str, float]:
    """Precision, recall and F1 of whole chunks as conlleval counts them (seqeval's default mode)."""
    from seqeval.metrics.v1 import precision_recall_fscore_support

    def sequences(labels: np.ndarray) -> list[list[str]]:
        words = [names[label] for label in labels]
        return [words[a:b] for a, b in zip(ptr[:-1], ptr[1:], strict=True)]

    precision, recall, f1, _ = precision_recall_fscore_support(
        sequences(truth), sequences(predictions), average="micro", zero_division=0
    )
    return {"chunk_precision": float(precision), "chunk_recall": float(recall), "chunk_f1": float(f1)}
