"""CRF++'s bigram templates: attributes that weigh pairs of neighbouring labels (`problems.chain.bigram`).

``B01:%x[0,0]`` gives each token but the first of its sequence an attribute, as ``U01:%x[0,0]`` would, with a weight for each
pair of its label and the label before. Only these tokens count for ``min_count``, as in CRF++.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from gapwise.records import Facts, Record
from gapwise.stages.datasets import NEW, Known, MapBlocks, Raw, Sink
from gapwise.stages.datasets.text.sequences import TextEncoder
from gapwise.stages.datasets.text.tables import Table, new_table
from gapwise.stages.datasets.text.templates import Template, columns_of, expand, rows_by_name
from gapwise.stages.datasets.text.vocabulary import (
    Attributes,
    Rows,
    known_rows,
    number_rows,
    put_vocabulary,
    read_vocabulary,
)

PREFIX = "pair_"
"""What the names of arrays of pair attributes begin with."""


@dataclass
class WithPairs:
    """A sink that gives the blocks that pass through it their pair attributes."""

    sink: Sink
    pairs: int
    """Number of pair attributes, "always" included."""
    rows: Mapping[str, tuple[Rows, np.ndarray]]
    """Of each split, the rows of its tokens, and the first token of each sequence, and the end."""
    seen: Counter[str] = field(init=False, default_factory=Counter)
    edges: dict[str, np.ndarray] = field(init=False)
    """Of each split, how many entries there are before each sequence, and in all."""

    def __post_init__(self) -> None:
        self.edges = {split: rows.edges(start) for split, (rows, start) in self.rows.items()}

    def append(self, split: str, **arrays: np.ndarray) -> None:
        from gapwise.stages.problems.chain.features import with_always

        (rows, start), i = self.rows[split], self.seen[split]
        self.seen[split] += 1
        first, end = start[i : i + 2].tolist()
        block = rows.of_tokens(first, end, *self.edges[split][i : i + 2].tolist())
        more = with_always(block.ids, block.counts, np.array([0, end - first]), self.pairs)
        self.sink.append(split, **arrays, **more)

    def put(self, split: str, name: str, array: np.ndarray) -> None:
        self.sink.put(split, name, array)


@dataclass(frozen=True)
class _Prefixed:
    """A sink whose arrays have `PREFIX` before their names."""

    sink: Sink

    def append(self, split: str, **arrays: np.ndarray) -> None:
        self.sink.append(split, **{f"{PREFIX}{name}": array for name, array in arrays.items()})

    def put(self, split: str, name: str, array: np.ndarray) -> None:
        self.sink.put(split, f"{PREFIX}{name}", array)


def pair_attributes(
    train: Table, test: Table, columns: list[list[str]], templates: list[Template], min_count: int
) -> Attributes:
    """Pair attributes of train and test tokens by bigram templates, "always" not among them."""
    every = expand(train, test, columns, templates, min_count=1, one_pad=False)
    later = [_later(rows, table.start) for rows, table in ((every.train, train), (every.test, test))]
    ids, counts = (np.concatenate([getattr(rows, name) for rows in later]) for name in ("ids", "counts"))
    train_rows, test_rows, chosen = number_rows(ids, counts, len(train.rows), min_count)
    return Attributes(train_rows, test_rows, [every.names[k] for k in chosen.tolist()])


def _later(rows: Rows, start: np.ndarray) -> Rows:
    """The rows without those of first tokens."""
    token = np.repeat(np.arange(rows.counts.size), rows.counts)
    return known_rows(np.where(np.isin(token, start[:-1]), -1, rows.ids), token, rows.counts.size, None)


def put_pairs(sink: Sink, train: Table, test: Table, pairs: Attributes, splits: Mapping[str, int]) -> WithPairs:
    """Write the names of pair attributes, and return the sink for all blocks. `splits` says how many sequences of `test`
    belong to which split, in their order."""
    put_vocabulary(_Prefixed(sink), pairs.names)
    rows, last = {"train": (pairs.train, train.start)}, 0
    for split, size in splits.items():
        start = test.start[last : last + size + 1]
        a, b = int(start[0]), int(start[-1])
        rows[split], last = (pairs.test.of_tokens(a, b), start - a), last + size
    return WithPairs(sink, len(pairs.names) + 1, rows)


def pair_facts(facts: Record, templates: list[Template], pairs: int) -> Record:
    """The facts of a chain, with those of its pair attributes; they are needed to encode new sequences."""
    text = {**facts["text"], "bigrams": [[template.skeleton, template.macros] for template in templates]}
    more = (pairs - 1) * facts["classes"] ** 2
    return {**facts, "d": facts["d"] + more, "pair_attributes": pairs, "text": text}


@dataclass(frozen=True)
class BigramEncoder:
    """Blocks of new sequences with pair attributes."""

    tokens: TextEncoder
    templates: list[Template]
    numbers: dict[str, int]

    def encode(self, raw: Raw, sink: Sink, map_blocks: MapBlocks) -> Known | None:
        """Sequences of columns, as `TextEncoder` takes them."""
        table = new_table(raw, separator=self.tokens.facts.get("separator"))
        columns = columns_of(table, self.tokens.facts["columns"])
        seen = rows_by_name(columns, table.start, self.templates, self.numbers, one_pad=False)
        rows, later = _later(seen, table.start), len(table.rows) - (table.start.size - 1)
        both = WithPairs(sink, len(self.numbers) + 1, {NEW: (rows, table.start)})
        known = self.tokens.encode(table, both, map_blocks)
        assert known is not None  # attributes are not hashed
        return Known(known.known + int(rows.ids.size), known.total + later * len(self.templates))


def bigram_encoder(tokens: TextEncoder, meta: Facts, shared: Mapping[str, np.ndarray]) -> BigramEncoder:
    """The encoder of a feature store with the facts of `pair_facts`."""
    templates = [Template(text, tuple((o, c) for o, c in macros)) for text, macros in meta["text"]["bigrams"]]
    return BigramEncoder(tokens, templates, read_pairs(shared))


def read_pairs(shared: Mapping[str, np.ndarray]) -> dict[str, int]:
    """Numbers of pair attributes by name; ValueError if the names are not there."""
    names = ("vocabulary", "vocabulary_ptr")
    if missing := [f"{PREFIX}{name}" for name in names if f"{PREFIX}{name}" not in shared]:
        raise ValueError(f"{missing[0]}: expected the names of the pair attributes of bigram templates, there are none")
    return read_vocabulary({name: shared[f"{PREFIX}{name}"] for name in names})
