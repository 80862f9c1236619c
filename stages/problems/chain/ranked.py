"""The m best labellings of a chain, exactly, and the best one through each label of each token.

After Viterbi's forward sweep, best[t, a] is the score of the best beginning that ends in label a at token t. Read from its
end, any sequence follows the best predecessors except at some tokens, where it *deviates*; a deviation to a at token t, with
b at t + 1, costs max_a' (best[t, a'] + transition(a', b)) - (best[t, a] + transition(a, b)) >= 0. All sequences other than
those found so far lie in disjoint sets: the labels after some token t are those of a sequence found, and the label at t
comes after a given one in the order of falling score. The best of each such set is known in O(K) steps, so the next best of
all is the best of these offers, of which each sequence found has one at each token: Lawler's partition (1972), as lazy as
the k-best Viterbi of Huang and Chiang (2005, Alg. 3), without their heaps.

Equal scores come in the order of their labels read from the last token back, as Viterbi's own answer, which is the first.
Costs are only subtracted, so scores never rise along the list, whatever rounding does.

*Max-marginals* are the forward sweep's maxima plus those of the endings after each label.
"""

from __future__ import annotations

import numpy as np

from gapwise.stages.problems.chain.costs import BLOCKED
from gapwise.stages.problems.chain.viterbi import predecessor, viterbi
from gapwise.stages.problems.compiled import inner
from gapwise.stages.problems.protocol import PLAIN, U

LEAST = 0.5 * BLOCKED
"""A lower score is that of no labelling: it breaks a constraint."""


@inner(**PLAIN)
def max_marginals(nodes, edges, T, K, y, out, best, after):
    """y <- the labelling of largest score; out (T, K) <- score of the best one with each label at each token, or -inf.

    best (2 T K,) and after (T K,) are workspace.
    """
    viterbi(nodes, edges, T, K, y, best)
    for a in range(K):
        after[(T - 1) * K + a] = 0.0
    for t in range(T - 2, -1, -1):
        following = (t + 1) * K
        for a in range(K):
            rest = -np.inf
            for b in range(K):
                rest = max(rest, after[following + b] + nodes[following + b] + edges[a * K + b])
            after[t * K + a] = rest
    for t in range(T):
        for a in range(K):
            score = best[t * K + a] + after[t * K + a]
            out[t, a] = score if score > LEAST else -np.inf


@inner(**PLAIN)
def listed(edges, T, K, m, labels, values, best, offers):
    """labels (m, T), values (m,) <- the labellings of largest score, by falling score; returns how many there are.

    To be called after `viterbi`, whose answer is labels[0] and whose maxima are in `best`. values[0] is below LEAST where no
    labelling keeps to the constraints; there are then none. offers (2, m, T) is workspace: of each row and token the score
    of the best sequence that deviates there and is not in the list, and its label there.
    """
    values[0] = best[(T - 1) * K + np.int64(labels[0, T - 1])]
    if values[0] < LEAST:
        return 0
    for t in range(T):
        _offer(edges, T, K, t, 0, labels[0, t], labels, values, best, offers)
    for count in range(1, m):
        row, token = -1, 0
        for r in range(count):
            for t in range(T):
                if offers[0, r, t] > LEAST and (row < 0 or _comes_first(r, t, row, token, labels, T, offers)):
                    row, token = r, t
        if row < 0:
            return count
        values[count], label = offers[0, row, token], np.int64(offers[1, row, token])
        for t in range(token + 1, T):
            labels[count, t], offers[0, count, t] = labels[row, t], -np.inf
        labels[count, token], offers[0, count, token] = label, -np.inf
        if count < m - 1:
            _offer(edges, T, K, token, row, label, labels, values, best, offers)
        for t in range(token - 1, -1, -1):
            label = predecessor(edges, K, label, t * K, best[(T + t + 1) * K + label], best)
            labels[count, t] = label
            if count < m - 1:
                _offer(edges, T, K, t, count, label, labels, values, best, offers)
    return m


@inner(**PLAIN)
def _offer(edges, T, K, t, row, own, labels, values, best, offers):
    """Offer the best sequence that has the labels of a row after token t, and there a label after `own`.

    "After" is by falling score, then by number.
    """
    after = -1 if t == T - 1 else np.int64(labels[row, t + 1])
    reached = values[0] if t == T - 1 else best[(T + t + 1) * K + after]
    here, label, second = _reach(edges, K, t, own, after, best), 0, -np.inf
    for a in range(K):
        score = _reach(edges, K, t, a, after, best)
        if (score < here or (score == here and a > own)) and score > second:
            label, second = a, score
    offers[0, row, t], offers[1, row, t] = values[row] - (reached - second), label


@inner(**PLAIN)
def _reach(edges, K, t, a, after, best):
    """Score of the best beginning that has a at token t, with the transition to the label after it; -1 at the end."""
    score = best[U(t * K) + U(a)]
    return score if after < 0 else score + edges[U(a * K) + U(after)]


@inner(**PLAIN)
def _comes_first(r, s, row, t, labels, T, offers):
    """Whether offer (r, s) is better than (row, t); of equals, that of the first label, read from the last token back.

    Their sets are disjoint, so they differ where the labels of both are given.
    """
    if offers[0, r, s] != offers[0, row, t]:
        return offers[0, r, s] > offers[0, row, t]
    for k in range(T - 1, max(s, t) - 1, -1):
        mine = np.int64(offers[1, r, s]) if k == s else np.int64(labels[r, k])
        other = np.int64(offers[1, row, t]) if k == t else np.int64(labels[row, k])
        if mine != other:
            return mine < other
    return False
