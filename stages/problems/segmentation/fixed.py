"""Binary segmentation whose Potts terms have a fixed weight (S15): only the unary weights are learned.

With a weight c >= 0, e_pq = c times the sum of the pairwise features of superpixels p and q, and w = w_U, the score is

    sum_p <w, x_p> ([y_p = 1] - [y_p = 0])  -  sum_pq e_pq [y_p != y_q].

The second sum, -E_i(y), depends on no weight, so it goes where the loss is. The hinge of block i is

    max_y [ L_i(y) - E_i(y) + E_i(y_i)  -  <w, psi_i(y)> ],      psi_i of the unary part alone,

and to the solver the loss of y is `loss` = L_i(y) - E_i(y) + E_i(y_i): 0 at the truth, negative for labellings that cut much
more than it. Certificates and paths never need it to be >= 0: the truth keeps every hinge >= 0, hinges are convex in w, and
the dual value is linear in the losses. The task loss L_i(y) >= 0 is `task_loss`; it is what evaluate measures. Decoding
is with -E_i(y), for predictions; that is not the argmax of <theta, m_i(y)>, which `path.rule=paper` needs: it is refused.

Local coordinates are those of the superpixels, m_i(y) = 2 y - 1 in R^S, and B_i = X'. A `NamedTuple` inherits no fields, so
those that `Segmentation` has, too, stand here again; methods that are the same are taken from it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gapwise.stages.problems.inner import inner
from gapwise.stages.problems.operations import Operations
from gapwise.stages.problems.protocol import PLAIN, U, frozen
from gapwise.stages.problems.segmentation.cut import best_labelling, forced_scores
from gapwise.stages.problems.segmentation.images import Images, cut_operations, wrong_area
from gapwise.stages.problems.segmentation.kernels import gram_form, rows_add, rows_dot
from gapwise.stages.problems.segmentation.segmentation import Segmentation
from gapwise.stages.problems.shared import takes


@takes(Segmentation, "labels", "unconstrained", "by_sum", "scratch", "ranked_scratch")
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
    images: Images

    @property
    def weightless(self) -> bool:
        """A part of the score has no weights."""
        return True

    @property
    def operations(self) -> Operations:
        """As of `Segmentation`, but features are unary."""
        features = self.unary.size / self.n
        return Operations(features + cut_operations(self.images, self.label_ptr), 2.0 * features)

    def scores(self, i, w, theta):
        rows_dot(self.unary, self.unary_scale, self.label_ptr[i], w, theta)

    def max_oracle(self, i, theta, y, scratch):
        _cut(self, i, theta, True, y, scratch)
        return _margin(self, i, y)

    def decode(self, i, theta, y, scratch):
        """y <- argmax_y <theta, m_i(y)> - E_i(y)."""
        _cut(self, i, theta, False, y, scratch)

    def max_marginals(self, i, theta, y, out, scratch):
        """As of `Segmentation`: scores are <theta, m_i(y)> - E_i(y)."""
        start, stop, first, last = (
            self.label_ptr[i],
            self.label_ptr[i + 1],
            self.images.edge_ptr[i],
            self.images.edge_ptr[i + 1],
        )
        forced_scores(self.images, self.truth, i, start, stop, theta, self.strength[first:last], y, out, scratch)

    def value(self, i, theta, y):
        total = 0.0
        for p in range(y.size):
            total += theta[p] * (2.0 * y[p] - 1.0)
        return total

    def add(self, i, y, c, out):
        for p in range(y.size):
            out[p] += c * (2.0 * y[p] - 1.0)

    def norm2(self, i, delta):
        return max(gram_form(self.images.gram[self.images.gram_ptr[i] : self.images.gram_ptr[i + 1]], delta), 0.0)

    def push(self, i, c, delta, w):
        rows_add(self.unary, self.label_ptr[i], c * self.unary_scale, delta, w)

    def loss(self, i, y):
        """L_i(y) - E_i(y) + E_i(y_i)."""
        return _margin(self, i, y)

    def task_loss(self, i, y):
        """L_i(y)."""
        return wrong_area(self.truth, self.images.loss_if_wrong, self.label_ptr[i], y)

    def least_loss(self, i: int) -> float:
        """Unknown: the losses of cut labellings may be below 0."""
        return 0.0


@inner(**PLAIN)
def _margin(self, i, y):
    first, cut = self.images.edge_ptr[i], 0.0
    for e in range(first, self.images.edge_ptr[i + 1]):
        if y[U(self.images.edges[e, 0])] != y[U(self.images.edges[e, 1])]:
            cut += self.strength[e]
    return wrong_area(self.truth, self.images.loss_if_wrong, self.label_ptr[i], y) - (cut - self.energy[i])


@inner(**PLAIN)
def _cut(self, i, theta, augmented, y, scratch):
    start, stop, first, last = (
        self.label_ptr[i],
        self.label_ptr[i + 1],
        self.images.edge_ptr[i],
        self.images.edge_ptr[i + 1],
    )
    best_labelling(self.images, self.truth, i, start, stop, theta, self.strength[first:last], augmented, y, scratch)


def with_fixed_weight(problem: Segmentation, weight: float) -> FixedSegmentation:
    """`problem` with this weight for all its pairwise features; ValueError unless it is a finite number >= 0."""
    if not 0.0 <= weight < np.inf:
        raise ValueError(f"segmentation: potts is {weight!r}, expected a number >= 0, or null to learn the weights")
    P, edges = problem, problem.images.edges.astype(np.int64)
    strength = weight * np.asarray(P.pairwise, np.float64).sum(axis=1)
    image = np.repeat(np.arange(P.n), np.diff(P.images.edge_ptr))
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
        images=P.images,
    )
