"""Planes: joint labellings of all blocks, whose weights are a dual point of the 1-slack problem (Joachims, Finley, Yu 2009).

Plane k has slope a_k = (1/n) sum_i psi_i(y_i^k) in R^d and offset b_k = (1/n) sum_i L_i(y_i^k). It is stored as the atoms of
the pool that it chooses, one per block, without those of the truth, for which psi and L are 0; equal labellings of different
planes are one atom. One plane may be a mixture, with several atoms of a block and their weights: the dual point that a
solve starts from. With weights beta_k >= 0 of sum at most 1 (the rest is the true labelling's), the block weights are

    alpha_i(y) = sum_k beta_k [y = y_i^k],  so that  sum_k beta_k a_k = (1/n) sum_i B_i (m_i(y_i) - mu_i) = lambda v.

The a_k are not kept. <a_k, x> = (1/n) sum_i <psi_i(y_i^k), x> follows from the scores of the atoms at x, which one pass over
the blocks without oracles computes for all planes (`atom_scores_driver`). So K planes take at most 12 K n bytes, 8 K^2 for
the Gram matrix, and a labelling per distinct atom. Dropping planes bounds K by the active ones and those of the last
iterations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
from numba import njit

from gapwise.stages.problems.compiled import driver
from gapwise.stages.problems.moves import score_labels
from gapwise.stages.problems.protocol import JIT, largest, widest_block
from gapwise.stages.problems.stored import check_array
from gapwise.stages.solver.packed import ArraySpec

SPECS: tuple[ArraySpec, ...] = (
    ("plane_offset", ("plane_edge",), "i8", "entries of plane k are plane_offset[k]:plane_offset[k + 1]"),
    ("plane_atom", ("plane_entry",), "i4", "atoms of the plane, as rows of support_alpha; none where it is the truth"),
    ("plane_share", ("plane_entry",), "f8", "share of the atom in its block: 1, or less in the plane a solve started from"),
    ("plane_weight", ("plane",), "f8", "weight of the plane in the dual point; the rest is the true labelling's"),
    ("plane_loss", ("plane",), "f8", "mean task loss of the joint labelling"),
    ("plane_idle", ("plane",), "i8", "iterations since the plane last had weight"),
    ("plane_gram", ("plane", "other_plane"), "f8", "inner products of the planes' slopes"),
)  # fmt: skip


@dataclass
class Planes:
    """K planes, in the order in which they were found."""

    atom: list[np.ndarray]
    """int32, per plane: slots of the pool"""
    share: list[np.ndarray]
    """float64, per plane: the atoms' shares in their blocks"""
    beta: np.ndarray
    """float64, (K,): weights, >= 0, with sum at most 1"""
    loss: np.ndarray
    """float64, (K,): b_k"""
    idle: np.ndarray
    """int64, (K,): iterations since beta_k was last > 0"""
    gram: np.ndarray
    """float64, (K, K): <a_k, a_l>"""

    @classmethod
    def empty(cls) -> Self:
        """No planes."""
        return cls([], [], np.empty(0), np.empty(0), np.empty(0, np.int64), np.empty((0, 0)))

    @property
    def count(self) -> int:
        """K."""
        return len(self.atom)

    def knows(self, atom: np.ndarray) -> bool:
        """Whether a plane is made of these whole atoms."""
        return any(np.array_equal(atom, a) and np.all(s == 1.0) for a, s in zip(self.atom, self.share, strict=True))

    def averages(self, of_atoms: np.ndarray, n: int) -> np.ndarray:
        """float64, (K,): (1/n) sum over the atoms of each plane of their share times `of_atoms` (slots,)."""
        sums = [np.sum(s * of_atoms[a]) for a, s in zip(self.atom, self.share, strict=True)]
        return np.array(sums, dtype=float).reshape(-1) / n

    def add(self, atom: np.ndarray, share: np.ndarray, loss: float, row: np.ndarray) -> None:
        """Add a plane of weight 0; `row` (K + 1,): its inner products with all planes, itself last."""
        self.atom.append(atom.astype(np.int32))
        self.share.append(share)
        self.beta, self.loss = np.append(self.beta, 0.0), np.append(self.loss, loss)
        self.idle = np.append(self.idle, 0)
        wider = np.empty((self.count, self.count))
        wider[:-1, :-1], wider[-1], wider[:, -1] = self.gram, row, row
        self.gram = wider

    def drop_idle(self, most: int) -> None:
        """Count the iteration, and drop the planes that have been without weight for more than `most` iterations."""
        self.idle = np.where(self.beta > 0.0, 0, self.idle + 1)
        keep = np.flatnonzero(self.idle <= most)
        if keep.size < self.count:
            self.atom, self.share = [self.atom[k] for k in keep], [self.share[k] for k in keep]
            self.beta, self.loss, self.idle = self.beta[keep], self.loss[keep], self.idle[keep]
            self.gram = self.gram[np.ix_(keep, keep)]

    def used(self, slots: int) -> np.ndarray:
        """bool, (slots,): whether a plane chooses the atom."""
        chosen = np.zeros(slots, bool)
        for atom in self.atom:
            chosen[atom] = True
        return chosen

    def renumber(self, new: np.ndarray) -> None:
        """Replace every slot s by new[s]."""
        self.atom = [new[atom].astype(np.int32) for atom in self.atom]

    def alphas(self, slots: int) -> np.ndarray:
        """float64, (slots,): sum_k beta_k share; 0 for the truths."""
        alpha = np.zeros(slots)
        for k in np.flatnonzero(self.beta > 0.0):
            alpha[self.atom[k]] += self.beta[k] * self.share[k]
        return alpha

    # -- committed state ----------------------------------------------------------------------------------------------
    def packed(self) -> dict[str, np.ndarray]:
        """The arrays of `SPECS`."""
        none = [np.empty(0)]
        return {
            "plane_offset": np.cumsum([0, *(atom.size for atom in self.atom)]).astype(np.int64),
            "plane_atom": np.concatenate(self.atom or none).astype(np.int32),
            "plane_share": np.concatenate(self.share or none),
            "plane_weight": self.beta,
            "plane_loss": self.loss,
            "plane_idle": self.idle,
            "plane_gram": self.gram,
        }

    @classmethod
    def restored(cls, arrays: Mapping[str, np.ndarray], atoms: int) -> Self:
        """The planes of a commit whose pool has `atoms` atoms; ValueError, naming the array, if they do not fit."""
        loss = check_array("plane_loss", arrays["plane_loss"], (None,), np.float64, finite=True)
        K = loss.size
        offset = check_array("plane_offset", arrays["plane_offset"], (K + 1,), np.int64)
        atom = check_array("plane_atom", arrays["plane_atom"], (None,), np.int32)
        if offset[0] != 0 or offset[-1] != atom.size or np.any(np.diff(offset) < 0):
            raise ValueError(f"plane_offset: expected numbers that rise from 0 to {atom.size}")
        if np.any((atom < 0) | (atom >= atoms)):
            raise ValueError(f"plane_atom: expected rows of support_alpha, 0 to {atoms - 1}")
        share = check_array("plane_share", arrays["plane_share"], (atom.size,), np.float64, finite=True)
        beta = check_array("plane_weight", arrays["plane_weight"], (K,), np.float64, finite=True)
        if np.any((beta < 0.0) | (beta > 1.0 + 1e-6)):
            raise ValueError("plane_weight: expected weights from 0 to 1")
        idle = check_array("plane_idle", arrays["plane_idle"], (K,), np.int64)
        gram = check_array("plane_gram", arrays["plane_gram"], (K, K), np.float64, finite=True)
        cut = offset[1:-1]
        parts = [np.split(x, cut) if K else [] for x in (atom, share)]
        return cls(parts[0], parts[1], beta.copy(), loss.copy(), idle.copy(), gram.copy())


@driver
def atom_scores_driver(fingerprint: str) -> Callable[..., None]:
    """`score(P, pool, truth, x, first, last, out)`: out[s] <- <psi_i(y_s), x> for the atoms s of blocks first to last - 1.

    x is (d,), out (slots,); truth (n,) has the slot of each block's true labelling.
    """

    @njit(cache=True, **JIT)
    def score(P, pool, truth, x, first, last, out):
        fingerprint  # noqa: B018
        theta_all, most = np.empty(widest_block(P.local_ptr)), largest(pool.counts)
        slots_all, values_all = np.empty(most, np.int64), np.empty(most)
        for i in range(first, last):
            slots, values = slots_all[: pool.counts[i]], values_all[: pool.counts[i]]
            s = pool.head[i]
            for k in range(slots.size):
                slots[k] = s
                s = pool.next[s]
            score_labels(P, i, x, pool.labels, slots, theta_all[: P.local_ptr[i + 1] - P.local_ptr[i]], values)
            at_truth = 0.0
            for k in range(slots.size):
                if slots[k] == truth[i]:
                    at_truth = values[k]
            for k in range(slots.size):
                out[slots[k]] = at_truth - values[k]

    return score
