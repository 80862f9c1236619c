"""Which labels may follow one another, begin or end a sequence: a scheme of chunks, or a list of what may not occur.

A table (K + 2, K) of 0 and 1 says what is forbidden, as `stages.problems.chain.costs` reads it: label b right after a,
b first (row K), b last (row K + 1).
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from gapwise.stages.datasets import DataError
from gapwise.stages.datasets.arrays.rows import Label
from gapwise.stages.datasets.common.files import read_lines
from gapwise.stages.datasets.text.tables import cells
from gapwise.stages.problems.losses import chunk_roles

START, END = "<start>", "<end>"
"""Words of a file for what comes before a sequence and after it."""
SCHEMES = {
    "bio": ("BI", "I", ""),
    "iob1": ("BI", "B", ""),
    "iobes": ("BIES", "IE", "BI"),
    "bilou": ("BILU", "IE", "BI"),
}
"""Letters of labels, by name of the scheme; then, in the letters of IOBES, those that come right after B or I of their type
only, and those that one of these must follow."""

Pair = tuple[Label | None, Label | None]
"""A label and the one that may not come right after it; None: before the first, or after the last token."""


def scheme(name: str, labels: Sequence[Label]) -> np.ndarray:
    """The table of labels of one of `SCHEMES`, with types or without; ValueError names a label that is none."""
    letters, inside, opens = SCHEMES[name]
    try:
        found, roles = chunk_roles(labels)
    except ValueError:
        found, roles = "", []
    if not found or (name in ("bio", "iob1") and found != "BIO"):
        known = ", ".join(f"{letter}-..." for letter in letters)
        other = f" (these are labels of {found}: give iobes)" if found else ""
        wrong = next(text for text in map(str, labels) if text != "O" and not re.match(rf"[{letters}](-|$)", text))
        raise ValueError(f"constraints={name}: the label {wrong!r} is none of {known}, O{other}")
    K = len(labels)
    table = np.zeros((K + 2, K), np.uint8)
    for b, (here, of) in enumerate(roles):
        for a, (before, other) in enumerate(roles):
            goes_on = before in "BI" and of == other
            table[a, b] = not goes_on if here in inside else before in opens
        table[K, b], table[K + 1, b] = here in inside, here in opens
    return table


def fitting(names: Sequence[Label], labels: np.ndarray, ptr: np.ndarray) -> str:
    """What else may be asked for, as the rest of a clause: the schemes that all flat `labels` follow; empty if none is."""
    fits = []
    for name in SCHEMES:
        with contextlib.suppress(ValueError):
            fits += [name] if fault(scheme(name, names), names, labels, ptr) is None else []
    return f", or give {' or '.join(fits)}, which they follow" if fits else ""


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
    from gapwise.stages.problems.chain.costs import broken

    rows, K = broken(table, labels, ptr), len(table) - 2
    if not (rows >= 0).any():
        return None
    token = int(np.argmax(rows >= 0))
    sequence = int(np.searchsorted(ptr, token, side="right")) - 1
    row, name = int(rows[token]), names[int(labels[token])]
    what = "be the first label" if row == K else "be the last label" if row > K else f"come right after {names[row]!r}"
    return sequence, token - int(ptr[sequence]), f"{name!r} may not {what}"
