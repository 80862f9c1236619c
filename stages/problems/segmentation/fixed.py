"""Binary segmentation whose Potts terms have a fixed weight (S15): only the unary weights are learned.

With a weight c >= 0, e_pq = c times the sum of the pairwise features of superpixels p and q, and w = w_U, the score is

    sum_p <w, x_p> ([y_p = 1] - [y_p = 0])  -  sum_pq e_pq [y_p != y_q].

The second sum, -E_i(y), depends on no weight, so it goes where the loss is. The hinge of block i is

    max_y [ L_i(y) - E_i(y) + E_i(y_i)  -  <w, psi_i(y)> ],      psi_i of the unary part alone,

and to the solver the loss of y is `loss` = L_i(y) - E_i(y) + E_i(y_i): 0 at the truth, negative for labellings that cut much
more than it. Certificates and paths never need it to be >= 0: the truth keeps every hinge >= 0, hinges are convex in w, and
the dual value is linear in the losses. The task loss L_i(y) >= 0 is `task_loss`; it is what evaluate measures. Decoding
is with -E_i(y), for predictions; that is not the argmax of <theta, m_i(y)>, which `path.rule=paper` needs: it is refused.

Local coordinates are those of the superpixels, m_i(y) = 2 y - 1 in R^S, and B_i = X'.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gapwise.stages.problems.inner import inner
from gapwise.stages.problems.protocol import PLAIN, U, frozen
from gapwise.stages.problems.segmentation.kernels import gram_form, rows_add, rows_dot
from gapwise.stages.problems.segmentation.maxflow import minimum_cut, workspace
from gapwise.stages.problems.segmentation.segmentation import Segmentation, _loss, _terminals


class FixedSegmentation(NamedTuple):
    """n images; d = D_U."""

    n: int
    d: int
    local_ptr: np.ndarray
    label_ptr: np.ndarray
    truth: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    unary: np.ndarray
    """float32 or uint8, (label_ptr[-1], D_U)"""
    unary_scale: float
    """the factor of `unary`; 1 for plain float32"""
    strength: np.ndarray
    """float64, (edge_ptr[-1],): e_pq >= 0"""
    energy: np.ndarray
    """float64, (n,): E_i(y_i)"""
    edge_ptr: np.ndarray
    """int64, (n + 1,)"""
    edges: np.ndarray
    """int32, (edge_ptr[-1], 2): superpixels of the image, from 0"""
    gram_ptr: np.ndarray
    """int64, (n + 1,)"""
    gram: np.ndarray
    """float32, (gram_ptr[-1],): X X' of every image, flat; X is scaled"""
    loss_if_wrong: np.ndarray
    """float64, (label_ptr[-1],): the task loss of a wrong label at each superpixel"""
    arc_ptr: np.ndarray
    """int32, (label_ptr[-1] + n,); this and the next three are `maxflow.adjacency`"""
    head: np.ndarray
    """int32, (2 * edge_ptr[-1],)"""
    reverse: np.ndarray
    """int32, (2 * edge_ptr[-1],)"""
    edge: np.ndarray
    """int32, (2 * edge_ptr[-1],)"""
    most_superpixels: int
    most_edges: int

    @property
    def labels(self) -> int:
        """Background and foreground."""
        return 2

    @property
    def unconstrained(self) -> bool:
        """Every superpixel may have either label."""
        return True

    @property
    def weightless(self) -> bool:
        """A part of the score has no weights."""
        return True

    def scores(self, i, w, theta):
        rows_dot(self.unary, self.unary_scale, self.label_ptr[i], w, theta)

    def max_oracle(self, i, theta, y, scratch):
        _cut(self, i, theta, True, y, scratch)
        return _margin(self, i, y)

    def decode(self, i, theta, y, scratch):
        """y <- argmax_y <theta, m_i(y)> - E_i(y)."""
        _cut(self, i, theta, False, y, scratch)

    def value(self, i, theta, y):
        total = 0.0
        for p in range(y.size):
            total += theta[p] * (2.0 * y[p] - 1.0)
        return total

    def add(self, i, y, c, out):
        for p in range(y.size):
            out[p] += c * (2.0 * y[p] - 1.0)

    def norm2(self, i, delta):
        return max(gram_form(self.gram[self.gram_ptr[i] : self.gram_ptr[i + 1]], delta), 0.0)

    def push(self, i, c, delta, w):
        rows_add(self.unary, self.label_ptr[i], c * self.unary_scale, delta, w)

    def by_sum(self):
        """The rows of a direction are read once: `norm2` reads the Gram matrix as well."""
        return True

    def loss(self, i, y):
        """L_i(y) - E_i(y) + E_i(y_i)."""
        return _margin(self, i, y)

    def task_loss(self, i, y):
        """L_i(y)."""
        return _loss(self.truth, self.loss_if_wrong, self.label_ptr[i], y)

    def least_loss(self, i):
        """Unknown: the losses of cut labellings may be below 0."""
        return 0.0

    def scratch(self):
        return workspace(self.most_superpixels, self.most_edges)


@inner(**PLAIN)
def _margin(self, i, y):
    first, cut = self.edge_ptr[i], 0.0
    for e in range(first, self.edge_ptr[i + 1]):
        if y[U(self.edges[e, 0])] != y[U(self.edges[e, 1])]:
            cut += self.strength[e]
    return _loss(self.truth, self.loss_if_wrong, self.label_ptr[i], y) - (cut - self.energy[i])


@inner(**PLAIN)
def _cut(self, i, theta, augmented, y, scratch):
    start, stop, first, last = self.label_ptr[i], self.label_ptr[i + 1], self.edge_ptr[i], self.edge_ptr[i + 1]
    _terminals(theta, self.truth[start:stop], self.loss_if_wrong[start:stop], augmented, stop - start, scratch[0])
    minimum_cut(
        self.arc_ptr[start + i : stop + i + 1],
        self.head[2 * first : 2 * last],
        self.reverse[2 * first : 2 * last],
        self.edge[2 * first : 2 * last],
        self.strength[first:last],
        y,
        scratch,
    )


def with_fixed_weight(problem: Segmentation, weight: float) -> FixedSegmentation:
    """`problem` with this weight for all its pairwise features; ValueError unless it is a finite number >= 0."""
    if not 0.0 <= weight < np.inf:
        raise ValueError(f"segmentation: potts is {weight!r}, expected a number >= 0, or null to learn the weights")
    P, edges = problem, problem.edges.astype(np.int64)
    strength = weight * np.asarray(P.pairwise, np.float64).sum(axis=1)
    image = np.repeat(np.arange(P.n), np.diff(P.edge_ptr))
    cut = P.truth[P.label_ptr[image] + edges[:, 0]] != P.truth[P.label_ptr[image] + edges[:, 1]]
    return FixedSegmentation(
        n=P.n,
        d=P.unary.shape[1],
        local_ptr=P.label_ptr,
        label_ptr=P.label_ptr,
        truth=P.truth,
        lower=frozen(np.empty(0)),
        upper=frozen(np.empty(0)),
        unary=P.unary,
        unary_scale=P.unary_scale,
        strength=frozen(strength),
        energy=frozen(np.bincount(image, np.where(cut, strength, 0.0), minlength=P.n)),
        edge_ptr=P.edge_ptr,
        edges=P.edges,
        gram_ptr=P.gram_ptr,
        gram=P.gram,
        loss_if_wrong=P.loss_if_wrong,
        arc_ptr=P.arc_ptr,
        head=P.head,
        reverse=P.reverse,
        edge=P.edge,
        most_superpixels=P.most_superpixels,
        most_edges=P.most_edges,
    )
