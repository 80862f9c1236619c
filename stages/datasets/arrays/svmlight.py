"""The format of SVMlight and LIBSVM: ``label index:value index:value ... # comment``, indices rising from 1 (or 0).

A label is a number there: 1, +1 and 1.0 are the same class. All other spellings, such as 01 or 1e1, are names.
"""

from __future__ import annotations

import re
from array import array
from pathlib import Path

import numpy as np

from gapwise.stages.datasets import DataError
from gapwise.stages.datasets.arrays.rows import Csr, Rows, refuse_endless, written
from gapwise.stages.datasets.common.files import read_lines

LARGEST = 2**31 - 2
NUMBER = re.compile(r"[+-]?(0|[1-9][0-9]*)(\.0*)?")
"""A whole number as tools of this format write it."""


def read_svmlight(file: Path, first: int | None = None) -> tuple[Rows, int]:
    """The examples of a file, gzipped or not, and the index of the first column.

    Parameters
    ----------
    first : int, optional
        Index of the first column, 0 or 1; None: 0 if the file has an index 0, else 1.

    Raises
    ------
    DataError
        Names file and line.
    """
    labels: list[str] = []
    numbers, ptr, ids, values = [], [0], array("q"), array("d")
    for number, line in enumerate(read_lines(file), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        where = f"{file}: line {number}"
        labels.append(_label(words[0], where))
        before = -1
        for word in words[1:]:
            index, value = _entry(word, where)
            if index <= before:
                raise DataError(f"{where}: index {index} after {before}; expected indices that rise along the line")
            if index == 0 and first == 1:
                raise DataError(f"{where}: index 0, but in the training file they count from 1")
            before = index
            ids.append(index)
            values.append(value)
        numbers.append(number)
        ptr.append(len(ids))
    if not labels:
        raise DataError(f"{file}: holds no examples; expected lines like '+1 3:0.5 17:1'")
    columns = np.frombuffer(ids, dtype=np.int64) if ids else np.zeros(0, np.int64)
    begin = first if first is not None else int(columns.min(initial=1) > 0)
    width = int(columns.max(initial=begin - 1)) + 1 - begin
    entries = np.frombuffer(values, dtype=np.float64) if values else np.zeros(0)
    x = Csr(np.array(ptr, np.int64), (columns - begin).astype(np.int32), entries, width)
    rows = Rows(file, "line", np.array(numbers), written(labels), x)
    refuse_endless(rows)
    return rows, begin


def _label(word: str, where: str) -> str:
    if ":" in word:
        raise DataError(f"{where}: begins with {word!r}; expected a label and then index:value pairs")
    if "," in word:
        raise DataError(f"{where}: has the labels {word!r}; expected one label a line")
    return str(int(word.partition(".")[0])) if NUMBER.fullmatch(word) else word


def _entry(word: str, where: str) -> tuple[int, float]:
    index, colon, value = word.partition(":")
    if index == "qid":
        raise DataError(f"{where}: has a qid; dataset=ranking reads queries, dataset=sequences_csv SVM-HMM's sequences")
    try:
        if not colon or "_" in value or not index.isascii() or not index.isdigit() or int(index) > LARGEST:
            raise ValueError
        return int(index), float(value)
    except ValueError:
        raise DataError(f"{where}: {word!r}: expected index:value, such as 17:0.5") from None
