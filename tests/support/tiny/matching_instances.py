"""Matchings: words with one link, and with two at a price, which a box keeps."""

from __future__ import annotations

import itertools

import numpy as np

from gapwise.stages.problems import build
from gapwise.stages.problems.matching import Matching
from gapwise.stages.problems.protocol import Problem
from tiny.blocks import ragged


def links(problem: Matching, i: int, y: np.ndarray) -> list[tuple[int, int]]:
    """The links (j, k) of a labelling of block i, from 0, in order."""
    pairs = []
    for j, word in enumerate(range(int(problem.word_ptr[i]), int(problem.word_ptr[i + 1]))):
        begin, end = problem.begin[word : word + 2].tolist()
        entries = y[j * problem.fertility : (j + 1) * problem.fertility].tolist()
        pairs += [(j, int(problem.column[begin + e - 1])) for e in entries if 0 < e <= end - begin]
    return sorted(pairs)


def matching_blocks(
    seed: int = 4, n: int = 5, width: int = 4, fertility: int = 1, possible: bool = False
) -> list[dict]:
    """Pairs of one to three words, not all of which are candidates of each other; `possible`: some links are."""
    rng = np.random.default_rng(seed)
    blocks = []
    for i in range(n):
        J, K = 1 + i % 2 + (i == 3), 1 + (i + 1) % 3
        here = rng.random((J, K)) < (0.85 if i else 1.0)
        here[0, 0] = True
        rows, column = np.nonzero(here)
        role = np.zeros(column.size, np.uint8)
        for e in rng.permutation(column.size):  # greedily, a matching
            used = [np.sum(role[rows == rows[e]] == 1), np.sum(role[column == column[e]] == 1)]
            if max(used) < fertility and rng.random() < 0.7:
                role[e] = 1
        if possible:
            role[(role == 0) & (rng.random(role.size) < 0.5)] = 2
        counts = here.sum(axis=1)
        labels = np.zeros((J, fertility), np.uint8)
        for j in range(J):
            ranks = np.flatnonzero(role[rows == j] == 1) + 1
            labels[j, : ranks.size] = ranks
        x = rng.normal(size=(column.size, width)) + 0.7 * (role == 1)[:, None]
        blocks.append(
            {
                "x": x.astype(np.float32),
                "counts": counts,
                "column": column,
                "role": role,
                "labels": labels.ravel(),
                "kind": np.concatenate([np.zeros(J, np.uint8), np.full(K, 1, np.uint8)]),
            }
        )
    return blocks


def matching(*, meta: dict | None = None, **choices) -> Problem:
    """The problem of `matching_blocks(**choices)`."""
    costs = {"missed": 2.0, "extra": 1.0, "possible": 0.5}
    facts = {"fertility": choices.get("fertility", 1), "kinds": 2, "costs": costs, **(meta or {})}
    return build("matching", ragged(matching_blocks(**choices)), facts)


def matching_two() -> Problem:
    """Two links a word."""
    return matching(seed=6, n=4, fertility=2, meta={"nonnegative": [0]})


def is_labelling(problem: Problem, i: int, y: np.ndarray) -> bool:
    """Whether y is a matching of block i, in the one way in which it is stored."""
    F = problem.fertility
    word = int(problem.word_ptr[i])
    for j in range(int(problem.word_ptr[i + 1]) - word):
        entries = [int(e) for e in y[j * F : (j + 1) * F]]
        used = [e for e in entries if e]
        if entries != sorted(set(used)) + [0] * (F - len(used)):
            return False
        if max(entries) > problem.begin[word + j + 1] - problem.begin[word + j]:
            return False
    others = [k for _, k in links(problem, i, y)]
    return all(len(list(same)) <= F for _, same in itertools.groupby(sorted(others)))


INSTANCES = {"matching": matching, "matching_two": matching_two}
LABELS = {"Matching": lambda problem: problem.labels}
LABELLINGS = {"Matching": is_labelling}
