"""Alignment error rate, precision and recall (Och and Ney, Computational Linguistics 29, 2003)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gapwise.stages.problems.matching.matching import Matching


def metrics(problem: Matching, arrays: Mapping[str, np.ndarray], predictions: np.ndarray) -> dict[str, float]:
    """`scores` of all pairs together, against the annotators' links ``sure`` and ``possible`` (links, 2), sure ones
    included, which need not be candidates."""
    block, pair = chosen(problem, predictions)
    predicted = {(int(i), j, k) for i, (j, k) in zip(block, pair.tolist(), strict=True)}
    sure, possible = (_numbered(arrays, name) for name in ("sure", "possible"))
    return scores(predicted, sure, possible)


def chosen(problem: Matching, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Block (links,) and words (links, 2), from 0, of all links in flat labels, in order."""
    F, entries = problem.fertility, np.asarray(labels).astype(np.int64)
    word = np.repeat(np.arange(problem.begin.size - 1), F)
    used = (entries > 0) & (entries <= np.diff(problem.begin)[word])
    word = word[used]
    block = np.searchsorted(problem.word_ptr, word, side="right") - 1
    k = problem.column[problem.begin[word] + entries[used] - 1]
    return block, np.stack([word - problem.word_ptr[block], k], axis=1)


def scores(
    predicted: set[tuple[int, int, int]], sure: set[tuple[int, int, int]], possible: set[tuple[int, int, int]]
) -> dict[str, float]:
    """Precision |A & P| / |A|, recall |A & S| / |S| and AER 1 - (|A & S| + |A & P|) / (|A| + |S|).

    A are the links found, S the sure ones, P the possible ones, to which all of S are added. As in conlleval, the precision
    is 0 where no link is found, and the recall where there is no sure one. Where there are neither, the AER is 0.
    """
    right, hit = len(predicted & (possible | sure)), len(predicted & sure)
    return {
        "aer": 1.0 - (hit + right) / (len(predicted) + len(sure)) if predicted or sure else 0.0,
        "precision": right / max(len(predicted), 1),
        "recall": hit / max(len(sure), 1),
    }


def _numbered(arrays: Mapping[str, np.ndarray], name: str) -> set[tuple[int, int, int]]:
    """Links of all blocks as (block, j, k)."""
    block = np.repeat(np.arange(arrays[f"{name}_ptr"].size - 1), np.diff(arrays[f"{name}_ptr"]))
    return {(i, j, k) for i, (j, k) in zip(block.tolist(), np.asarray(arrays[name]).tolist(), strict=True)}
