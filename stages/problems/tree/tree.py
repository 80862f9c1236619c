"""Trees: parts at places on a grid, tied by springs of several types; human poses are the first use (O16 App. I.4).

V nodes and A = V - 1 arcs form a tree, whose root is node 0; an arc is numbered by its child, from 0, and every node comes
after its parent. A labelling gives each node a place l on the block's grid (row by row) and each arc two types: t of the
child as seen from the parent, u of the parent as seen from the child (Chen and Yuille, NIPS 2014; Yang and Ramanan, CVPR
2011). With score maps U_v and relation maps R, both given, the score is linear in w:

    sum_v a_v U_v(l_v)  +  sum_arcs [ b_t' psi(l_c - l_p - r_t)  +  b_u' psi(l_p - l_c - r_u)
                                      + c_1 R_t(l_p)  +  c_2 R_u(l_c) ],       psi(dx, dy) = (dx, -s dx^2, dy, -s dy^2)

where r_t is the type's usual displacement (its anchor) and every type of either end of an arc has its own b in R^4. A
cell of displacement counts `per_cell`, and s is `per_square`; stored unary maps count `per_unary`. With T types there are
V + 2 A T 4 + 2 A weights: for the 26 nodes and 13 types of O16, 26 of unary maps, 2,600 of deformations and 50 of relation
maps, 2,676 in all. Weights of squares are constrained to be >= 0, so that a spring pulls back; the oracle does not need
it. d is small, so local coordinates are the weights themselves: p_i = d, B_i = I, m_i(y) = phi(x_i, y).

Loss: sum_v e_v min(1, |l_v - l_v*|^2 / s_i^2), with shares e_v >= 0 that sum to one (types and nodes of share 0 cost
nothing), and s_i the block's scale.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from gapwise.records import Facts
from gapwise.stages.problems.compiled import inner
from gapwise.stages.problems.protocol import PLAIN, U, add_scaled, dot, frozen
from gapwise.stages.problems.tree.maxsum import maximise, misplaced, workspace


class Tree(NamedTuple):
    """n blocks with V nodes, A = V - 1 arcs and T types; d = V + 8 A T + 2 A."""

    n: int
    d: int
    local_ptr: np.ndarray
    label_ptr: np.ndarray
    truth: np.ndarray
    """int16: V places, then the types t, u of each arc"""
    lower: np.ndarray
    upper: np.ndarray
    labels: int
    """the largest number of places, or of types"""
    hw: np.ndarray
    """int64, (n, 2): rows and columns of the grid"""
    parent: np.ndarray
    """int64, (V,): parent[v] < v; -1 for node 0"""
    anchors: np.ndarray
    """float64, (A, 2, T, 2): usual displacement x, y in cells, of the child from the parent, then the other way round"""
    per_cell: float
    """what one cell of displacement counts in psi"""
    per_square: float
    """factor of the squares in psi"""
    per_unary: float
    """factor of the stored unary maps"""
    node_loss: np.ndarray
    """float64, (V,)"""
    scale2: np.ndarray
    """float64, (n,): s_i^2 in cells^2"""
    unary: np.ndarray
    """float32, (unary_ptr[-1],): V maps a block"""
    unary_ptr: np.ndarray
    """int64, (n + 1,)"""
    relations: np.ndarray
    """float32 or uint8, (relations_ptr[-1],): (A, 2, T) maps a block; the values are relation_scale times these"""
    relations_ptr: np.ndarray
    """int64, (n + 1,)"""
    relation_scale: float
    most_rows: int
    most_columns: int

    @property
    def oracle_cost(self) -> float:
        """Of messages along rows and columns, for all types."""
        return 1e4

    def scores(self, i, w, theta):
        for j in range(theta.size):
            theta[j] = w[j]

    def max_oracle(self, i, theta, y, scratch):
        return maximise(self, i, theta, True, y, scratch)

    def decode(self, i, theta, y, scratch):
        maximise(self, i, theta, False, y, scratch)

    def value(self, i, theta, y):
        total, size = 0.0, self.hw[i, 0] * self.hw[i, 1]
        for v in range(self.parent.size):
            total += (theta[v] * self.per_unary) * self.unary[U(self.unary_ptr[i] + v * size + y[v])]
        for end in range(2 * (self.parent.size - 1)):
            o, dx, dx2, dy, dy2, r, relation = _end_of_arc(self, i, end, y)
            total += theta[o] * dx - theta[o + 1] * dx2 + theta[o + 2] * dy - theta[o + 3] * dy2
            total += theta[r] * (self.relation_scale * relation)
        return total

    def add(self, i, y, c, out):
        size = self.hw[i, 0] * self.hw[i, 1]
        for v in range(self.parent.size):
            out[v] += (c * self.per_unary) * self.unary[U(self.unary_ptr[i] + v * size + y[v])]
        for end in range(2 * (self.parent.size - 1)):
            o, dx, dx2, dy, dy2, r, relation = _end_of_arc(self, i, end, y)
            out[o] += c * dx
            out[o + 1] -= c * dx2
            out[o + 2] += c * dy
            out[o + 3] -= c * dy2
            out[r] += c * (self.relation_scale * relation)

    def norm2(self, i, delta):
        return dot(delta, delta)

    def push(self, i, c, delta, w):
        add_scaled(c, delta, w)

    def loss(self, i, y):
        total = 0.0
        for v in range(self.parent.size):
            total += misplaced(self, i, v, np.int64(y[v]))
        return total

    def least_loss(self, i: int) -> float:
        """0: other types at the true places cost nothing; with one type and all shares positive, one cell of one node."""
        if self.anchors.shape[2] > 1 or np.min(self.node_loss) == 0.0:
            return 0.0
        return float(np.min(self.node_loss)) * min(1.0, 1.0 / float(self.scale2[i]))

    def scratch(self):
        return workspace(self.parent.size, self.anchors.shape[2], self.most_rows, self.most_columns)


@inner(**PLAIN)
def _end_of_arc(self, i, end, y):
    """Of end 2 * arc + side of block i's arcs: the first of the four weights of its type, what they count at y (dx, its
    square, dy, its square), the weight of its relation map, and the map's value at y."""
    V, T, columns, size = self.parent.size, self.anchors.shape[2], self.hw[i, 1], self.hw[i, 0] * self.hw[i, 1]
    arc, side, t = end // 2, end % 2, np.int64(y[V + end])
    p, c = np.int64(y[self.parent[arc + 1]]), np.int64(y[arc + 1])
    sign, position = 1.0 - 2.0 * side, c if side else p
    dx = (sign * (c % columns - p % columns) - self.anchors[arc, side, t, 0]) * self.per_cell
    dy = (sign * (c // columns - p // columns) - self.anchors[arc, side, t, 1]) * self.per_cell
    relation = self.relations[U(self.relations_ptr[i] + (end * T + t) * size + position)]
    return (
        V + (end * T + t) * 4,
        dx,
        self.per_square * (dx * dx),
        dy,
        self.per_square * (dy * dy),
        self.d - 2 * (V - 1) + end,
        relation,
    )


def weights(nodes: int, types: int) -> int:
    """d of a tree with this many nodes and types."""
    return nodes + 2 * (nodes - 1) * (4 * types + 1)


def squares(nodes: int, types: int) -> np.ndarray:
    """bool (d,): which weights are those of squared displacements."""
    squared = np.zeros(weights(nodes, types), bool)
    squared[nodes : nodes + 8 * (nodes - 1) * types].reshape(-1, 4)[:, 1::2] = True
    return squared


def build(arrays: Mapping[str, np.ndarray], meta: Facts) -> Tree:
    """Problem over the arrays of one split.

    Parameters
    ----------
    arrays
        A block: ``labels`` (V + 2 A,) int16, V places and the types of each arc; ``grid`` (1, 2), its rows H and columns
        W; ``loss_scale`` (1,), s_i in cells; ``unary`` (V * H * W,) float32; ``relations`` (A * 2 * T * H * W,) float32
        or uint8; each with its ``<name>_ptr``. Shared: ``parent`` (V,), ``anchors`` (A, 2, T, 2), ``node_loss`` (V,); for
        uint8 ``relation_scale`` (1,).
    meta
        ``per_cell``, ``per_square`` and ``per_unary`` (each 1 by default): what a cell of displacement counts, the factor
        of the squares of that, and the factor of unary maps; ``checked``: blocks have passed `check_block`, so opening
        does not read the maps.

    Raises
    ------
    ValueError
        If an array is invalid; the message names it, and the block.
    """
    parent, anchors, share = checked_tree(arrays)
    V, T = parent.size, anchors.shape[2]
    d, length = weights(V, T), V + 2 * (V - 1)
    hw = np.asarray(arrays["grid"], np.int64).reshape(-1, 2)
    n, sizes, scale = len(hw), hw[:, 0] * hw[:, 1], np.asarray(arrays["loss_scale"], float).reshape(-1)
    ptr = {name: np.asarray(arrays[f"{name}_ptr"], np.int64) for name in ("labels", "unary", "relations")}
    for name, expected in (
        ("labels", 0 * sizes + length),
        ("unary", V * sizes),
        ("relations", 2 * (V - 1) * T * sizes),
    ):
        got = np.diff(ptr[name])
        if got.size != n or not np.array_equal(got, expected):
            k = int(np.argmax(got != expected)) if got.size == n else n
            fault = f"block {k}: {name} has length {got[k]}, expected {expected[k]}" if k < n else f"{got.size} blocks"
            raise ValueError(f"tree: {fault} ({name}, for {n} grids)" if k == n else f"tree: {fault}")
    if scale.shape != (n,) or not ((scale > 0) & (scale < np.inf)).all():
        raise ValueError("tree: loss_scale must be a positive number a block")
    truth = np.asarray(arrays["labels"]).reshape(n, length)
    if not meta.get("checked", False):
        for i in range(n):
            maps = {name: np.asarray(arrays[name])[ptr[name][i] : ptr[name][i + 1]] for name in ("unary", "relations")}
            check_block(truth[i], hw[i : i + 1], parent.size, T, maps, f"tree: block {i}")
    relations = np.asarray(arrays["relations"]) if type(arrays["relations"]) is not np.memmap else arrays["relations"]
    codes = relations.dtype == np.uint8
    lower = np.where(squares(V, T), 0.0, -np.inf)
    return Tree(
        n=n,
        d=d,
        local_ptr=frozen(np.arange(n + 1) * d, np.int64),
        label_ptr=frozen(np.arange(n + 1) * length, np.int64),
        truth=frozen(truth.reshape(-1), np.int16),
        lower=frozen(lower),
        upper=frozen(np.full(d, np.inf)),
        labels=max(int(sizes.max(initial=1)), T),
        hw=frozen(hw, np.int64),
        parent=frozen(parent, np.int64),
        anchors=frozen(anchors, np.float64),
        per_cell=float(meta.get("per_cell", 1.0)),
        per_square=float(meta.get("per_square", 1.0)),
        per_unary=float(meta.get("per_unary", 1.0)),
        node_loss=frozen(share, np.float64),
        scale2=frozen(scale**2, np.float64),
        unary=frozen(arrays["unary"], np.float32),
        unary_ptr=frozen(ptr["unary"]),
        relations=frozen(relations, None if codes else np.float32),
        relations_ptr=frozen(ptr["relations"]),
        relation_scale=scale_of(arrays),
        most_rows=int(hw[:, 0].max(initial=1)),
        most_columns=int(hw[:, 1].max(initial=1)),
    )


def scale_of(arrays: Mapping[str, np.ndarray]) -> float:
    """Factor of the stored relation maps: ``relation_scale``; 1 for float maps without it."""
    given = np.asarray(arrays.get("relation_scale", () if arrays["relations"].dtype == np.uint8 else (1.0,)), float)
    if given.size != 1 or not np.isfinite(given).all():
        raise ValueError(
            f"tree: relations is {arrays['relations'].dtype} and relation_scale has {given.size} entries; expected one "
            "finite number, the factor of the stored values"
        )
    return float(given.reshape(-1)[0])


def checked_tree(arrays: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """``parent``, ``anchors`` and ``node_loss``; ValueError says which of them does not describe a tree."""
    parent = np.asarray(arrays["parent"], np.int64).reshape(-1)
    anchors, share = np.asarray(arrays["anchors"], float), np.asarray(arrays["node_loss"], float)
    V = parent.size
    if V < 1 or parent[0] != -1 or not ((parent[1:] >= 0) & (parent[1:] < np.arange(1, V))).all():
        raise ValueError(
            f"tree: parent is {parent.tolist()}; expected -1 for node 0, the root, and for every other node one before it"
        )
    if anchors.ndim != 4 or anchors.shape[:2] != (V - 1, 2) or anchors.shape[2] < 1 or anchors.shape[3] != 2:
        raise ValueError(f"tree: anchors is {anchors.shape}; expected ({V - 1}, 2, types, 2) for {V} nodes")
    if not np.isfinite(anchors).all():
        raise ValueError("tree: anchors holds a value that is not finite")
    if share.shape != (V,) or not (share >= 0).all() or not np.isclose(share.sum(), 1.0):
        raise ValueError(
            f"tree: node_loss must be {V} shares >= 0 that sum to 1; got {share.shape}, sum {share.sum():g}"
        )
    return parent, anchors, share


def check_block(
    labels: np.ndarray, hw: np.ndarray, nodes: int, types: int, maps: Mapping[str, np.ndarray], where: str
) -> None:
    """ValueError, beginning with `where`, unless places are on the grid, types exist, and all map values are finite."""
    rows, columns = (int(k) for k in np.asarray(hw).reshape(-1))
    size = rows * columns
    if rows < 1 or columns < 1 or size > np.iinfo(np.int16).max:
        raise ValueError(f"{where}: the grid is {rows} x {columns}; expected 1 to {np.iinfo(np.int16).max} places")
    for name, part, count in (("place", labels[:nodes], size), ("type", labels[nodes:], types)):
        bad = (part < 0) | (part >= count)
        if bad.any():
            k = int(np.argmax(bad))
            raise ValueError(f"{where}: labels holds the {name} {part[k]} (entry {k} of them), expected 0..{count - 1}")
    for name, values in maps.items():
        if values.dtype != np.uint8 and not np.isfinite(values).all():
            raise ValueError(
                f"{where}: {name} has a value that is not finite (entry {int(np.argmin(np.isfinite(values)))})"
            )
