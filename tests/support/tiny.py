"""Tiny instances of every structure: small enough to enumerate all labellings and to solve as a dense QP."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable

import numpy as np

from stages.datasets import open_dataset
from stages.problems import build, structure
from stages.problems.chain.features import with_biases
from stages.problems.protocol import Problem


def multiclass(seed: int = 0, n: int = 7, width: int = 4, classes: int = 3, **meta) -> Problem:
    rng = np.random.default_rng(seed)
    labels = rng.integers(classes, size=n)
    x = rng.normal(size=(n, width)) + np.eye(classes, width)[labels]
    return build("multiclass", {"x": x, "labels": labels}, {"classes": classes, **meta})


def multiclass_cone(seed: int = 1) -> Problem:
    """Half of the weights constrained to be >= 0, a quarter <= 0."""
    d = 12
    lower, upper = np.full(d, -np.inf), np.full(d, np.inf)
    lower[:6], upper[9:] = 0.0, 0.0
    return multiclass(seed, lower=lower, upper=upper)


def chain(seed: int = 2, lengths=(3, 1, 4, 2), width: int = 4, classes: int = 3, valued: bool = False) -> Problem:
    """Sequences over `width` random binary attributes (each with probability 1/2), or few of many, valued."""
    rng = np.random.default_rng(seed)
    arrays: dict[str, list] = {"labels": [], "ids": [], "counts": [], "values": []}
    for length in lengths:
        labels = rng.integers(classes, size=length)
        rows = [np.flatnonzero(rng.random(width) < (0.2 if valued else 0.5)) for _ in labels]
        rows = [np.union1d(row, [label]) for row, label in zip(rows, labels, strict=True)]
        counts = np.array([row.size for row in rows])
        block = with_biases(np.concatenate(rows), counts, np.array([0, length]), width + 3)
        values = rng.normal(size=block["ids"].size) if valued else np.empty(0)
        for name, array in {**block, "labels": labels, "values": values}.items():
            arrays[name].append(array)
    flat = {name: np.concatenate(parts) for name, parts in arrays.items()}
    flat["labels_ptr"] = np.cumsum([0, *lengths])
    return build("chain", flat, {"classes": classes, "attributes": width + 3})


def chain_sparse() -> Problem:
    """Two labels, few of many attributes, with values."""
    return chain(5, lengths=(2, 4, 1, 3, 4), width=9, classes=2, valued=True)


def segmentation(
    seed: int = 2, n: int = 5, d_unary: int = 3, d_pairwise: int = 2, smoothing: float = 1.0, codes: bool = False
) -> Problem:
    """Images of 1 to 6 superpixels on random graphs; one is all background, one has no edge. Codes: unary in uint8."""
    rng = np.random.default_rng(seed)
    shared = {"unary_scale": np.array([1 / 255])} if codes else {}
    blocks = []
    for i in range(n):
        size = 1 + (i + 3) % 6
        pairs = [pair for pair in itertools.combinations(range(size), 2) if rng.random() < 0.6]
        edges = np.array(pairs, np.int32).reshape(-1, 2)
        labels = (rng.random(size) < 0.5).astype(np.uint8) * (i != 1)
        unary = (rng.normal(size=(size, d_unary)) + 0.5 * np.where(labels, 1, -1)[:, None]).astype(np.float32)
        if codes:
            unary = np.rint(255 / (1 + np.exp(-unary))).astype(np.uint8)
        pairwise = (smoothing * rng.random((len(edges), d_pairwise))).astype(np.float32)
        area = rng.integers(20, 60, size=size).astype(float)
        block = {"unary": unary, "pairwise": pairwise, "edges": edges, "labels": labels, "area": area}
        block["foreground"] = area * np.where(labels, 0.8, 0.1)
        blocks.append(block | structure("segmentation").derived(**block, **shared))
    return build("segmentation", ragged(blocks) | shared, {})


def segmentation_u8() -> Problem:
    """Unary rows in [0, 1], stored as multiples of 1/255."""
    return segmentation(codes=True)


def python_oracle(name: str = "Pairs", **arguments) -> Problem:
    """A user's oracle, by the arrays that its reader would store."""
    sink: dict[str, list] = {}
    facts = open_dataset("python_oracle", {"oracle": f"python_task:{name}", "arguments": arguments}).featurize(
        _Collect(sink), map, lambda *_: None
    )
    return build("python_oracle", ragged(sink["train"]) | {"split": np.frombuffer(b"train", np.uint8)}, facts)


class _Collect:
    """A sink that keeps the blocks of each split."""

    def __init__(self, blocks: dict[str, list]) -> None:
        self.blocks = blocks

    def append(self, split: str, **arrays: np.ndarray) -> None:
        self.blocks.setdefault(split, []).append(arrays)

    def put(self, split: str, name: str, array: np.ndarray) -> None:
        """Only the name of the split, which is known."""


def python_oracle_sparse() -> Problem:
    """Blocks touch few of the weights, one of which is bounded."""
    return python_oracle("SparsePairs")


def ragged(blocks: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """Blocks as a feature store gives them: every array concatenated, with its ``<name>_ptr``."""
    arrays = {name: np.concatenate([b[name] for b in blocks]) for name in blocks[0]}
    ends = {name: np.cumsum([0] + [len(b[name]) for b in blocks]) for name in blocks[0]}
    return arrays | {f"{name}_ptr": end for name, end in ends.items()}


TINY: dict[str, Callable[[], Problem]] = {
    "chain": chain,
    "chain_sparse": chain_sparse,
    "multiclass": multiclass,
    "multiclass_cone": multiclass_cone,
    "python_oracle": python_oracle,
    "python_oracle_sparse": python_oracle_sparse,
    "segmentation": segmentation,
    "segmentation_u8": segmentation_u8,
}
"""Every test of the solver runs on every one of these; a new structure adds one line."""


@functools.cache
def instance(name: str) -> Problem:
    """TINY[name](), made once: for tests that only read it."""
    return TINY[name]()


LABELS = {
    "Multiclass": lambda problem, i: problem.cost.shape[0],
    "Chain": lambda problem, i: problem.labels,
    "PythonOracle": lambda problem, i: problem.labels,
}
"""Number of values one entry of a labelling can take, by class name (2 where not listed)."""


def all_labels(problem: Problem, i: int) -> list[np.ndarray]:
    """All labellings of block i, by enumeration."""
    length = int(problem.label_ptr[i + 1] - problem.label_ptr[i])
    values = LABELS.get(type(problem).__name__, lambda *_: 2)(problem, i)
    return [np.array(y, dtype=problem.truth.dtype) for y in itertools.product(range(values), repeat=length)]


def local(problem: Problem, i: int, y: np.ndarray) -> np.ndarray:
    """m_i(y)."""
    m = np.zeros(int(problem.local_ptr[i + 1] - problem.local_ptr[i]))
    problem.add(i, y, 1.0, m)
    return m


def feature_matrix(problem: Problem, i: int) -> np.ndarray:
    """B_i (d, p_i), column by column through `push`."""
    p = int(problem.local_ptr[i + 1] - problem.local_ptr[i])
    columns = np.zeros((p, problem.d))
    for j in range(p):
        problem.push(i, 1.0, np.eye(p)[j], columns[j])
    return columns.T
