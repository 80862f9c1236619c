"""Inner products of the tokens of chains, by which norms of directions and changes of scores take no features.

A block of T tokens has its T x T Gram matrix, unless it is too long for one (`chain.long`). `MixedGrams` holds both kinds of
block, which differ in size. It is a type of its own, so that chains without long blocks compile none of it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gapwise.stages.problems.chain.kernels import tokens_norm2, transitions_norm2
from gapwise.stages.problems.chain.long import long_follow_pair, long_norm2, long_pair_norm2
from gapwise.stages.problems.chain.moves import (
    add_transitions_norm2,
    follow_tokens,
    follow_transitions,
    pair_tokens_norm2,
)
from gapwise.stages.problems.protocol import compile_methods, frozen


class Grams(NamedTuple):
    """The Gram matrices of all blocks."""

    ptr: np.ndarray
    """int64, (n + 1,)"""
    values: np.ndarray
    """float32, flat (T, T) per block; (0,) if the blocks are only to be decoded"""

    def gram_norm2(self, i, delta, T, K):
        return tokens_norm2(delta, T, K, self.values, self.ptr[i]) + transitions_norm2(delta, T, K)

    def pair_gram_norm2(self, i, y, z, T, K, work):
        total = pair_tokens_norm2(y, z, T, self.values, self.ptr[i], work)
        return add_transitions_norm2(total, y, z, T, K, work[T:])

    def follow_gram_pair(self, i, y, z, T, K, c, theta, work):
        follow_tokens(y, z, T, K, self.values, self.ptr[i], c, theta, work)
        follow_transitions(y, z, T, K, c, theta)


class MixedGrams(NamedTuple):
    """The Gram matrices of short blocks, and the entries of long ones."""

    ptr: np.ndarray
    """int64, (n + 1,)"""
    values: np.ndarray
    """float32, flat; of a block of more than `LONGEST` tokens the entries of `chain.long`"""

    def gram_norm2(self, i, delta, T, K):
        """||B delta||^2."""
        start, stop = self.ptr[i], self.ptr[i + 1]
        if stop - start == T * T:
            return tokens_norm2(delta, T, K, self.values, start) + transitions_norm2(delta, T, K)
        return long_norm2(delta, K, self.values, start, stop) + transitions_norm2(delta, T, K)

    def pair_gram_norm2(self, i, y, z, T, K, work):
        """||B (m(y) - m(z))||^2. work (T + K * K,) is workspace."""
        start, stop = self.ptr[i], self.ptr[i + 1]
        if stop - start == T * T:
            total = pair_tokens_norm2(y, z, T, self.values, start, work)
        else:
            total = long_pair_norm2(y, z, K, self.values, start, stop, work)
        return add_transitions_norm2(total, y, z, T, K, work[T:])

    def follow_gram_pair(self, i, y, z, T, K, c, theta, work):
        """theta += c B' B (m(y) - m(z)). work (T + K * K,) is workspace."""
        start, stop = self.ptr[i], self.ptr[i + 1]
        if stop - start == T * T:
            follow_tokens(y, z, T, K, self.values, start, c, theta, work)
        else:
            long_follow_pair(y, z, K, self.values, start, stop, c, theta, work)
        follow_transitions(y, z, T, K, c, theta)


compile_methods(MixedGrams, "gram_norm2", "pair_gram_norm2", "follow_gram_pair")


def grams_of(ptr: np.ndarray, values: np.ndarray, lengths: np.ndarray) -> Grams | MixedGrams:
    """The record of blocks with `lengths` tokens."""
    short = np.array_equal(np.diff(ptr), lengths**2) or not np.any(ptr)
    return (Grams if short else MixedGrams)(frozen(ptr, np.int64), frozen(values, np.float32))
