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

from typing import NamedTuple

import numpy as np

from gapwise.stages.problems.chain import ranked
from gapwise.stages.problems.chain.forbidden import breaks
from gapwise.stages.problems.chain.grams import Grams, MixedGrams
from gapwise.stages.problems.chain.kernels import chain_scores, push_rows, transitions_norm2, viterbi
from gapwise.stages.problems.chain.losses import CostTables, ZeroOne
from gapwise.stages.problems.chain.marginals import forward_backward
from gapwise.stages.problems.chain.moves import (
    add_transitions_norm2,
    few_scores,
    follow_transitions,
    pair_gram_norms,
    push_pair,
)
from gapwise.stages.problems.inner import inner
from gapwise.stages.problems.operations import SEARCH, Operations, mean_size
from gapwise.stages.problems.prefetch import prefetch, prefetch_range
from gapwise.stages.problems.protocol import PLAIN


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
    grams: Grams | MixedGrams
    """Inner products of tokens."""
    scale: np.ndarray
    """float64, (2 n,): of each block its unit, by which costs are divided, and its weight. Two arrays would be passed more
    slowly"""
    costs: ZeroOne | CostTables
    """What wrong labels cost, and which sequences may not occur."""

    @property
    def decodes_only(self) -> bool:
        """Whether there are no Gram matrices, which all but decoding needs."""
        return self.grams.values.size < self.n

    @property
    def block_weight(self) -> np.ndarray:
        """(n,): weights of blocks."""
        return self.scale[1::2]

    @property
    def unconstrained(self) -> bool:
        """Whether every sequence of labels is allowed."""
        return not self.costs.blocked.any()

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
        scored, bonus = self.costs.with_costs(theta, T, 1.0 / unit, self.truth, first, scratch[1])
        viterbi(scored, T, K, bonus, self.truth, first, y, scratch[0])
        return self.costs.sum_of_costs(y, self.truth, first, T) / unit

    def max_oracles(self, i, theta, m, labels, losses, scratch):
        K, T = self.labels, self.label_ptr[i + 1] - self.label_ptr[i]
        losses[0] = self.max_oracle(i, theta, labels[0], scratch)
        scored = self.costs.scores_within(theta, scratch[1])
        count = ranked.listed(scored, T, K, m, labels, scratch[4], scratch[0], scratch[2], scratch[3])
        for k in range(1, count):
            losses[k] = self.loss(i, labels[k])
        return max(count, 1)

    def decode(self, i, theta, y, scratch):
        K, first, T = self.labels, self.label_ptr[i], self.label_ptr[i + 1] - self.label_ptr[i]
        scored, _ = self.costs.with_costs(theta, T, 0.0, self.truth, first, scratch[1])
        viterbi(scored, T, K, 0.0, self.truth, first, y, scratch[0])

    def marginals(self, i, theta, c, mu, scratch):
        K, first, T, unit = self.labels, self.label_ptr[i], self.label_ptr[i + 1] - self.label_ptr[i], self.scale[2 * i]
        scored, bonus = self.costs.with_costs(theta, T, c / unit, self.truth, first, scratch[1])
        log_sum = forward_backward(scored, T, K, bonus, self.truth, first, mu, scratch[0])
        return log_sum, self.costs.mean_costs(mu, self.truth, first, T) / unit

    def max_marginals(self, i, theta, y, out, scratch):
        K, first, T = self.labels, self.label_ptr[i], self.label_ptr[i + 1] - self.label_ptr[i]
        scored, _ = self.costs.with_costs(theta, T, 0.0, self.truth, first, scratch[1])
        ranked.max_marginals(scored, T, K, self.truth, first, y, out, scratch[0], scratch[2], scratch[3])

    def n_best(self, i, theta, m, labels, values, scratch):
        K, first, T = self.labels, self.label_ptr[i], self.label_ptr[i + 1] - self.label_ptr[i]
        scored, _ = self.costs.with_costs(theta, T, 0.0, self.truth, first, scratch[1])
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
        norm2 = self.grams.rows_norm2(i, delta, T, self.labels) + transitions_norm2(delta, T, self.labels)
        return norm2 * self.scale[2 * i + 1] ** 2

    def push(self, i, c, delta, w):
        K, first, T = self.labels, self.label_ptr[i], self.label_ptr[i + 1] - self.label_ptr[i]
        c *= self.scale[2 * i + 1]
        push_rows(self.ids, self.values, self.row_ptr, first, T, K, c, delta, w, self.d - K * K)

    def pair_norm2(self, i, y, z, delta):
        K, T = self.labels, self.label_ptr[i + 1] - self.label_ptr[i]
        norm2 = add_transitions_norm2(self.grams.pair_rows_norm2(i, y, z, T, K, delta), y, z, T, K, delta[T:])
        return norm2 * self.scale[2 * i + 1] ** 2

    def pair_norms(self, i, k, labels, slots, row_of, squared, first, width, delta):
        K, T, square = self.labels, self.label_ptr[i + 1] - self.label_ptr[i], self.scale[2 * i + 1] ** 2
        whole = self.values.size == 0 and square == 1.0
        pair_gram_norms(self.grams, i, labels, slots, k, row_of, T, K, whole, square, squared, first, width, delta)

    def pair_move(self, i, c, y, z, delta, w):
        K, first, T = self.labels, self.label_ptr[i], self.label_ptr[i + 1] - self.label_ptr[i]
        c *= self.scale[2 * i + 1]
        push_pair(self.ids, self.values, self.row_ptr, first, T, K, c, y, z, w, self.d - K * K, delta)

    def pair_follow(self, i, c, y, z, w, theta, delta):
        T, c = self.label_ptr[i + 1] - self.label_ptr[i], c * self.scale[2 * i + 1] ** 2
        self.grams.follow_rows(i, y, z, T, self.labels, c, theta, delta)
        follow_transitions(y, z, T, self.labels, c, theta)

    def score_labels(self, i, w, labels, slots, theta, scores):
        K, first, T = self.labels, self.label_ptr[i], self.label_ptr[i + 1] - self.label_ptr[i]
        few_scores(self.ids, self.values, self.row_ptr, first, T, K, w, self.d - K * K, labels, slots, theta, scores)
        if self.scale[2 * i + 1] != 1.0:
            multiply_all(scores, self.scale[2 * i + 1])

    def touch(self, i, stage):
        if stage == 0:
            prefetch(self.grams.ptr, i)
            return
        first, stop = self.label_ptr[i], self.label_ptr[i + 1]
        if stage == 1:
            prefetch_range(self.row_ptr, first, stop + 1)
        elif stage == 2:
            prefetch_range(self.ids, self.row_ptr[first], self.row_ptr[stop])
            if self.values.size:
                prefetch_range(self.values, self.row_ptr[first], self.row_ptr[stop])
        else:
            prefetch_range(self.grams.values, self.grams.ptr[i], self.grams.ptr[i + 1])
            prefetch(self.truth, first)

    def loss(self, i, y):
        first, T = self.label_ptr[i], self.label_ptr[i + 1] - self.label_ptr[i]
        return self.costs.sum_of_costs(y, self.truth, first, T) / self.scale[2 * i]

    def least_loss(self, i: int) -> float:
        return self.costs.least_cost(self.truth[self.label_ptr[i] : self.label_ptr[i + 1]]) / float(self.scale[2 * i])

    def forbidden(self, block: np.ndarray, label: np.ndarray, label_offset: np.ndarray) -> np.ndarray:
        """Which stored rows break the constraints."""
        return breaks(self.costs.blocked, label, label_offset)

    def scratch(self):
        K, room = self.labels, (self.longest + self.labels) * self.labels
        return np.empty(2 * self.longest * K), np.empty(self.costs.room_for_scores(room))

    def max_oracles_scratch(self, m):
        K, tokens = self.labels, self.longest
        return self.scratch() + (np.empty((m, ranked.FIELDS)), np.empty(3 * tokens * K), np.empty(m))  # noqa: RUF005

    def ranked_scratch(self, m):
        K, tokens, room = self.labels, self.longest, (self.longest + self.labels) * self.labels
        best, scored, turned = np.empty(2 * tokens * K), np.empty(room), np.empty(room)
        lists = np.empty((m, ranked.FIELDS)), np.empty(3 * tokens * K)
        return best, scored, turned, np.empty(2 * tokens * K), *lists
