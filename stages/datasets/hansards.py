"""Word alignment of the English-French Canadian Hansards (LJ13 section 6; Taskar, Lacoste-Julien and Klein 2005).

Options: ``root``, a folder with the hand-aligned sentences of the HLT-NAACL 2003 task, ``dev.e``, ``dev.f`` and
``dev.wa.nonullalign`` (37) and ``test.*`` (447), and with parallel text, ``parallel_100k.en.gz`` and
``parallel_100k.fr.gz`` (a sentence a line, plain); ``size``, the training data: ``hand``, the 37 and the first 100 of the
447, as in these papers; ``automatic``, ``sentences`` (5,000, as in LJ13) of the parallel text, at equal steps; or
``both``. The other 347 of the 447 are tested. ``fertility`` (1); 2: words may have two links. ``nonnegative`` (false):
whether the weights of association features must be >= 0. ``missed``, ``extra``, ``possible``: what links cost in the loss
(`stages.problems.matching`).

Automatic alignments are the intersection of IBM Model 2 in both directions; their links are sure. Of the hand-aligned
ones the sure links train: as many of them as words may have, chosen to agree most with the lexicon; the others and the
possible links cost `possible` where they are predicted. The lexicon comes from the parallel text alone, not from the
hand-aligned sentences. All pairs of words are candidates. Weights: 82 features (`alignment.features`), and with
fertility 2 eight prices of second links, for either language and four classes of frequency.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np

from gapwise.records import Record
from gapwise.stages.datasets import DataError, MapBlocks, Reader, Report, Sink
from gapwise.stages.datasets.alignment import sentences
from gapwise.stages.datasets.alignment.sentences import Links, Pair, read_links, read_pairs
from gapwise.stages.datasets.common.files import one_of_files
from gapwise.stages.datasets.common.options import NonNegative, Positive, Values, Whole, one_of

HAND = 100
"""Sentences of the test file that train."""
FILES = ("dev.e", "dev.f", "dev.wa.nonullalign", "test.e", "test.f", "test.wa.nonullalign")
PARALLEL = ("parallel_100k.en", "parallel_100k.fr")


@dataclass(frozen=True)
class Hansards(Reader):
    """The hand-aligned sentences and the parallel text."""

    root: Annotated[Path, Values(f"the folder that holds {', '.join(FILES)} and {' and '.join(PARALLEL)}")]
    size: Annotated[str, one_of("hand", "automatic", "both")] = "hand"
    sentences: Whole = 5000
    fertility: Annotated[int, one_of(1, 2)] = 1
    nonnegative: bool = False
    missed: Positive = 3.0
    extra: Positive = 1.0
    possible: NonNegative = 0.0
    structure = "matching"
    where = ("root",)

    def __post_init__(self) -> None:
        self.files()

    def files(self) -> dict[str, Path]:
        return {name: one_of_files(self.root, name, f"{name}.gz") for name in (*FILES, *PARALLEL)}

    def featurize(self, sink: Sink, map_blocks: MapBlocks, report: Report) -> Record:
        from gapwise.stages.datasets.alignment.blocks import block, facts
        from gapwise.stages.datasets.alignment.lexicon import learn

        hand = {name: self._hand(name) for name in ("dev", "test")}
        report(0, 3, "parts")
        plain = self._parallel()
        report(1, 3, "parts")
        lexicon = learn([e for e, _ in plain], [f for _, f in plain])
        report(2, 3, "parts")
        parts: list[tuple[str, Sequence[tuple[Pair, Links | None]], int]] = [("test", hand["test"][HAND:], HAND + 1)]
        if self.size != "automatic":
            parts += [("train", hand["dev"], 1), ("train", hand["test"][:HAND], 1)]
        if self.size != "hand":
            every = np.linspace(0, len(plain) - 1, min(self.sentences, len(plain))).astype(int)
            parts.append(("train", [(plain[k], None) for k in np.unique(every)], 1))
        counts = {"n_train": 0, "n_test": 0}
        for split, part, first in parts:
            for k, (pair, links) in enumerate(part):
                sink.append(split, **block(lexicon, pair, links, first + k, self.fertility))
            counts[f"n_{split}"] += len(part)
        report(3, 3, "parts")
        costs = {name: getattr(self, name) for name in ("missed", "extra", "possible")}
        return {**facts(self.fertility, self.nonnegative), "costs": costs, **counts}

    def specimen(self, sink: Sink) -> Record:
        from gapwise.stages.datasets.alignment.blocks import write_specimen

        return write_specimen(sink, self.fertility)

    def _hand(self, name: str) -> list[tuple[Pair, Links]]:
        files = self.files()
        pairs = read_pairs(files[f"{name}.e"], files[f"{name}.f"])
        if name == "test" and len(pairs) <= HAND:
            raise DataError(
                f"{files['test.e']}: {len(pairs)} sentences, but the first {HAND} train; expected more to test on"
            )
        return list(zip(pairs, read_links(files[f"{name}.wa.nonullalign"], pairs), strict=True))

    def _parallel(self) -> list[Pair]:
        """Pairs of the parallel text as words."""
        with uncollected():
            texts = read_pairs(*(self.files()[name] for name in PARALLEL))
            return [(sentences.english(e), sentences.french(f)) for e, f in texts]


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """Without the collector of cycles, which would look through all lists of words again and again: there are no cycles."""
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            gc.enable()
