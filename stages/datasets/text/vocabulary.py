"""How attributes are numbered and how their names are stored: as UTF-8 bytes end to end, with offsets.

Attributes are numbered by falling count in training, so that the weights read most often are together in memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from gapwise.stages.datasets import Sink


class Rows(NamedTuple):
    """Sparse rows of tokens: counts (tokens,), ids and values (sum of counts,); values is None where all are 1."""

    counts: np.ndarray
    ids: np.ndarray
    values: np.ndarray | None = None

    def edges(self, tokens: np.ndarray) -> np.ndarray:
        """int64: how many entries there are before each of `tokens`, which rise."""
        return np.append(0, np.cumsum(self.counts, dtype=np.int64))[tokens]

    def of_tokens(self, first: int, end: int, a: int | None = None, b: int | None = None) -> Rows:
        """The rows of tokens first:end; their entries are a:b, if that is known."""
        if a is None or b is None:
            a, b = int(self.counts[:first].sum()), int(self.counts[:end].sum())
        return Rows(self.counts[first:end], self.ids[a:b], None if self.values is None else self.values[a:b])


class Attributes(NamedTuple):
    """Attribute rows of the tokens of train and test, and the attributes' names in the order of their ids."""

    train: Rows
    test: Rows
    names: list[str]


def number_rows(ids: np.ndarray, counts: np.ndarray, n_train: int, min_count: int,
                values: np.ndarray | None = None) -> tuple[Rows, Rows, np.ndarray]:  # fmt: skip
    """Rows of train (the first `n_train` tokens) and test with final ids, and the candidate that each final id was.

    Candidates `ids` (sum of counts,) that occur fewer than `min_count` times in training, or in test only, are dropped.
    """
    token = np.repeat(np.arange(counts.size), counts)
    edge = int(counts[:n_train].sum())
    met = np.bincount(ids[:edge], minlength=int(ids.max(initial=-1)) + 1)
    order = np.argsort(-met, kind="stable")
    count = int((met >= max(min_count, 1)).sum())
    rank = np.full(met.size, -1, dtype=np.int64)
    rank[order[:count]] = np.arange(count)
    sizes, final, weights = known_rows(rank[ids], token, counts.size, values)
    edge = int(sizes[:n_train].sum())
    head, tail = (None, None) if weights is None else (weights[:edge], weights[edge:])
    return Rows(sizes[:n_train], final[:edge], head), Rows(sizes[n_train:], final[edge:], tail), order[:count]


def known_rows(ids: np.ndarray, token: np.ndarray, tokens: int, values: np.ndarray | None) -> Rows:
    """Rows without the entries whose id is negative; `token` (entries,) gives the token of each entry."""
    present = ids >= 0
    sizes = np.bincount(token[present], minlength=tokens)
    weights = None if values is None or (values == 1.0).all() else values[present].astype(np.float32)
    return Rows(sizes, ids[present].astype(np.int32), weights)


def put_vocabulary(sink: Sink, names: list[str]) -> None:
    """Store the attributes' names as the shared arrays ``vocabulary`` (bytes) and ``vocabulary_ptr`` (offsets)."""
    encoded = [name.encode() for name in names]
    sink.put("", "vocabulary", np.frombuffer(b"".join(encoded), np.uint8))
    sink.put("", "vocabulary_ptr", np.cumsum([0, *map(len, encoded)], dtype=np.int64))


def read_vocabulary(shared: Mapping[str, np.ndarray]) -> dict[str, int]:
    """Ids by name; inverse of `put_vocabulary`."""
    raw, edges = np.asarray(shared["vocabulary"]).tobytes(), np.asarray(shared["vocabulary_ptr"]).tolist()
    return {raw[a:b].decode(): number for number, (a, b) in enumerate(pairwise(edges))}
