"""The m best labellings of a chain, exactly, and the best one through each label of each token.

After Viterbi's forward sweep, best[t, a] is the score of the best beginning that ends in label a at token t. Read from its
end, any sequence follows the best predecessors except at some tokens, where it *deviates*; a deviation to a at token t, with
b at t + 1, costs max_a' (best[t, a'] + transition(a', b)) - (best[t, a] + transition(a, b)) >= 0. All sequences other than
those found so far lie in disjoint sets: the labels after some token t are those of a sequence found, and the label at t
comes after a given one in the order of falling score. The best of each such set is known in O(K) steps, so the next best of
all is the first in a list of m candidates, and nothing else is expanded: Lawler's partition (1972), as lazy as the k-best
Viterbi of Huang and Chiang (2005, Alg. 3), without their heaps. The best and the second best label before a label are found
once for all sequences that share it (`_state`).

Equal scores come in the order of their labels read from the last token back, as Viterbi's own answer, which is the first.
Costs are only subtracted, so scores never rise along the list, whatever rounding does.

*Max-marginals* are the forward sweep's maxima plus those of the endings after each label.
"""

from __future__ import annotations

import numpy as np

from gapwise.stages.problems.chain.costs import BLOCKED
from gapwise.stages.problems.chain.viterbi import viterbi
from gapwise.stages.problems.inner import inner
from gapwise.stages.problems.protocol import PLAIN

LEAST = 0.5 * BLOCKED
"""A lower score is that of no labelling: it breaks a constraint."""

FIELDS = 5
"""Of a candidate: its score; the score that its deviation is counted from; the row of the sequence that it follows after
its deviation; the token of the deviation, and the label there."""
SCORE, BASE, ROW, TOKEN, LABEL = range(FIELDS)

UNKNOWN = -1.0
"""In place of a cost that is not computed yet."""


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
def listed(edges, T, K, m, labels, values, best, candidates, ranks):
    """labels (m, T), values (m,) <- the labellings of largest score, by falling score; returns how many there are.

    To be called after `viterbi`, whose answer is labels[0] and whose maxima are in `best`. candidates (m, FIELDS) and ranks
    (3 T K,) are workspace. values[0] is -inf where no labelling keeps to the constraints; there are then none.
    """
    top = best[(T - 1) * K + np.int64(labels[0, T - 1])]
    values[0] = top
    if top < LEAST:
        return 0
    for j in range(T * K):
        ranks[j] = UNKNOWN
    base, token, length, count = top, T, 1, 0
    while length < m:
        row, room = length - 1, m - length  # the list need not be longer than what is still wanted
        if count > room:  # drops the worst
            for k in range(room):
                for j in range(FIELDS):
                    candidates[k, j] = candidates[k + count - room, j]
            count = room
        if token < T:
            count = _deviate(edges, T, K, row, token, base, room, top, labels, best, candidates, count)
        for t in range(token - 1, -1, -1):
            state = _state(edges, T, K, t, labels, row, best, ranks)
            label = int(ranks[T * K + state])
            score = values[row] - ranks[state]
            if label >= 0:
                count = _offer(row, t, label, score, values[row], room, labels, T, candidates, count)
        if count == 0:
            break
        count -= 1
        values[length], base = candidates[count, SCORE], candidates[count, BASE]
        follows, token = int(candidates[count, ROW]), int(candidates[count, TOKEN])
        for t in range(T - 1, token, -1):
            labels[length, t] = labels[follows, t]
        labels[length, token] = int(candidates[count, LABEL])
        for t in range(token - 1, -1, -1):
            labels[length, t] = int(ranks[2 * T * K + _state(edges, T, K, t, labels, length, best, ranks)])
        length += 1
    return length


@inner(**PLAIN)
def _state(edges, T, K, t, labels, row, best, ranks):
    """Where `ranks` has what is best before the labels of a row after token t; found out at the first question.

    Of each state: what the second best label at token t costs, that label (-1 if there is none), and the best one.
    """
    after = 0 if t == T - 1 else np.int64(labels[row, t + 1])
    state = t * K + after
    if ranks[state] >= 0.0:
        return state
    label, other, top, second = -1, -1, -np.inf, -np.inf
    for a in range(K):
        score = best[t * K + a] if t == T - 1 else best[t * K + a] + edges[a * K + after]
        if score > top:
            other, second, label, top = label, top, a, score
        elif score > second:
            other, second = a, score
    ranks[state], ranks[T * K + state], ranks[2 * T * K + state] = top - second, other, label
    return state


@inner(**PLAIN)
def _reach(edges, T, K, t, a, labels, row, best):
    """Score of the best beginning that has a at token t, with the transition to the next label of a row."""
    if t == T - 1:
        return best[t * K + a]
    return best[t * K + a] + edges[a * K + np.int64(labels[row, t + 1])]


@inner(**PLAIN)
def _deviate(edges, T, K, row, t, base, room, top, labels, best, candidates, count):
    """Offer the best sequence that has the labels of a row after token t, and there a label after the row's own.

    "After" is by falling score, then by number. `base` is the score of the best sequence with these labels after token t,
    `top` that of all. Returns the number of candidates.
    """
    own = np.int64(labels[row, t])
    here = _reach(edges, T, K, t, own, labels, row, best)
    reached = top if t == T - 1 else best[(T + t + 1) * K + np.int64(labels[row, t + 1])]
    label, second = -1, -np.inf
    for a in range(K):
        score = _reach(edges, T, K, t, a, labels, row, best)
        if (score < here or (score == here and a > own)) and score > second:
            label, second = a, score
    if label < 0:
        return count
    return _offer(row, t, label, base - (reached - second), base, room, labels, T, candidates, count)


@inner(**PLAIN)
def _offer(row, t, label, score, base, room, labels, T, candidates, count):
    """Put a candidate into the list, best last, which has room for so many; returns their number."""
    if score < LEAST or (count == room and candidates[0, SCORE] > score):
        return count
    slot = count
    while slot > 0 and _comes_first(candidates, slot - 1, score, row, t, label, labels, T):
        slot -= 1
    if count < room:
        for k in range(count, slot, -1):
            for j in range(FIELDS):
                candidates[k, j] = candidates[k - 1, j]
        count += 1
    else:  # the list, whose first is the worst, is full
        if slot == 0:
            return count
        slot -= 1
        for k in range(slot):
            for j in range(FIELDS):
                candidates[k, j] = candidates[k + 1, j]
    candidates[slot, SCORE], candidates[slot, BASE], candidates[slot, ROW] = score, base, row
    candidates[slot, TOKEN], candidates[slot, LABEL] = t, label
    return count


@inner(**PLAIN)
def _comes_first(candidates, k, score, row, t, label, labels, T):
    """Whether candidate k is better than another one; of equals, that of the first label, read from the last token back.

    Their sets are disjoint, so they differ where the labels of both are given.
    """
    if candidates[k, SCORE] != score:
        return candidates[k, SCORE] > score
    follows, token = int(candidates[k, ROW]), int(candidates[k, TOKEN])
    for s in range(T - 1, max(t, token) - 1, -1):
        mine = int(candidates[k, LABEL]) if s == token else np.int64(labels[follows, s])
        other = label if s == t else np.int64(labels[row, s])
        if mine != other:
            return mine < other
    return True
