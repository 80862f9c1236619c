"""The pool of labellings: which vertices each block holds, and with which weights.

All blocks share one pool. An atom is a labelling y of a block with its task loss, its weight alpha (zero: only cached) and
when it was last used; the atoms of a block form a linked list from ``head[i]``, the free slots another. Only the order
within a list matters to the solver, never the slot numbers, so a pool that is packed and loaded again behaves the same.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from gapwise.stages.problems.compiled import inner
from gapwise.stages.problems.protocol import JIT, PLAIN

MOST_SLOTS = 2**31 - 1
"""Of a pool: its links are int32."""


class Pool(NamedTuple):
    """Atoms of all blocks; capacity c slots, labellings up to length t (O16 Alg. 3: the active sets)."""

    labels: np.ndarray
    """truth's dtype, (c, t)"""
    alpha: np.ndarray
    """float64, (c,)"""
    losses: np.ndarray
    """float64, (c,)"""
    used: np.ndarray
    """int64, (c,): step count when last chosen"""
    row: np.ndarray
    """int32, (c,): row and column of an atom in `distances`, -1 until measured; derived"""
    next: np.ndarray
    """int32, (c,): next atom of the same list, -1 at its end"""
    head: np.ndarray
    """int64, (n,)"""
    counts: np.ndarray
    """int64, (n,): atoms of each block"""
    free: np.ndarray
    """int64, (2,): head of the free list, number of free slots"""


class Supports(NamedTuple):
    """A packed pool: the atoms of all blocks in list order, in two levels of CSR offsets (blocks, atoms)."""

    offset: np.ndarray
    """int64, (n + 1,): atoms of block i"""
    alpha: np.ndarray
    """float64, (atoms,)"""
    losses: np.ndarray
    """float64, (atoms,)"""
    used: np.ndarray
    """int64, (atoms,)"""
    label: np.ndarray
    """truth's dtype, flat"""
    label_offset: np.ndarray
    """int64, (atoms + 1,)"""


def empty_pool(n: int, capacity: int, length: int, dtype: np.dtype) -> Pool:
    """A pool without atoms."""
    if capacity > MOST_SLOTS:
        raise ValueError(f"{capacity:,} labellings at a time are more than the {MOST_SLOTS:,} that can be kept")
    chain = np.arange(1, capacity + 1, dtype=np.int32)
    chain[-1:] = -1
    return Pool(
        labels=np.zeros((capacity, length), dtype),
        alpha=np.zeros(capacity),
        losses=np.zeros(capacity),
        used=np.zeros(capacity, np.int64),
        row=np.zeros(capacity, np.int32),
        next=chain,
        head=np.full(n, -1, np.int64),
        counts=np.zeros(n, np.int64),
        free=np.array([0 if capacity else -1, capacity], np.int64),
    )


@inner(**PLAIN)
def find(pool, i, y, loss):
    """Slot of labelling y among the atoms of block i, -1 if it is not among them."""
    s = pool.head[i]
    while s >= 0:
        if pool.losses[s] == loss:
            row = pool.labels[s]
            same = True
            for t in range(y.size):
                if row[t] != y[t]:
                    same = False
                    break
            if same:
                return s
        s = pool.next[s]
    return -1


@inner(**PLAIN)
def insert(pool, i, y, loss, capacity):
    """Slot of a new atom of block i with weight zero, at the front of its list.

    At `capacity` atoms the least recently used atom without weight is evicted. The caller ensures that a slot is free.
    """
    if pool.counts[i] >= capacity:
        evict(pool, i)
    s = pool.free[0]
    pool.free[0] = pool.next[s]
    pool.free[1] -= 1
    for t in range(y.size):
        pool.labels[s, t] = y[t]
    pool.alpha[s] = 0.0
    pool.losses[s] = loss
    pool.used[s] = 0
    pool.row[s] = -1
    pool.next[s] = pool.head[i]
    pool.head[i] = s
    pool.counts[i] += 1
    return s


@inner(**PLAIN)
def evict(pool, i):
    """Drop the least recently used atom of block i that has no weight, if there is one (O16 Alg. 5)."""
    oldest = -1
    s = pool.head[i]
    while s >= 0:
        if pool.alpha[s] == 0.0 and (oldest < 0 or pool.used[s] < pool.used[oldest]):
            oldest = s
        s = pool.next[s]
    if oldest >= 0:
        remove(pool, i, oldest)


@inner(**PLAIN)
def remove(pool, i, slot):
    """Take an atom out of block i's list."""
    before = -1
    s = pool.head[i]
    while s != slot:
        before = s
        s = pool.next[s]
    if before < 0:
        pool.head[i] = pool.next[slot]
    else:
        pool.next[before] = pool.next[slot]
    pool.next[slot] = pool.free[0]
    pool.free[0] = slot
    pool.free[1] += 1
    pool.counts[i] -= 1


@inner(**PLAIN)
def drop_inactive(pool, i):
    """Drop all atoms of block i without weight (O16 Alg. 3)."""
    s = pool.head[i]
    while s >= 0:
        following = pool.next[s]
        if pool.alpha[s] == 0.0:
            remove(pool, i, s)
        s = following


@inner(**PLAIN)
def add_mean(P, pool, i, c, out):
    """out += c mu_i, which is summed over the atoms of block i (O16 Alg. 4)."""
    length = P.label_ptr[i + 1] - P.label_ptr[i]
    s = pool.head[i]
    while s >= 0:
        if pool.alpha[s] > 0.0:
            P.add(i, pool.labels[s, :length], c * pool.alpha[s], out)
        s = pool.next[s]


@inner(**PLAIN)
def base_of(P, i, theta, pool):
    """ell_i + <theta_i, mu_i> = sum_y alpha_i(y) (L_i(y) + <theta_i, m_i(y)>)."""
    total, length = 0.0, P.label_ptr[i + 1] - P.label_ptr[i]
    s = pool.head[i]
    while s >= 0:
        if pool.alpha[s] > 0.0:
            total += pool.alpha[s] * (pool.losses[s] + P.value(i, theta, pool.labels[s, :length]))
        s = pool.next[s]
    return total


@njit(cache=True, **JIT)
def _flatten(pool, order):
    k = 0
    for i in range(pool.head.size):
        s = pool.head[i]
        while s >= 0:
            order[k] = s
            k += 1
            s = pool.next[s]


def in_list_order(pool: Pool) -> tuple[np.ndarray, np.ndarray]:
    """int64, (atoms,) each: the slots of all atoms in list order, and their blocks."""
    order = np.empty(int(pool.counts.sum()), np.int64)
    _flatten(pool, order)
    return order, np.repeat(np.arange(pool.head.size), pool.counts)


def _pack_slots(pool: Pool, order: np.ndarray, block: np.ndarray) -> None:
    """Store the atoms in the slots `order`, whose `block` rises, one after another, and make all other slots free.

    So a block's atoms share cache lines.
    """
    atoms, slots = order.size, pool.next.size
    for column in (pool.labels, pool.alpha, pool.losses, pool.used, pool.row):
        column[:atoms] = column[order]
    pool.counts[:] = np.bincount(block, minlength=pool.head.size)
    end = np.cumsum(pool.counts)
    pool.head[:] = np.where(pool.counts > 0, end - pool.counts, -1)
    pool.next[:] = np.arange(1, slots + 1)
    pool.next[end[pool.counts > 0] - 1] = -1
    pool.next[-1:] = -1
    pool.free[:] = atoms if atoms < slots else -1, slots - atoms


def drop_unused(pool: Pool, before: int) -> None:
    """Drop all atoms without weight that were last used before a step count; the others get new slots."""
    order, block = in_list_order(pool)
    kept = (pool.alpha[order] != 0.0) | (pool.used[order] >= before)
    if not kept.all():
        _pack_slots(pool, order[kept], block[kept])


def repack(pool: Pool) -> None:
    """Store the atoms in list order."""
    _pack_slots(pool, *in_list_order(pool))


def normalise(pool: Pool) -> None:
    """Divide the alphas of each block by their sum, which rounding moves away from 1; done at every rebase point."""
    order, block = in_list_order(pool)
    alpha = pool.alpha[order]
    pool.alpha[order] = alpha / np.bincount(block, alpha, pool.head.size)[block]  # which sums in list order


@njit(cache=True, **JIT)
def keep_vertices(label_ptr, pool, blocks, vertex, loss, used, capacity):
    """Put the oracle's answers for `blocks` into the cache; a slot for each of them must be free."""
    for k in range(blocks.size):
        i = blocks[k]
        y = vertex[k, : label_ptr[i + 1] - label_ptr[i]]
        s = find(pool, i, y, loss[k])
        if s < 0:
            s = insert(pool, i, y, loss[k], capacity)
        pool.used[s] = used


@njit(cache=True, **JIT)
def keep_listed(label_ptr, pool, blocks, answers, used, capacity):
    """Put further labellings of `blocks` into the cache, the best first, so that the last of them are evicted first.

    Enough slots must be free. An atom that is there already keeps its age.
    """
    for k in range(blocks.size):
        i = blocks[k]
        for j in range(answers.counts[k]):
            y = answers.listed[k, j, : label_ptr[i + 1] - label_ptr[i]]
            if find(pool, i, y, answers.listed_losses[k, j]) < 0:
                pool.used[insert(pool, i, y, answers.listed_losses[k, j], capacity)] = used


@njit(cache=True, **JIT)
def find_atoms(label_ptr, pool, labels, losses, slots):
    """slots[i] <- slot of labels[i] (n, longest) with losses[i] in block i, -1 if it is not in the pool."""
    for i in range(slots.size):
        slots[i] = find(pool, i, labels[i, : label_ptr[i + 1] - label_ptr[i]], losses[i])


def pack(pool: Pool, label_ptr: np.ndarray, active_only: bool = False) -> Supports:
    """The atoms in list order, in arrays of their own; with `active_only` only those with alpha > 0."""
    order, block = in_list_order(pool)
    if active_only:
        active = pool.alpha[order] > 0.0
        order, block = order[active], block[active]
    length = np.diff(label_ptr)[block]
    return Supports(
        offset=np.searchsorted(block, np.arange(pool.head.size + 1)),
        alpha=pool.alpha[order],
        losses=pool.losses[order],
        used=pool.used[order],
        label=pool.labels[order][np.arange(pool.labels.shape[1]) < length[:, None]],
        label_offset=np.concatenate([[0], np.cumsum(length)]),
    )


def unpack(supports: Supports, length: int, capacity: int) -> Pool:
    """The pool of packed supports, lists in the same order; `capacity` slots (at least as many as atoms)."""
    atoms, n = supports.alpha.size, supports.offset.size - 1
    pool = empty_pool(n, max(capacity, atoms + 1), length, supports.label.dtype)
    mask = np.arange(length) < np.diff(supports.label_offset)[:, None]
    pool.labels[:atoms][mask] = supports.label
    pool.alpha[:atoms], pool.losses[:atoms], pool.used[:atoms] = supports.alpha, supports.losses, supports.used
    pool.row[:atoms] = -1
    _pack_slots(pool, np.arange(atoms), np.repeat(np.arange(n), np.diff(supports.offset)))
    return pool


def grown(columns: list[np.ndarray], slots: int) -> Pool:
    """The pool whose arrays are `columns`, with half as many slots again and at least `slots` free ones; atoms keep theirs.

    Empties `columns`, so that each array that nobody else has is freed as soon as it is copied.
    """
    before, free = columns[1].size, columns[8]
    size = before + max(before // 2, slots - int(free[1]))
    larger = empty_pool(0, size, columns[0].shape[1], columns[0].dtype)
    for array in larger[:6]:
        array[:before] = columns.pop(0)
    larger.next[-1] = free[0]
    larger.free[:] = before, free[1] + size - before
    head, counts, _ = columns
    columns.clear()
    return larger._replace(head=head, counts=counts)


def blocks_of(pool: Pool) -> np.ndarray:
    """int64, (slots,): the block of each atom; -1 for free slots."""
    order, block = in_list_order(pool)
    blocks = np.full(pool.alpha.size, -1)
    blocks[order] = block
    return blocks
