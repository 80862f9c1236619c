"""From columns of text to attribute ids: what the readers of sequences have in common.

A template (CRF++'s notion) looks at some columns at some offsets from a token; each combination of values that it meets
often enough in training is one attribute. All templates are expanded for all tokens at once, on integer codes.
Attributes are numbered by falling count in training, so that the weights most often read lie together in memory.
"""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from stages.datasets import DataError, Report, Sink
from stages.problems.chain.features import BIASES, with_biases
from stages.problems.chain.metrics import encode_names


@dataclass(frozen=True)
class Table:
    """Tokens of one file: rows[t] the columns of token t, start (sequences + 1,), line[t] its line, counted from 1."""

    file: Path
    rows: list[list[str]]
    start: np.ndarray
    line: np.ndarray


@dataclass(frozen=True)
class Template:
    """One line of a template file: its text with the macros taken out, and their (offset, column)."""

    skeleton: str
    macros: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Rows:
    """Sparse rows of tokens: counts (tokens,), ids and values (sum of counts,); values is None where all are 1."""

    counts: np.ndarray
    ids: np.ndarray
    values: np.ndarray | None = None


def read_lines(file: Path) -> list[str]:
    """Lines of a text file, gzipped or not."""
    raw = file.read_bytes()
    try:
        return (gzip.decompress(raw) if file.suffix == ".gz" else raw).decode().splitlines()
    except (UnicodeDecodeError, OSError, EOFError) as error:
        raise DataError(f"{file}: cannot be read as UTF-8 text: {error}") from error


def read_table(file: Path, *, separator: str | None = None, equal_columns: bool = True) -> Table:
    """Tokens one a line, an empty line after each sequence (CoNLL); DataError names file and line.

    A sequence with no tokens (two empty lines after each other) and, with `equal_columns`, a token whose number of
    columns is not that of the first one are errors; empty lines at the end of the file are not.
    """
    lines = read_lines(file)
    while lines and not lines[-1].strip():
        lines.pop()
    if not lines:
        raise DataError(f"{file}: holds no tokens")
    rows: list[list[str]] = []
    line: list[int] = []
    start, empty_before = [0], True
    for number, text in enumerate(lines, 1):
        if not text.strip():
            if empty_before:
                raise DataError(f"{file}: line {number}: a sequence with no tokens")
            start.append(len(rows))
            empty_before = True
            continue
        row = text.split(separator)
        if equal_columns and rows and len(row) != len(rows[0]):
            raise DataError(f"{file}: line {number}: {len(row)} columns, but {len(rows[0])} on line {line[0]}")
        rows.append(row)
        line.append(number)
        empty_before = False
    return Table(file, rows, np.array([*start, len(rows)], dtype=np.int64), np.array(line))


def expand(train: Table, test: Table, columns: list[list[str]], templates: list[Template], *, min_count: int,
           one_pad: bool) -> tuple[Rows, Rows, int]:  # fmt: skip
    """Attribute rows of train and test tokens, and the number of attributes.

    Parameters
    ----------
    columns
        Values of each column for the tokens of train followed by those of test.
    min_count
        Values of a template met less often in training are dropped; so are those that only test has.
    one_pad
        One symbol before and one after a sequence, however far outside (else a symbol for each distance, as CRF++ has).
    """
    start = np.concatenate([train.start, train.start[-1] + test.start[1:]])
    tokens, n_train = int(start[-1]), int(train.start[-1])
    sentence = np.repeat(np.arange(start.size - 1), np.diff(start))
    before, after = np.arange(tokens) - start[sentence], start[sentence + 1] - np.arange(tokens) - 1
    reach = max((abs(offset) for template in templates for offset, _ in template.macros), default=0)
    vocabulary: dict[str, int] = {}
    base = 2 * reach
    codes = [np.array([vocabulary.setdefault(x, len(vocabulary)) for x in column]) + base for column in columns]
    base += len(vocabulary)

    def look(offset: int, column: int) -> np.ndarray:
        """Codes of `column` at `offset` from each token; 2(k - 1) k places before a sequence, 2(k - 1) + 1 after."""
        seen = np.roll(codes[column], -offset)
        outside = -before - offset if offset < 0 else offset - after
        if offset == 0:
            return seen
        place = np.ones_like(outside) if one_pad else outside
        return np.where(outside > 0, 2 * (place - 1) + (offset > 0), seen)

    def keys(members: list[int]) -> np.ndarray:
        """One integer for the values that each template sees at each token, (members, tokens)."""
        key = np.zeros((len(members), tokens), dtype=np.int64)
        for macro in range(len(templates[members[0]].macros)):
            if int(key.max()) >= 2**62 // base:
                key = np.unique(key, return_inverse=True)[1].reshape(key.shape)
            key = key * base + np.stack([look(*templates[number].macros[macro]) for number in members])
        return key

    alike: dict[tuple[str, int], list[int]] = {}  # one skeleton, one set of attributes: a bag of words, in CRF++
    for number, template in enumerate(templates):
        alike.setdefault((template.skeleton, len(template.macros)), []).append(number)
    ids = np.empty((tokens, len(templates)), dtype=np.int64)
    offset = 0
    for members in alike.values():
        values, inverse = np.unique(keys(members), return_inverse=True)
        inverse = inverse.reshape(len(members), tokens)
        ids[:, members] = inverse.T + offset
        offset += values.size
    every = np.full(tokens, len(templates))
    return number_rows(ids.reshape(-1), every, n_train, min_count)


def number_rows(ids: np.ndarray, counts: np.ndarray, n_train: int, min_count: int,
                values: np.ndarray | None = None) -> tuple[Rows, Rows, int]:  # fmt: skip
    """Rows of train (the first `n_train` tokens) and test with final ids, and their number: by falling count in
    training.

    Candidates `ids` (sum of counts,) met fewer than `min_count` times in training, or in test only, are dropped.
    """
    token = np.repeat(np.arange(counts.size), counts)
    edge = int(counts[:n_train].sum())
    met = np.bincount(ids[:edge], minlength=int(ids.max(initial=-1)) + 1)
    order = np.argsort(-met, kind="stable")
    kept = int((met >= max(min_count, 1)).sum())
    rank = np.full(met.size, -1, dtype=np.int64)
    rank[order[:kept]] = np.arange(kept)
    final = rank[ids]
    present = final >= 0
    sizes = np.bincount(token[present], minlength=counts.size)
    edge, final = int(sizes[:n_train].sum()), final[present].astype(np.int32)
    weights = None if values is None or (values == 1.0).all() else values[present].astype(np.float32)
    head, tail = (None, None) if weights is None else (weights[:edge], weights[edge:])
    return Rows(sizes[:n_train], final[:edge], head), Rows(sizes[n_train:], final[edge:], tail), kept


def write_splits(sink: Sink, report: Report, train: Table, test: Table, labels: tuple[list[str], list[str]],
                 rows: tuple[Rows, Rows], attributes: int, *, unseen: str) -> dict[str, Any]:  # fmt: skip
    """Both splits into `sink`; returns the meta of a chain problem.

    Labels are numbered by name, those that only test has after those of training: never predicted, always wrong. With
    ``unseen="error"`` the first of them is a DataError with its line instead.
    """
    known = sorted(set(labels[0]))
    late = sorted(set(labels[1]) - set(known))
    if late and unseen == "error":
        where = int(test.line[next(t for t, name in enumerate(labels[1]) if name in late)])
        raise DataError(
            f"{test.file}: line {where}: label {labels[1][int(np.searchsorted(test.line, where))]!r} never occurs in "
            f"{train.file}; train on it, or count it as an error with dataset.unseen_labels=count"
        )
    number = {name: k for k, name in enumerate(known + late)}
    dtype = np.uint8 if len(number) <= 256 else np.int16
    total = attributes + len(BIASES)
    sink.put("", "label_names", encode_names(known + late))
    if late:
        sink.put("test", "decode_only", np.ones(1, dtype=np.uint8))
    for split, table, names, part in zip(("train", "test"), (train, test), labels, rows, strict=True):
        truth = np.array([number[name] for name in names], dtype=dtype)
        write_blocks(sink, report, split, table.start, truth, part, total)
    return {
        "classes": len(known),
        "attributes": total,
        "d": total * len(known) + len(known) ** 2,
        "n_train": train.start.size - 1,
        "n_test": test.start.size - 1,
        "label_names": known,
        "test_only_labels": late,
    }


def write_blocks(sink: Sink, report: Report, split: str, start: np.ndarray, labels: np.ndarray, rows: Rows,
                 attributes: int) -> None:  # fmt: skip
    """Sequences start[i]:start[i + 1] of `split`, one block each; the biases become the last of the `attributes`."""
    flat = with_biases(rows.ids, rows.counts, start, attributes, rows.values)
    edge = np.concatenate([[0], np.cumsum(flat["counts"], dtype=np.int64)])[start]
    total = start.size - 1
    for i, (a, b) in enumerate(pairwise(start)):
        if i % 500 == 0:
            report(i, total, f"{split} sequences")
        entries = {name: flat[name][edge[i] : edge[i + 1]] for name in ("ids", "values") if name in flat}
        sink.append(split, labels=labels[a:b], counts=flat["counts"][a:b], **entries)
    report(total, total, f"{split} sequences")
