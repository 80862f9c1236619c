"""Inner products of the tokens of chains, by which norms of directions and changes of scores take no features.

A block of T tokens has its T x T Gram matrix, unless it is too long for one (`chain.long`). `MixedGrams` holds both kinds of
block, which differ in size. It is a type of its own, so that chains without long blocks compile none of it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gapwise.stages.problems.chain.kernels import tokens_norm2
from gapwise.stages.problems.chain.long import long_follow_pair, long_norm2, long_pair_norm2
from gapwise.stages.problems.chain.moves import follow_tokens, pair_tokens_norm2
from gapwise.stages.problems.protocol import compile_methods, frozen


class Grams(NamedTuple):
    """The Gram matrices of all blocks."""

    ptr: np.ndarray
    """int64, (n + 1,)"""
    values: np.ndarray
    """float32, flat (T, T) per block; (0,) if the blocks are only to be decoded"""

    def rows_norm2(self, i, delta, T, K):
        return tokens_norm2(delta, T, K, self.values, self.ptr[i])

    def pair_rows_norm2(self, i, y, z, T, K, work):
        return pair_tokens_norm2(y, z, T, self.values, self.ptr[i], work)

    def follow_rows(self, i, y, z, T, K, c, theta, work):
        follow_tokens(y, z, T, K, self.values, self.ptr[i], c, theta, work)


class MixedGrams(NamedTuple):
    """The Gram matrices of short blocks, and the entries of long ones."""

    ptr: np.ndarray
    """int64, (n + 1,)"""
    values: np.ndarray
    """float32, flat; of a block of more than `LONGEST` tokens the entries of `chain.long`"""

    def rows_norm2(self, i, delta, T, K):
        """||B delta||^2 without the transitions."""
        start, stop = self.ptr[i], self.ptr[i + 1]
        if stop - start == T * T:
            return tokens_norm2(delta, T, K, self.values, start)
        return long_norm2(delta, K, self.values, start, stop)

    def pair_rows_norm2(self, i, y, z, T, K, work):
        """||B (m(y) - m(z))||^2 without the transitions. work (at least T and K,) is workspace."""
        start, stop = self.ptr[i], self.ptr[i + 1]
        if stop - start == T * T:
            return pair_tokens_norm2(y, z, T, self.values, start, work)
        return long_pair_norm2(y, z, K, self.values, start, stop, work)

    def follow_rows(self, i, y, z, T, K, c, theta, work):
        """theta += c B' B (m(y) - m(z)), without the transitions. work (at least T and K,) is workspace."""
        start, stop = self.ptr[i], self.ptr[i + 1]
        if stop - start == T * T:
            follow_tokens(y, z, T, K, self.values, start, c, theta, work)
        else:
            long_follow_pair(y, z, K, self.values, start, stop, c, theta, work)


compile_methods(MixedGrams, "rows_norm2", "pair_rows_norm2", "follow_rows")


def grams_of(ptr: np.ndarray, values: np.ndarray, lengths: np.ndarray) -> Grams | MixedGrams:
    """The record of blocks with `lengths` tokens."""
    short = np.array_equal(np.diff(ptr), lengths**2) or not np.any(ptr)
    return (Grams if short else MixedGrams)(frozen(ptr, np.int64), frozen(values, np.float32))
