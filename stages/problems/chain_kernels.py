"""Compiled kernels of chains: sparse scores, Viterbi, Gram norms, sparse updates. Layouts as in `chain`."""

from __future__ import annotations

from numba import njit

from stages.problems.protocol import FAST, JIT

FEW = 4
"""Rows of a direction with at most this many non-zero labels are handled label by label."""


@njit(**JIT)
def token_scores(ids, values, start, stop, K, w, theta, o):
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
def viterbi(theta, T, K, bonus, truth, first, y, best):
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
def gram_norm2(delta, T, K, gram, g):
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
def push_rows(ids, values, row_ptr, first, T, K, c, delta, w, transitions):
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
