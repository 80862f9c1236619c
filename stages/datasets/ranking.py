"""Ranking data: documents of queries in SVMlight's format with query numbers, as in LETOR.

A line is a document: ``relevance qid:query index:value ... # comment``. Any numbers are levels of relevance; documents of a
query should follow each other. The file is read by scikit-learn, as dense rows.

Options: ``file``, the training queries; ``test_file``, without which a share ``test_fraction`` of the queries, drawn with
``seed``, is tested on; with ``validation: file`` also ``validation_file`` (LETOR's vali.txt). Queries whose documents
are all equally relevant say nothing about an order and are left out; the facts of the features have their number.

The files of SVM-HMM look alike, but have tags where these have relevance; `sequences_csv` reads them.

New input for `encoder`: a mapping of ``x`` (documents, D) and ``query`` (documents,).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, NamedTuple

import numpy as np

from gapwise.records import Facts, Record
from gapwise.stages.datasets import (
    NEW,
    DataError,
    MapBlocks,
    NewInput,
    OptionError,
    Predicted,
    Raw,
    Reader,
    Report,
    Shown,
    Sink,
)
from gapwise.stages.datasets.arrays.files import first_column, read_svm_lines
from gapwise.stages.datasets.arrays.rows import Rows, refuse_endless
from gapwise.stages.datasets.common.files import csv_text, existing
from gapwise.stages.datasets.common.options import Natural, Share, Values, one_of

LARGEST = 4 << 30
"""Bytes of dense rows that are read at most."""
FORM = "expected lines like '2 qid:10 1:0.03 5:0.7 # document'"


class Documents(NamedTuple):
    """The documents of a file, or some of them, in the order of the file."""

    x: np.ndarray
    """float64, (documents, D)"""
    relevance: np.ndarray
    """float64, (documents,)"""
    query: np.ndarray
    """int64, (documents,)"""

    def queries(self) -> list[np.ndarray]:
        """Numbers of the documents of each query, queries in the order of their first document."""
        _, first, of = np.unique(self.query, return_index=True, return_inverse=True)
        rank = np.empty(first.size, np.int64)
        rank[np.argsort(first)] = np.arange(first.size)
        by_query = np.argsort(rank[of], kind="stable")
        return np.split(by_query, np.cumsum(np.bincount(rank[of]))[:-1])


@dataclass(frozen=True)
class Queries(Reader):
    """Queries with their documents."""

    file: Annotated[Path, Values("a file of documents with qid in SVMlight's format")]
    test_file: Path | None = None
    test_fraction: Share = 0.25
    seed: Natural = 0
    validation: Annotated[str, one_of("file")] | None = None
    validation_file: Path | None = None
    structure = "ranking"
    where = ("file", "test_file", "validation_file")
    needs = ("sklearn",)
    validations: ClassVar = {"file": ("validation_file",)}

    def __post_init__(self) -> None:
        if self.validation and self.validation_file is None:
            raise OptionError(
                "dataset.validation_file: missing; give a file of documents with qid in SVMlight's format"
            )
        for split, file in self.files().items():
            existing(file, f"dataset.{'file' if split == 'train' else f'{split}_file'}")

    def files(self) -> dict[str, Path]:
        validation = self.validation_file if self.validation else None
        files = {"train": self.file, "test": self.test_file, "validation": validation}
        return {name: file for name, file in files.items() if file is not None}

    def featurize(self, sink: Sink, map_blocks: MapBlocks, report: Report) -> Record:
        """Write all splits; DataError names the file."""
        names = list(self.files())
        documents, first = read_documents([self.files()[name] for name in names])
        read = dict(zip(names, documents, strict=True))
        chosen = {name: of.queries() for name, of in read.items()}
        if self.test_file is None:
            read["test"], share = read["train"], round(self.test_fraction * len(chosen["train"]))
            drawn = set(np.random.default_rng(self.seed).permutation(len(chosen["train"]))[: max(share, 1)].tolist())
            chosen["test"] = [rows for q, rows in enumerate(chosen["train"]) if q in drawn]
            chosen["train"] = [rows for q, rows in enumerate(chosen["train"]) if q not in drawn]
        facts: Record = {"d": int(read["train"].x.shape[1]), "first_index": first, "without_pairs": {}}
        for done, split in enumerate(chosen):
            report(done, len(chosen), "splits")
            with_pairs = [rows for rows in chosen[split] if np.ptp(read[split].relevance[rows]) > 0.0]
            if not with_pairs:
                raise DataError(
                    f"{self.files().get(split, self.file)}: no {split} query has documents of different relevance"
                )
            for rows in with_pairs:
                append(sink, split, read[split], rows)
            facts["without_pairs"][split] = len(chosen[split]) - len(with_pairs)
            if split != "validation":
                facts[f"n_{split}"] = len(with_pairs)
        return facts

    def specimen(self, sink: Sink) -> Record:
        documents = Documents(np.eye(3), np.array([1.0, 0.0, 0.0]), np.zeros(3, np.int64))
        append(sink, "train", documents, np.arange(3))
        return {"d": 3}

    @classmethod
    def encoder(cls, meta: Facts, shared: Mapping[str, np.ndarray]) -> QueriesEncoder:
        """The encoder of a feature store of this reader."""
        return QueriesEncoder(int(meta["d"]))

    @classmethod
    def read_new(cls, inputs: Sequence[str], meta: Facts) -> NewInput:
        """Documents of files in the form of the training file; their relevance, which must be there, is not used."""
        first, width = int(meta["first_index"]), int(meta["d"])
        parts = read_documents([existing(name, "input") for name in inputs], first, width)[0]
        x, relevance, query = (np.concatenate(column) for column in zip(*parts, strict=True))
        if len(parts) > 1:  # a query number of one file is not that of another
            query = query + np.repeat(np.arange(len(parts)) * (query.max() + 1), [len(part.query) for part in parts])
        return NewInput({"x": x, "query": query}, relevance)

    @classmethod
    def stored_input(cls, arrays: Mapping[str, np.ndarray], meta: Facts) -> NewInput:
        """Documents of a test split, in the order of its file, without queries that were left out."""
        counts = np.diff(arrays["x_ptr"])
        order = np.argsort(arrays["document"], kind="stable")
        x, query = np.asarray(arrays["x"])[order], np.repeat(arrays["query"], counts)[order]
        example = {"x": x[query == query[0]].tolist(), "query": query[query == query[0]].tolist()}
        return NewInput({"x": x, "query": query}, np.asarray(arrays["relevance"])[order], example=example)

    @classmethod
    def show(cls, new: NewInput, predicted: Predicted) -> Shown:
        """CSV: number of the document from 0, query, relevance if the input has it, rank within the query from 1."""
        raw = new.raw
        documents = Documents(np.asarray(raw["x"]), np.zeros(len(raw["x"])), np.asarray(raw["query"]))
        rank = np.zeros(len(documents.query), np.int64)
        relevance = rank if new.source is None else np.asarray(new.source)
        for i, rows in enumerate(documents.queries()):
            stored = np.asarray(predicted.arrays["document"])[slice(*predicted.arrays["document_ptr"][i : i + 2])]
            position_of = {
                int(document): position for document, position in zip(stored, predicted[i][rows.size :], strict=True)
            }
            in_file = sorted(position_of)
            rank[rows] = [rows.size - position_of[document] for document in in_file]
        columns = [np.arange(rank.size), documents.query, *([] if new.source is None else [relevance]), rank]
        header = ("document", "query", *(() if new.source is None else ("relevance",)), "rank")
        return Shown(csv_text(header, zip(*(column.tolist() for column in columns), strict=True)))


def append(sink: Sink, split: str, documents: Documents, rows: np.ndarray) -> None:
    """The documents `rows` of a query as a block: by falling relevance, with their numbers in the file."""
    rows = rows[np.argsort(-documents.relevance[rows], kind="stable")]
    query = documents.query[rows[:1]]
    sink.append(split, x=documents.x[rows], relevance=documents.relevance[rows], document=rows, query=query)


def read_documents(
    files: Sequence[Path], first: int | None = None, width: int | None = None
) -> tuple[list[Documents], int]:
    """The documents of files with the columns of the first one, and the index of the first column.

    Parameters
    ----------
    first : int, optional
        Index of the first column, 0 or 1; None: 0 if one of the files has an index 0, else 1.
    width : int, optional
        Number of columns; None: those of the first file. Later columns are left out.

    Raises
    ------
    DataError
        Names the file, and what was expected.
    """
    parts = [read_svm_lines(file, FORM) for file in files]
    for file, lines in zip(files, parts, strict=True):
        if len(lines.query) != len(lines.labels):
            raise DataError(f"{file}: {len(lines.labels)} documents, {len(lines.query)} of them with a qid; {FORM}")
        refuse_endless(Rows(file, "line", lines.numbers, [], lines.x))
    begins = [first_column(file, lines, first) for file, lines in zip(files, parts, strict=True)]
    begin = min(begins)
    width = width or parts[0].x.shape[1] - begin
    documents = []
    for file, lines in zip(files, parts, strict=True):
        if 8 * len(lines.labels) * width > LARGEST:
            raise DataError(
                f"{file}: {len(lines.labels):,} documents of {width:,} columns are more than the {LARGEST >> 30} GB that "
                "dense rows may take; leave out columns"
            )
        rows = np.zeros((len(lines.labels), width))
        some = lines.x[:, begin : begin + width]
        rows[:, : some.shape[1]] = some.toarray()
        documents.append(Documents(rows, lines.labels, lines.query))
    return documents, begin


class QueriesEncoder:
    """Blocks of new queries."""

    def __init__(self, width: int) -> None:
        self.width = width

    def encode(self, raw: Raw, sink: Sink, map_blocks: MapBlocks) -> None:
        """A mapping of ``x`` (documents, D) and ``query`` (documents,)."""
        x, query = np.asarray(raw["x"], np.float64), np.asarray(raw["query"])
        if x.ndim != 2 or not x.size or x.shape[1] != self.width or query.shape != x.shape[:1]:
            raise DataError(
                f"input: x is {x.shape} and query {query.shape}; expected (documents, {self.width}) and (documents,)"
            )
        if not np.isfinite(x).all():
            raise DataError(f"input: document {int(np.argmin(np.isfinite(x).all(axis=1)))} has a feature not finite")
        documents = Documents(x, np.zeros(len(x)), query.astype(np.int64))
        for rows in documents.queries():
            append(sink, NEW, documents, rows)
