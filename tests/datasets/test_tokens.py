"""Tokens as users have them: python-crfsuite's conventions, arrays, sparse matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from gapwise.stages.datasets import Blocks
from gapwise.stages.datasets.text import sequences
from gapwise.stages.datasets.text.attributes import attributes, rows_of_attributes
from gapwise.stages.datasets.text.tokens import (
    has_columns,
    lengths_of,
    rows_of_columns,
    sequences_of,
)

FORMS: list[Any] = [
    {"a": "b", "c": 1.5, "yes": True, "no": False, "many": ["x", "y"], "deep": {"p": "q", "r": 2, "s": {"t": True}}},
    {"n": np.float32(0.5), "i": 3, "set": {"z"}},
    ["one", "two"],
    ("one",),
]


def test_attributes__are_named_and_weighted() -> None:
    assert dict(attributes(FORMS[0])) == {
        "a:b": 1.0, "c": 1.5, "yes": 1.0, "no": 0.0, "many:x": 1.0, "many:y": 1.0, "deep:p:q": 1.0, "deep:r": 2.0,
        "deep:s:t": 1.0,
    }  # fmt: skip


@pytest.mark.parametrize("token", FORMS, ids=str)
def test_attributes__are_those_of_python_crfsuite(token: Any) -> None:
    pycrfsuite = pytest.importorskip("pycrfsuite")
    theirs = pycrfsuite.ItemSequence([token]).items()[0]
    theirs = theirs if isinstance(theirs, dict) else dict.fromkeys(theirs, 1.0)
    assert dict(attributes(token)) == theirs


@pytest.mark.parametrize(
    ("token", "message"),
    [
        ({"a": None}, "X: sequence 1, token 0: attribute 'a': expected a string, number, bool, dict or list, got None"),
        ({"a": float("nan")}, "X: sequence 1, token 0: attribute 'a' has the value nan; expected a finite number"),
        ("word", "X: sequence 1, token 0: expected a dict or a list of attributes, got 'word'"),
    ],
)
def test_bad_attribute__is_named(token: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        rows_of_attributes([[["fine"]], [token]], lambda name: 0)


SPELLED: dict[str, list[list[Any]]] = {
    "dicts": [
        [{"a": "b", "c": 1.5, "yes": True}, {"c": 0.0, "yes": False, "a": "b"}, {}],
        [{"a": "d", "c": 1.5, "yes": 1}],
    ],
    "same name": [[{"a": "b:c", "a:b": "c"}, {"a": "b:c"}]],
    "nested": [[FORMS[0], FORMS[1]], [{"a": "b"}, {"deep": {"p": "q"}}]],
    "keys that are equal": [[{1: "x"}, {True: "x"}]],
}


@pytest.mark.parametrize("X", SPELLED.values(), ids=list(SPELLED))
def test_rows__are_those_of_one_token_after_the_other(X: Any) -> None:
    names: dict[str, int] = {}
    pairs = [[pair for pair in attributes(token) if pair[1]] for sequence in X for token in sequence]
    ids = [[names.setdefault(name, len(names)) for name, _ in token] for token in pairs]
    given: dict[str, int] = {}
    rows, known = rows_of_attributes(X, lambda name: given.setdefault(name, len(given)))
    assert list(given) == list(names)  # numbered as they come
    assert rows.counts.tolist() == [*map(len, ids)]
    assert rows.ids.tolist() == [number for token in ids for number in token]
    values = [value for token in pairs for _, value in token]
    assert (values if rows.values is not None else [1.0] * len(values)) == values
    assert rows.values is None or rows.values.tolist() == values
    assert known == (len(values), len(values))
    some, known = rows_of_attributes(X, lambda name: names[name] if names[name] % 2 else -1)
    assert some.ids.tolist() == [k for k in rows.ids.tolist() if k % 2]
    assert some.counts.tolist() == [sum(k % 2 for k in token) for token in ids]
    assert known == (some.ids.size, len(values))


def test_frames__are_rows_of_dicts() -> None:
    dicts = [{"w": "the", "n": 2.0, "caps": True}, {"w": "dog", "n": 0.5, "caps": False}]
    frame = pd.DataFrame(dicts, index=[7, 3])
    ids: dict[str, int] = {}
    ours, theirs = (
        rows_of_attributes(sequences_of([some]), lambda name: ids.setdefault(name, len(ids)))[0]
        for some in (frame, dicts)
    )
    assert lengths_of(sequences_of([frame])).tolist() == [2]
    assert not has_columns(sequences_of([frame]))
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(a, b)
    with pytest.raises(ValueError, match="sequence 0, token 1: attribute 'n' has the value nan"):
        rows_of_attributes(sequences_of([frame.assign(n=[1.0, np.nan])]), lambda name: 0)


def test_columns__are_the_same_dense_and_sparse() -> None:
    dense = [np.array([[0.0, 2.0, 1.0], [0.0, 0.0, 0.0]]), np.array([[1.0, 0.0, 1.0]])]
    rows, width = rows_of_columns(dense, None)
    assert width == 3
    assert rows.counts.tolist() == [2, 0, 2]
    assert rows.ids.tolist() == [1, 2, 0, 2]
    for kind in (sparse.csr_matrix, sparse.coo_array, sparse.csc_array):
        others, _ = rows_of_columns([kind(some) for some in dense], 3)
        for ours, theirs in zip(rows, others, strict=True):
            np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([np.eye(2), np.eye(3)], r"X: sequence 1: expected an array \(tokens, 2\), got shape \(3, 3\)"),
        ([np.array([[1.0], [np.nan]])], "X: sequence 0, token 1: a value is NaN or infinite"),
    ],
)
def test_bad_columns__are_named(X: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        rows_of_columns(X, None)


def test_blocks__are_the_same_in_small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    lengths = np.array([2, 1, 4, 3, 1])
    rows, width = rows_of_columns([rng.normal(size=(t, 3)) for t in lengths], None)
    start, labels = np.append(0, np.cumsum(lengths)), rng.integers(2, size=11).astype(np.uint8)
    made = []
    for entries in (sequences.PIECE_ENTRIES, 10):  # a sequence has 6.6 entries on average
        monkeypatch.setattr(sequences, "PIECE_ENTRIES", entries)
        sink = Blocks("chain")
        sequences.write_blocks(sink, lambda *_: None, "train", start, labels, rows, width + 3)
        made.append(sink.arrays("train"))
    assert made[0]["ids"].size == 33 + 11 + 2 * 5
    assert made[0].keys() == made[1].keys()
    for name, array in made[0].items():
        np.testing.assert_array_equal(made[1][name], array)
