"""Predictions as files, with what was asked for besides the labels: margins, probabilities, the n best labellings.

Readers show labels (`Reader.show`); this adds to what they show, whatever the reader:

* **margins** of tagged text are one more column of each token, after the label; then its probability if the model is
  calibrated. In CSV they are the columns ``margin`` and ``probability`` of each block; numbers of several entries, such as
  the letters of a word, are separated by spaces. Pictures get files ``NAME-margin.npy``, float32 (height, width).
* **n_best** repeats a block for each of its labellings, the best first. Tagged text has the form of CRF++ (``crf_test -n``):
  a line ``# RANK SCORE`` before each, ranks from 0, and an empty line after it. CSV has the columns ``rank`` and ``score``.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from gapwise.records import Facts
from gapwise.stages.datasets import DataError, NewInput, Shown, reader_of
from gapwise.stages.datasets.common.files import csv_text
from gapwise.stages.datasets.text.tables import Table
from gapwise.stages.model.confidence import NBest
from gapwise.stages.model.model import Prediction


def shown(meta: Facts, new: NewInput, predicted: Prediction) -> Shown:
    """What was predicted for `new`; DataError if the reader's form has no place for what was asked for."""
    plain = reader_of(meta["dataset"]).show(new, predicted)
    if predicted.n_best is not None:
        return _listed(meta, new, predicted, predicted.n_best)
    if predicted.margins is None:
        return plain
    if plain.files is not None:
        return Shown(files=_with_maps(plain.files, new, predicted))
    return Shown(_with_columns(plain, new, predicted), plain.suffix)


def numbers(predicted: Prediction) -> dict[str, list[str]]:
    """Margins, and probabilities if there are any, as words, one for each entry, by column."""
    columns = {} if predicted.margins is None else {"margin": [f"{x:.6g}" for x in predicted.margins.tolist()]}
    if predicted.probabilities is not None:
        columns["probability"] = [f"{x:.4f}" for x in predicted.probabilities.tolist()]
    return columns


def _with_columns(plain: Shown, new: NewInput, predicted: Prediction) -> str:
    columns = numbers(predicted)
    if isinstance(new.raw, Table):
        by = new.raw.separator
        words = iter(zip(*columns.values(), strict=True))
        lines = [by.join([line, *next(words)]) if line else line for line in plain.text.split("\n")]
        return "\n".join(lines)
    header, rows = _rows(plain, len(predicted))
    edges = [*pairwise(predicted.label_ptr.tolist())]
    more = [[" ".join(words[a:b]) for words in columns.values()] for a, b in edges]
    return csv_text([*header, *columns], [[*row, *extra] for row, extra in zip(rows, more, strict=True)])


def _with_maps(files: Iterable[tuple[str, bytes]], new: NewInput, predicted: Prediction) -> Iterator[tuple[str, bytes]]:
    """The files of pictures, and maps of their margins."""
    yield from files
    assert predicted.margins is not None
    for i, name in zip(new.source.blocks, new.source.names, strict=True):
        stream = io.BytesIO()
        margins = replace(predicted, labels=predicted.margins.astype(np.float32))
        np.save(stream, margins.mask(i))
        yield f"{name}-margin.npy", stream.getvalue()


def _listed(meta: Facts, new: NewInput, predicted: Prediction, n_best: NBest) -> Shown:
    """The labellings of each block one after the other, from what the reader shows of all blocks at each rank."""
    reader = reader_of(meta["dataset"])
    ranks = [reader.show(new, replace(predicted, labels=n_best.rank(r))) for r in range(n_best.n)]
    order = [(i, r) for i in range(len(predicted)) for r in range(n_best.count(i))]
    scores = [f"{n_best.scores[i, r]:.6g}" for i, r in order]
    if isinstance(new.raw, Table):
        parts = [each.text.rstrip("\n").split("\n\n") for each in ranks]
        lines = (f"# {r} {score}\n{parts[r][i]}" for (i, r), score in zip(order, scores, strict=True))
        return Shown("\n\n".join(lines) + "\n", ranks[0].suffix)
    tables = [_rows(each, len(predicted)) for each in ranks]
    rows = [[*tables[r][1][i], r, score] for (i, r), score in zip(order, scores, strict=True)]
    return Shown(csv_text([*tables[0][0], "rank", "score"], rows), ranks[0].suffix)


def _rows(plain: Shown, blocks: int) -> tuple[Sequence[str], list[list[str]]]:
    """Header and rows of a CSV with a row a block."""
    header, *rows = [*csv.reader(io.StringIO(plain.text))] if plain.files is None else [[]]
    if len(rows) != blocks:
        raise DataError(
            "predict: this data set's form has no place for margins or more than one labelling; give an .npz"
        )
    return header, rows
