"""Which labels may follow one another, begin or end a sequence: BIO, IOBES, or a list of what may not occur.

A table (K + 2, K) of 0 and 1 says what is forbidden, as `stages.problems.chain.forbidden` reads it: label b right after a,
b first (row K), b last (row K + 1).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from gapwise.stages.datasets import DataError
from gapwise.stages.datasets.arrays.rows import Label
from gapwise.stages.datasets.text.tables import cells, read_lines

START, END = "<start>", "<end>"
"""Words of a file for what comes before a sequence and after it."""
SCHEMES = {"bio": "BIO", "iobes": "BIESO"}
"""First letters of labels, by name of the scheme; all but O are followed by - and a type."""

Pair = tuple[Label | None, Label | None]
"""A label and the one that may not come right after it; None: before the first, or after the last token."""


def scheme(name: str, labels: Sequence[Label]) -> np.ndarray:
    """The table of BIO or IOBES labels; ValueError names a label that is none.

    ``I-x`` (and ``E-x``) come right after ``B-x`` or ``I-x`` only; with IOBES, these are followed by one of them.
    """
    parts = [_parts(name, label) for label in labels]
    inside, opens = ("IE", "BI") if name == "iobes" else ("I", "")
    K = len(labels)
    table = np.zeros((K + 2, K), np.uint8)
    for b, (here, of) in enumerate(parts):
        for a, (before, other) in enumerate(parts):
            goes_on = before in "BI" and of == other
            table[a, b] = not goes_on if here in inside else before in opens
        table[K, b], table[K + 1, b] = here in inside, here in opens
    return table


def _parts(name: str, label: Label) -> tuple[str, str]:
    """First letter and type of a label."""
    text = str(label)
    if text == "O" or (len(text) > 2 and text[1] == "-" and text[0] in SCHEMES[name].replace("O", "")):
        return text[0], text[2:]
    known = ", ".join(f"{letter}-..." if letter != "O" else "O" for letter in SCHEMES[name])
    raise ValueError(f"constraints={name}: the label {text!r} is none of {known}")


def table_of(pairs: Iterable[Pair], labels: Sequence[Label]) -> np.ndarray:
    """The table that forbids `pairs`; ValueError names a pair whose labels do not occur."""
    K, number = len(labels), {label: k for k, label in enumerate(labels)}
    table = np.zeros((K + 2, K), np.uint8)
    for pair in pairs:
        before, after = pair
        for label in pair:
            if label is not None and label not in number:
                raise ValueError(f"the label {label!r} never occurs in training; known: {', '.join(map(str, labels))}")
        if after is not None:
            table[K if before is None else number[before], number[after]] = 1
        elif before is not None:
            table[K + 1, number[before]] = 1
    return table


def read_constraints(file: Path, labels: Sequence[str]) -> np.ndarray:
    """The table of a file: on each line a label and the one that may never come right after it, between them blanks or tabs;
    `START` stands before the first token and `END` after the last. DataError names file and line."""
    table = np.zeros((len(labels) + 2, len(labels)), np.uint8)
    for number, line in enumerate(read_lines(file), 1):
        words = [*filter(None, cells(line))]
        if not words:
            continue
        if len(words) != 2 or words[0] == END or words[1] == START or words == [START, END]:
            wanted = f"a label, or {START}, and the label, or {END}, that may not come right after it"
            raise DataError(f"{file}: line {number}: {line!r}: expected {wanted}")
        pair = (None if words[0] == START else words[0], None if words[1] == END else words[1])
        try:
            table |= table_of([pair], labels)
        except ValueError as error:
            raise DataError(f"{file}: line {number}: {error}") from error
    return table


def fault(
    table: np.ndarray, names: Sequence[Label], labels: np.ndarray, ptr: np.ndarray
) -> tuple[int, int, str] | None:
    """The first token of flat `labels` that breaks a table: its sequence, its number there, and what is wrong; or None."""
    from gapwise.stages.problems.chain.forbidden import broken

    rows, K = broken(table, labels, ptr), len(table) - 2
    if not (rows >= 0).any():
        return None
    token = int(np.argmax(rows >= 0))
    sequence = int(np.searchsorted(ptr, token, side="right")) - 1
    row, name = int(rows[token]), names[int(labels[token])]
    what = "be the first label" if row == K else "be the last label" if row > K else f"come right after {names[row]!r}"
    return sequence, token - int(ptr[sequence]), f"{name!r} may not {what}"
