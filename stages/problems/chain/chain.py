"""Chains: linear sequences with pairwise transitions and a Viterbi oracle (OCR and CoNLL in LJ13 section 6, O16 5.1).

Every token is a sparse row of attribute ids (and of values, where they are not all 1), which suits binary pixels and a
million word features alike. The three biases are attributes too: every token has the attribute "constant", the first token
of a block also "first", and the last one also "last" (`with_biases`). Hence, with p attributes and K labels,

    w = (E[p, K] attribute by attribute, the last three rows being the biases;  T[K, K], T[a, b] for a before b)

and d = p K + K^2. Local coordinates of a block of T tokens are its T K label indicators and K^2 transition counts,
theta being (T, K) node scores and the (K, K) transition scores. With G the T x T Gram matrix of the tokens
(`derived`), ||B_i delta||^2 = sum_k delta_k' G delta_k + ||delta_transitions||^2; a long block sums over attributes.

Loss: the costs of all tokens / `unit` of the block (`chain.losses`). Constraints (`forbidden`) only change which labelling
`max_oracle`, `decode` and `marginals` return: they work on a copy of theta in which what may not occur scores `BLOCKED`.

An example of weight s has s B_i for B_i and s L_i for L_i, hence s times its hinge.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from gapwise.stages.problems.block_weight import block_weights
from gapwise.stages.problems.chain import ranked
from gapwise.stages.problems.chain.features import derived
from gapwise.stages.problems.chain.forbidden import blocked_scores, breaks, refuse_lengths
from gapwise.stages.problems.chain.kernels import chain_scores, gram_norm2, push_rows, viterbi
from gapwise.stages.problems.chain.long import sizes_of
from gapwise.stages.problems.chain.losses import (
    augmented,
    costs_of,
    mean_costs,
    sum_of_costs,
    tables_of,
    units_of,
)
from gapwise.stages.problems.chain.marginals import forward_backward
from gapwise.stages.problems.chain.moves import few_scores, follow_pair, pair_gram_norm2, pair_gram_norms, push_pair
from gapwise.stages.problems.facts import Facts
from gapwise.stages.problems.inner import inner
from gapwise.stages.problems.operations import SEARCH, Operations, mean_size
from gapwise.stages.problems.prefetch import prefetch, prefetch_range
from gapwise.stages.problems.protocol import PLAIN, frozen


@inner(**PLAIN)
def multiply_all(x, c):
    """x *= c."""
    for j in range(x.size):
        x[j] *= c


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
    """K. Labels >= K occur in the `truth` of a test split only; they are never predicted, so they always count as errors."""
    longest: int
    """Largest number of tokens in a block."""
    row_ptr: np.ndarray
    """int64, (tokens + 1,): token t has the attributes ids[row_ptr[t]:row_ptr[t + 1]]"""
    ids: np.ndarray
    """int32, (row_ptr[-1],)"""
    values: np.ndarray
    """float32, (row_ptr[-1],), or (0,) where every value is 1"""
    gram_ptr: np.ndarray
    """int64, (n + 1,)"""
    gram: np.ndarray
    """float32, flat (T, T) per block: inner products of tokens; of a block of more than `LONGEST` tokens the entries of
    `chain.long`; (0,) if the blocks are only to be decoded"""
    scale: np.ndarray
    """float64, (2 n,): of each block its unit, by which costs are divided, and its weight. Two arrays would be passed more
    slowly, as would more than one of tables"""
    tables: np.ndarray
    """float64, flat (2 K + 3, K), or (0,) where every error costs 1 and every sequence may occur: costs (K + 1, K) of
    label b where a is true, the last row for a >= K; then, 0 or BLOCKED, (K + 2, K) for b after a, first, and last"""

    @property
    def decodes_only(self) -> bool:
        """Whether there are no Gram matrices, which all but decoding needs."""
        return self.gram.size < self.n

    @property
    def block_weight(self) -> np.ndarray:
        """(n,): weights of blocks."""
        return self.scale[1::2]

    @property
    def blocked(self) -> np.ndarray:
        """(K + 2, K): BLOCKED at what may not occur, else 0."""
        rows = self.tables.reshape(-1, self.labels)[self.labels + 1 :]
        return rows if rows.size else np.zeros((self.labels + 2, self.labels))

    @property
    def unconstrained(self) -> bool:
        """Whether every sequence of labels is allowed."""
        return not self.blocked.any()

    @property
    def operations(self) -> Operations:
        """nnz K and T K^2; in a visit four labels of each token, two scored and two pushed, out of order."""
        nnz, T = mean_size(self.row_ptr[[0, -1]]) / self.n, mean_size(self.label_ptr)
        return Operations(nnz * self.labels + T * self.labels**2, 4.0 * SEARCH * nnz)

    def scores(self, i, w, theta):
        K, first, T = self.labels, self.label_ptr[i], self.label_ptr[i + 1] - self.label_ptr[i]
        chain_scores(self.ids, self.values, self.row_ptr, first, T, K, w, self.d - K * K, theta)
        if self.scale[2 * i + 1] != 1.0:
            multiply_all(theta, self.scale[2 * i + 1])

    def max_oracle(self, i, theta, y, scratch):
        K, first, T, unit = self.labels, self.label_ptr[i], self.label_ptr[i + 1] - self.label_ptr[i], self.scale[2 * i]
        scored, bonus = theta, 1.0 / unit
        if self.tables.size:  # apart, for these copy theta
            scored, bonus = scratch[1], 0.0
            augmented(theta, T, K, 1.0 / unit, self.tables, self.truth, first, scored)
        wrong = viterbi(scored, T, K, bonus, self.truth, first, y, scratch[0])
        return (sum_of_costs(self.tables, y, self.truth, first, T, K) if self.tables.size else wrong) / unit

    def max_oracles(self, i, theta, m, labels, losses, scratch):
        K, T = self.labels, self.label_ptr[i + 1] - self.label_ptr[i]
        losses[0] = self.max_oracle(i, theta, labels[0], scratch)
        scored = scratch[1] if self.tables.size else theta
        count = ranked.listed(scored, T, K, m, labels, scratch[4], scratch[0], scratch[2], scratch[3])
        for k in range(1, count):
            losses[k] = self.loss(i, labels[k])
        return max(count, 1)

    def decode(self, i, theta, y, scratch):
        K, first, T, scored = self.labels, self.label_ptr[i], self.label_ptr[i + 1] - self.label_ptr[i], theta
        if self.tables.size:
            scored = scratch[1]
            augmented(theta, T, K, 0.0, self.tables, self.truth, first, scored)
        viterbi(scored, T, K, 0.0, self.truth, first, y, scratch[0])

    def marginals(self, i, theta, c, mu, scratch):
        K, first, T, unit = self.labels, self.label_ptr[i], self.label_ptr[i + 1] - self.label_ptr[i], self.scale[2 * i]
        scored, bonus = theta, c / unit
        if self.tables.size:
            scored, bonus = scratch[1], 0.0
            augmented(theta, T, K, c / unit, self.tables, self.truth, first, scored)
        log_sum, wrong = forward_backward(scored, T, K, bonus, self.truth, first, mu, scratch[0])
        return log_sum, (mean_costs(self.tables, mu, self.truth, first, T, K) if self.tables.size else wrong) / unit

    def max_marginals(self, i, theta, y, out, scratch):
        K, first, T, scored = self.labels, self.label_ptr[i], self.label_ptr[i + 1] - self.label_ptr[i], theta
        if self.tables.size:
            scored = scratch[1]
            augmented(theta, T, K, 0.0, self.tables, self.truth, first, scored)
        ranked.max_marginals(scored, T, K, self.truth, first, y, out, scratch[0], scratch[2], scratch[3])

    def n_best(self, i, theta, m, labels, values, scratch):
        K, first, T, scored = self.labels, self.label_ptr[i], self.label_ptr[i + 1] - self.label_ptr[i], theta
        if self.tables.size:
            scored = scratch[1]
            augmented(theta, T, K, 0.0, self.tables, self.truth, first, scored)
        return ranked.n_best(scored, T, K, m, self.truth, first, labels, values, scratch[0], scratch[4], scratch[5])

    def value(self, i, theta, y):
        K, T = self.labels, self.label_ptr[i + 1] - self.label_ptr[i]
        here = np.int64(y[0])  # a Python int plus a uint8 would stay a uint8 where this is not compiled
        total = theta[here]
        for t in range(1, T):
            before, here = here, np.int64(y[t])
            total += theta[t * K + here] + theta[(T + before) * K + here]
        return total

    def add(self, i, y, c, out):
        K, T = self.labels, self.label_ptr[i + 1] - self.label_ptr[i]
        here = np.int64(y[0])
        out[here] += c
        for t in range(1, T):
            before, here = here, np.int64(y[t])
            out[t * K + here] += c
            out[(T + before) * K + here] += c

    def norm2(self, i, delta):
        T = self.label_ptr[i + 1] - self.label_ptr[i]
        norm2 = gram_norm2(delta, T, self.labels, self.gram, self.gram_ptr[i], self.gram_ptr[i + 1])
        return norm2 * self.scale[2 * i + 1] ** 2

    def push(self, i, c, delta, w):
        K, first, T = self.labels, self.label_ptr[i], self.label_ptr[i + 1] - self.label_ptr[i]
        c *= self.scale[2 * i + 1]
        push_rows(self.ids, self.values, self.row_ptr, first, T, K, c, delta, w, self.d - K * K)

    def pair_norm2(self, i, y, z, delta):
        T = self.label_ptr[i + 1] - self.label_ptr[i]
        norm2 = pair_gram_norm2(y, z, T, self.labels, self.gram, self.gram_ptr[i], self.gram_ptr[i + 1], delta)
        return norm2 * self.scale[2 * i + 1] ** 2

    def pair_norms(self, i, k, labels, slots, row_of, squared, first, width, delta):
        K, T, whole = self.labels, self.label_ptr[i + 1] - self.label_ptr[i], self.values.size == 0
        gram, start, stop, square = self.gram, self.gram_ptr[i], self.gram_ptr[i + 1], self.scale[2 * i + 1] ** 2
        pair_gram_norms(labels, slots, k, row_of, T, K, gram, start, stop, whole, square, squared, first, width, delta)

    def pair_push(self, i, c, y, z, delta, w):
        K, first, T = self.labels, self.label_ptr[i], self.label_ptr[i + 1] - self.label_ptr[i]
        c *= self.scale[2 * i + 1]
        push_pair(self.ids, self.values, self.row_ptr, first, T, K, c, y, z, w, self.d - K * K, delta)

    def pair_move(self, i, c, y, z, delta, w):
        K, first, T = self.labels, self.label_ptr[i], self.label_ptr[i + 1] - self.label_ptr[i]
        c *= self.scale[2 * i + 1]
        push_pair(self.ids, self.values, self.row_ptr, first, T, K, c, y, z, w, self.d - K * K, delta)

    def pair_follow(self, i, c, y, z, w, theta, delta):
        T, c = self.label_ptr[i + 1] - self.label_ptr[i], c * self.scale[2 * i + 1] ** 2
        follow_pair(y, z, T, self.labels, self.gram, self.gram_ptr[i], self.gram_ptr[i + 1], c, theta, delta)

    def score_labels(self, i, w, labels, slots, theta, scores):
        K, first, T = self.labels, self.label_ptr[i], self.label_ptr[i + 1] - self.label_ptr[i]
        few_scores(self.ids, self.values, self.row_ptr, first, T, K, w, self.d - K * K, labels, slots, theta, scores)
        if self.scale[2 * i + 1] != 1.0:
            multiply_all(scores, self.scale[2 * i + 1])

    def touch(self, i, stage):
        if stage == 0:
            prefetch(self.gram_ptr, i)
            return
        first, stop = self.label_ptr[i], self.label_ptr[i + 1]
        if stage == 1:
            prefetch_range(self.row_ptr, first, stop + 1)
        elif stage == 2:
            prefetch_range(self.ids, self.row_ptr[first], self.row_ptr[stop])
            if self.values.size:
                prefetch_range(self.values, self.row_ptr[first], self.row_ptr[stop])
        else:
            prefetch_range(self.gram, self.gram_ptr[i], self.gram_ptr[i + 1])
            prefetch(self.truth, first)

    def loss(self, i, y):
        first, T = self.label_ptr[i], self.label_ptr[i + 1] - self.label_ptr[i]
        if self.tables.size:
            return sum_of_costs(self.tables, y, self.truth, first, T, self.labels) / self.scale[2 * i]
        wrong = 0
        for t in range(T):
            wrong += y[t] != self.truth[first + t]
        return wrong / self.scale[2 * i]

    def least_loss(self, i: int) -> float:
        """The least cost of one wrong label; constraints may forbid to change one alone, so it is a lower bound."""
        truth, costs = np.unique(self.truth[self.label_ptr[i] : self.label_ptr[i + 1]]), [1.0]
        if self.tables.size:
            costs = [np.min(np.delete(self.tables[k * self.labels : (k + 1) * self.labels], k)) for k in truth.tolist()]
        return np.min(costs) / self.scale[2 * i]

    def forbidden(self, block: np.ndarray, label: np.ndarray, label_offset: np.ndarray) -> np.ndarray:
        """Which stored rows break the constraints."""
        return breaks(self.blocked, label, label_offset)

    def scratch(self):
        K, copied = self.labels, self.longest + self.labels if self.tables.size else 0
        return np.empty(2 * self.longest * K), np.empty(copied * K)

    def max_oracles_scratch(self, m):
        K, tokens = self.labels, self.longest
        return self.scratch() + (np.empty((m, ranked.FIELDS)), np.empty(3 * tokens * K), np.empty(m))  # noqa: RUF005

    def ranked_scratch(self, m):
        K, tokens = self.labels, self.longest
        best, scored, turned = np.empty(2 * tokens * K), np.empty((tokens + K) * K), np.empty((tokens + K) * K)
        lists = np.empty((m, ranked.FIELDS)), np.empty(3 * tokens * K)
        return best, scored, turned, np.empty(2 * tokens * K), *lists


def build(arrays: Mapping[str, np.ndarray], meta: Facts) -> Chain:
    """Chain problem of one split.

    Parameters
    ----------
    arrays
        ``labels`` (tokens,) with ``labels_ptr`` (n + 1,): label ids, one block after the other. ``counts`` (tokens,)
        and ``ids`` (sum of counts,): attributes of each token, biases included. Optional: ``values``, shaped like ids,
        if not all are 1; ``gram`` with ``gram_ptr``, empty if the blocks are only to be decoded, otherwise computed here;
        ``decode_only`` (any array) allows labels >= K. Also optional: what `chain.losses` reads, ``cost`` and
        ``block_weight`` (n,), and ``forbidden`` (K + 2, K), not 0 where label b may not follow a, be the first (row K) or
        the last one (row K + 1).
    meta
        ``classes`` (K) and ``attributes`` (p, including the three biases); optional ``lower`` and ``upper`` (d,), and
        ``loss``, ``balanced``, ``label_counts`` and ``n_train`` of `chain.losses`.

    Raises
    ------
    ValueError
        If a block is empty or has more than 2^24 tokens, has a label outside 0..K-1, an attribute outside 0..p-1, or a
        value that is not finite (the message names the first such block), if the lengths of arrays do not agree, if the
        loss is none, or if the constraints leave a block without a labelling.
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
    held, entries = np.diff(gram_ptr), np.diff(row_ptr[ptr])
    if not np.all((held == lengths**2) | (held == sizes_of(entries, lengths))) and np.any(gram_ptr):
        raise ValueError("chain: gram must hold T * T numbers per block, or the entries of a long one; featurize again")
    weight, blocked = block_weights("chain", arrays, lengths.size), blocked_scores(arrays, K)
    refuse_lengths(blocked, lengths)
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
        ids=frozen(ids, np.uint8 if p <= 256 else np.uint32),  # two types: each is compiled anew. uint8 for pixels
        values=frozen(values, np.float32),
        gram_ptr=frozen(gram_ptr, np.int64),
        gram=frozen(gram, np.float32),
        scale=frozen(np.stack([units_of(lengths, meta) / weight, weight], axis=1).reshape(-1)),
        tables=frozen(tables_of(costs_of(arrays, meta, K), blocked)),
    )


def _refuse(fault: str, bad: np.ndarray, ptr: np.ndarray) -> None:
    """Raise ValueError if `bad` has a True, naming its block (block i has the entries ptr[i]:ptr[i + 1])."""
    if bad.any():
        block = int(np.searchsorted(ptr, int(np.argmax(bad)), side="right")) - 1
        raise ValueError(f"chain: block {block} has {fault}")


def _all_grams(
    ids: np.ndarray, counts: np.ndarray, values: np.ndarray, ptr: np.ndarray, row_ptr: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    grams = []
    for i, (a, b) in enumerate(pairwise(ptr)):
        block = {"ids": ids[row_ptr[a] : row_ptr[b]], "counts": counts[a:b]}
        if values.size:
            block["values"] = values[row_ptr[a] : row_ptr[b]]
        try:
            grams.append(derived(**block)["gram"])
        except ValueError as error:
            raise ValueError(f"chain: block {i} has {error}") from error
    return np.concatenate(grams), np.concatenate([[0], np.cumsum([gram.size for gram in grams])])
