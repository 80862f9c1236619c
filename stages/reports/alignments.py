"""A test sentence pair with the predicted links and the annotators', as figure and report show it."""

from __future__ import annotations

import numpy as np

from gapwise.stages.datasets.alignment.links import word_pair
from gapwise.stages.problems.matching.metrics import scores
from gapwise.stages.reports.stored import StoredRun

Links = set[tuple[int, int]]
"""Links (j, k) between words, from 0."""
KINDS = ("predicted", "sure", "possible")


def has_alignments(run: StoredRun) -> bool:
    """True for sentence pairs with predictions."""
    return bool(run.predictions) and {"sure", "possible", "text"} <= set(run.test_blocks)


def all_pairs(run: StoredRun) -> list[Aligned]:
    """Every test sentence pair of a run that `has_alignments`."""
    return [Aligned(run, i) for i in range(run.test_blocks["number"].size)]


class Aligned:
    """A sentence pair.

    Attributes
    ----------
    number : int
        Of the sentence, as its file counts.
    e, f : list of str
        Words of either language.
    sure, possible, predicted : set of (j, k)
        The annotators' links, those they call possible with the sure ones, and the predicted ones.
    """

    def __init__(self, run: StoredRun, i: int) -> None:
        arrays, predictions = run.test_blocks, run.predictions
        self.number = int(arrays["number"][i])
        self.e, self.f = word_pair(arrays, i)
        self.sure, self.possible = (_links(arrays, name, i) for name in ("sure", "possible"))
        start, stop = predictions["label_ptr"][i : i + 2]
        entries = predictions["labels"][start:stop].reshape(len(self.e), -1).astype(int)
        first, column = arrays["counts_ptr"][i], arrays["column"][arrays["column_ptr"][i] :]
        begin = np.concatenate([[0], np.cumsum(arrays["counts"][first : first + len(self.e)], dtype=np.int64)])
        self.predicted: Links = {(j, int(column[begin[j] + k - 1])) for j, row in enumerate(entries) for k in row if k}

    @property
    def wrong(self) -> Links:
        """Predicted links that are not even possible."""
        return self.predicted - self.possible

    @property
    def missed(self) -> Links:
        """Sure links that are not predicted."""
        return self.sure - self.predicted

    @property
    def mistakes(self) -> int:
        """Predicted links that are not possible, and sure ones that are not predicted."""
        return len(self.wrong) + len(self.missed)


def all_scores(pairs: list[Aligned]) -> dict[str, float]:
    """Precision, recall and alignment error rate of all pairs together."""
    links = ({(i, *link) for i, pair in enumerate(pairs) for link in getattr(pair, name)} for name in KINDS)
    return scores(*links)


def _links(arrays: dict[str, np.ndarray], name: str, i: int) -> Links:
    start, stop = arrays[f"{name}_ptr"][i : i + 2]
    return {(j, k) for j, k in np.asarray(arrays[name][start:stop]).tolist()}
