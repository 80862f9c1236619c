"""Chains: linear sequences with pairwise transitions and a Viterbi oracle (OCR and CoNLL in LJ13 section 6, O16 5.1).

Every token is a sparse row of attribute ids (and of values, where they are not all 1), which suits binary pixels and a
million word features alike; or a row of a matrix, as embeddings are (`sparse`, `dense`). Three of a token's features are
biases: every token has "constant", the first one of a block also "first", and the last one also "last". Hence, with p
features, those included, and K labels,

    w = (E, p K numbers whose order is that of `sparse` or `dense`;  T[K, K], T[a, b] for a before b)

and d = p K + K^2. Local coordinates of a block of T tokens are its T K label indicators and K^2 transition counts,
theta being (T, K) node scores and the (K, K) transition scores. With G the T x T Gram matrix of the tokens,
||B_i delta||^2 = sum_k delta_k' G delta_k + ||delta_transitions||^2; a long block computes B_i delta instead.

Loss: the costs of all tokens / `unit` of the block. Constraints only change which labelling `max_oracle`, `decode` and
`marginals` return: they work on a copy of theta in which what may not occur scores `BLOCKED` (`costs`).

An example of weight s has s B_i for B_i and s L_i for L_i, hence s times its hinge.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from gapwise.stages.problems.chain import ranked
from gapwise.stages.problems.chain.costs import blocked_of, breaks, constrained, cost_of, mean_cost, with_costs
from gapwise.stages.problems.chain.dense import Dense
from gapwise.stages.problems.chain.grams import (
    add_edges,
    add_edges_norm2,
    nodes_norm2,
    pair_nodes_norm2,
)
from gapwise.stages.problems.chain.sparse import Sparse
from gapwise.stages.problems.chain.viterbi import forward_backward, path_score, viterbi
from gapwise.stages.problems.compiled import inner
from gapwise.stages.problems.protocol import JIT, PLAIN, U, add_scaled, compile_methods, dot
from gapwise.stages.problems.simd import prefetch, prefetch_range


@inner(**PLAIN)
def multiply_all(x, c):
    """x *= c; nothing for c = 1."""
    if c != 1.0:
        for j in range(x.size):
            x[j] *= c


class Chain(NamedTuple):
    """n label sequences over p features and `labels` labels; d = p * labels + labels**2."""

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
    tokens: Sparse | Dense
    """The features."""
    gram_ptr: np.ndarray
    """int64, (n + 1,)"""
    gram: np.ndarray
    """float32, flat: T * T inner products of each block's tokens (`grams`); none if it is long, or only to be decoded"""
    scale: np.ndarray
    """float64, (2 n,): of each block its unit, by which costs are divided, and its weight. Two arrays would be passed more
    slowly"""
    costs: np.ndarray
    """float64, flat: what wrong labels cost, and which sequences may not occur (`costs`)."""

    @property
    def decodes_only(self) -> bool:
        """Whether a true label is none of the K, so that the blocks cannot be trained on."""
        return bool((self.truth >= self.labels).any())

    @property
    def block_weight(self) -> np.ndarray:
        """(n,): weights of blocks."""
        return self.scale[1::2]

    @property
    def unconstrained(self) -> bool:
        """Whether every sequence of labels is allowed."""
        return not blocked_of(self.costs, self.labels).any()

    @property
    def oracle_cost(self) -> float:
        """1, as a visit reads the same sparse rows; of dense ones it reads and writes two, for two labels each."""
        return 1.0 if isinstance(self.tokens, Sparse) else float(self.label_ptr[-1] / self.n) * self.labels / 8.0

    def scores(self, i, w, theta):
        K, first, T = self.labels, self.label_ptr[i], self.label_ptr[i + 1] - self.label_ptr[i]
        self.tokens.node_scores(i, first, T, K, w, theta)
        edges, weights = theta[T * K :], w[self.d - K * K :]
        for j in range(K * K):
            edges[j] = weights[j]
        multiply_all(theta, self.scale[2 * i + 1])

    def scored(self, i, theta, c, out):
        """Node scores plus c times the costs, and scores of transitions; with constraints (`costs.with_costs`)."""
        K, first, T = self.labels, self.label_ptr[i], self.label_ptr[i + 1] - self.label_ptr[i]
        with_costs(self.costs, theta, T, K, c, self.truth, first, out)
        if constrained(self.costs, K):
            return out, out[T * K :]
        return out, theta[T * K :]

    def max_oracle(self, i, theta, y, scratch):
        K, first, T, unit = self.labels, self.label_ptr[i], self.label_ptr[i + 1] - self.label_ptr[i], self.scale[2 * i]
        nodes, edges = self.scored(i, theta, 1.0 / unit, scratch[1])
        viterbi(nodes, edges, T, K, y, scratch[0])
        return cost_of(self.costs, y, T, K, self.truth, first) / unit

    def max_oracles(self, i, theta, m, labels, losses, scratch):
        K, T = self.labels, self.label_ptr[i + 1] - self.label_ptr[i]
        nodes, edges = self.scored(i, theta, 1.0 / self.scale[2 * i], scratch[1])
        viterbi(nodes, edges, T, K, labels[0], scratch[0])
        count = max(1, ranked.listed(edges, T, K, m, labels, scratch[4], scratch[0], scratch[3]))
        for k in range(count):
            losses[k] = self.loss(i, labels[k])
        return count

    def decode(self, i, theta, y, scratch):
        K, T = self.labels, self.label_ptr[i + 1] - self.label_ptr[i]
        nodes, edges = self.scored(i, theta, 0.0, scratch[1])
        viterbi(nodes, edges, T, K, y, scratch[0])

    def marginals(self, i, theta, c, mu, scratch):
        K, first, T, unit = self.labels, self.label_ptr[i], self.label_ptr[i + 1] - self.label_ptr[i], self.scale[2 * i]
        nodes, edges = self.scored(i, theta, c / unit, scratch[1])
        log_sum = forward_backward(nodes, edges, T, K, mu, scratch[0])
        return log_sum, mean_cost(self.costs, mu, T, K, self.truth, first) / unit

    def max_marginals(self, i, theta, y, out, scratch):
        K, T = self.labels, self.label_ptr[i + 1] - self.label_ptr[i]
        nodes, edges = self.scored(i, theta, 0.0, scratch[1])
        ranked.max_marginals(nodes, edges, T, K, y, out, scratch[0], scratch[2])

    def n_best(self, i, theta, m, labels, values, scratch):
        K, T = self.labels, self.label_ptr[i + 1] - self.label_ptr[i]
        nodes, edges = self.scored(i, theta, 0.0, scratch[1])
        viterbi(nodes, edges, T, K, labels[0], scratch[0])
        return ranked.listed(edges, T, K, m, labels, values, scratch[0], scratch[3])

    def value(self, i, theta, y):
        K, T = self.labels, self.label_ptr[i + 1] - self.label_ptr[i]
        return path_score(theta, theta[T * K :], y, T, K)

    def add(self, i, y, c, out):
        K, T = self.labels, self.label_ptr[i + 1] - self.label_ptr[i]
        here = np.int64(y[0])  # a Python int plus a uint8 would stay a uint8 where this is not compiled
        out[here] += c
        for t in range(1, T):
            before, here = here, np.int64(y[t])
            out[t * K + here] += c
            out[(T + before) * K + here] += c

    def norm2(self, i, delta):
        K, T = self.labels, self.label_ptr[i + 1] - self.label_ptr[i]
        edges = delta[T * K :]
        norm2 = (
            nodes_norm2(self.gram, self.gram_ptr[i], delta, T, K) if self.has_gram(i) else pushed_norm2(self, i, delta)
        )
        return (norm2 + dot(edges, edges)) * self.scale[2 * i + 1] ** 2

    def push(self, i, c, delta, w):
        K, first, T = self.labels, self.label_ptr[i], self.label_ptr[i + 1] - self.label_ptr[i]
        c *= self.scale[2 * i + 1]
        self.tokens.push_nodes(i, first, T, K, c, delta, w)
        add_scaled(c, delta[T * K :], w[self.d - K * K :])

    def has_gram(self, i):
        """Whether the block has inner products of its tokens."""
        return self.gram_ptr[i + 1] > self.gram_ptr[i]

    def pair_norm2(self, i, y, z, delta):
        K, T = self.labels, self.label_ptr[i + 1] - self.label_ptr[i]
        if not self.has_gram(i):
            delta[:] = 0.0
            self.add(i, y, 1.0, delta)
            self.add(i, z, -1.0, delta)
            return self.norm2(i, delta)
        norm2 = pair_nodes_norm2(self.gram, self.gram_ptr[i], y, z, T, K, delta)
        return add_edges_norm2(norm2, y, z, T, K, delta[T:]) * self.scale[2 * i + 1] ** 2

    def pair_move(self, i, c, y, z, delta, w):
        K, first, T = self.labels, self.label_ptr[i], self.label_ptr[i + 1] - self.label_ptr[i]
        c *= self.scale[2 * i + 1]
        self.tokens.move_nodes(i, first, T, K, c, y, z, w, delta)
        add_edges(y, z, T, K, c, w[self.d - K * K :])

    def score_labels(self, i, w, labels, slots, theta, scores):
        """A token with the same label in all labellings counts as 0; weights of a token arrive while another is scored."""
        K, first, T = self.labels, self.label_ptr[i], self.label_ptr[i + 1] - self.label_ptr[i]
        waiting = -1
        for t in range(T + 1):
            if t < T:
                label, others = labels[U(slots[0]), U(t)], 0
                for slot in slots:
                    others += 1 if labels[U(slot), U(t)] != label else 0
                if others == 0:
                    theta[U(t * K) + U(label)] = 0.0
                    continue
                self.tokens.fetch_weights(first + t, K, w)
            if waiting >= 0:
                self.tokens.label_scores(i, first, T, K, w, waiting, labels, slots, theta)
            waiting = t
        for k in range(slots.size):
            scores[k] = path_score(theta, w[self.d - K * K :], labels[slots[k]], T, K)
        multiply_all(scores, self.scale[2 * i + 1])

    def touch(self, i, stage):
        if stage == 0:
            prefetch(self.gram_ptr, i)
        elif stage == 3:
            prefetch_range(self.gram, self.gram_ptr[i], self.gram_ptr[i + 1])
            prefetch(self.truth, self.label_ptr[i])
        else:
            self.tokens.fetch_rows(i, self.label_ptr[i], self.label_ptr[i + 1] - self.label_ptr[i], stage)

    def loss(self, i, y):
        first, T = self.label_ptr[i], self.label_ptr[i + 1] - self.label_ptr[i]
        return cost_of(self.costs, y, T, self.labels, self.truth, first) / self.scale[2 * i]

    def least_loss(self, i: int) -> float:
        """The least cost of one wrong label / unit; constraints may forbid to change one alone."""
        K, truth = self.labels, np.unique(self.truth[self.label_ptr[i] : self.label_ptr[i + 1]])
        wrong = self.costs[: K * K].reshape(K, K)[truth] + np.where(np.arange(K) == truth[:, None], np.inf, 0.0)
        return float(wrong.min() if K > 1 else 1.0) / float(self.scale[2 * i])

    def forbidden(self, block: np.ndarray, label: np.ndarray, label_offset: np.ndarray) -> np.ndarray:
        """Which stored rows break the constraints."""
        return breaks(blocked_of(self.costs, self.labels), label, label_offset)

    def scratch(self):
        K, T = self.labels, self.longest
        return np.empty(2 * T * K), np.empty((T + K) * K)

    def max_oracles_scratch(self, m):
        return (*self.scratch(), np.empty(self.longest * self.labels), np.empty((2, m, self.longest)), np.empty(m))

    def ranked_scratch(self, m):
        return self.max_oracles_scratch(m)


compile_methods(Chain, "scored", "has_gram")


@njit(**JIT)
def pushed_norm2(chain, i, delta):
    """||B_i delta||^2 without the transitions, from B_i delta itself: for blocks without inner products."""
    T, K = chain.label_ptr[i + 1] - chain.label_ptr[i], chain.labels
    moved = np.zeros(chain.d - K * K)
    chain.tokens.push_nodes(i, chain.label_ptr[i], T, K, 1.0, delta, moved)
    return dot(moved, moved)
