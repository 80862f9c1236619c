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
from typing import TYPE_CHECKING, Annotated

import numpy as np

from gapwise.records import Record
from gapwise.stages.datasets import DataError, MapBlocks, Reader, Report, Sink
from gapwise.stages.datasets.alignment.links import Links, encoded, read_links, read_pairs
from gapwise.stages.datasets.common.files import one_of_files
from gapwise.stages.datasets.common.options import NonNegative, Positive, Values, Whole, one_of

if TYPE_CHECKING:
    from gapwise.stages.datasets.alignment.lexicon import Lexicon

HAND = 100
"""Sentences of the test file that train."""
FILES = ("dev.e", "dev.f", "dev.wa.nonullalign", "test.e", "test.f", "test.wa.nonullalign")
PARALLEL = ("parallel_100k.en", "parallel_100k.fr")
Pair = tuple[list[str], list[str]]


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
        from gapwise.stages.datasets.alignment.lexicon import learn

        hand = {name: self._hand(name) for name in ("dev", "test")}
        report(0, 3, "parts")
        plain, words = self._parallel()
        report(1, 3, "parts")
        lexicon = learn(*words)
        report(2, 3, "parts")
        sentences = len(plain)
        del words
        counts = dict.fromkeys(("train", "test"), 0)
        parts: list[tuple[str, Sequence[tuple[Pair, Links | None]], int]] = [("test", hand["test"][HAND:], HAND + 1)]
        if self.size != "automatic":
            parts += [("train", hand["dev"], 1), ("train", hand["test"][:HAND], 1)]
        if self.size != "hand":
            every = np.linspace(0, sentences - 1, min(self.sentences, sentences)).astype(int)
            parts.append(("train", [(plain[k], None) for k in np.unique(every)], 1))
        for split, part, first in parts:
            for k, (pair, links) in enumerate(part):
                sink.append(split, **block(lexicon, pair, links, first + k, self.fertility))
            counts[split] += len(part)
        report(3, 3, "parts")
        return {
            **facts(self.fertility),
            "costs": {name: getattr(self, name) for name in ("missed", "extra", "possible")},
            "nonnegative": _association() if self.nonnegative else [],
            **{f"n_{split}": count for split, count in counts.items()},
        }

    def specimen(self, sink: Sink) -> Record:
        """Blocks to compile for."""
        from gapwise.stages.datasets.alignment.features import NAMES

        F = self.fertility
        for _ in range(2):
            empty = np.empty((0, 2), np.int16)
            sink.append(
                "train", x=np.eye(4, len(NAMES), dtype=np.float32), counts=np.full(2, 2, np.int16),
                column=np.array([0, 1, 0, 1], np.int16), role=np.array([1, 0, 0, 0], np.uint8),
                labels=np.eye(1, 2 * F, dtype=np.uint8)[0], kind=np.zeros(4, np.uint8), sure=empty, possible=empty,
            )  # fmt: skip
        return facts(F)

    def _hand(self, name: str) -> list[tuple[Pair, Links]]:
        files = self.files()
        pairs = read_pairs(files[f"{name}.e"], files[f"{name}.f"])
        if name == "test" and len(pairs) <= HAND:
            raise DataError(
                f"{files['test.e']}: {len(pairs)} sentences, but the first {HAND} train; expected more to test on"
            )
        return list(zip(pairs, read_links(files[f"{name}.wa.nonullalign"], pairs), strict=True))

    def _parallel(self) -> tuple[list[Pair], tuple[list[list[str]], list[list[str]]]]:
        """Pairs of the parallel text as words, and the words by language."""
        from gapwise.stages.datasets.alignment import tokens

        with uncollected():
            texts = read_pairs(*(self.files()[name] for name in PARALLEL))
            english = [tokens.english(e) for e, _ in texts]
            french = [tokens.french(f) for _, f in texts]
            return list(zip(english, french, strict=True)), (english, french)


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


def facts(fertility: int) -> Record:
    """What the structure needs to know."""
    from gapwise.stages.datasets.alignment.features import CLASSES, NAMES

    prices = [f"two links: {side} {kind}" for side in ("e", "f") for kind in ("unknown", "rare", "common", "frequent")]
    names = [*NAMES, *(prices if fertility == 2 else [])]
    return {"fertility": fertility, "kinds": 2 * CLASSES, "d": len(names), "feature_names": names}


def _association() -> list[int]:
    from gapwise.stages.datasets.alignment.features import ASSOCIATION

    return list(ASSOCIATION)


def block(lexicon: Lexicon, pair: Pair, links: Links | None, number: int, fertility: int) -> dict[str, np.ndarray]:
    """Arrays of one sentence pair: those of the structure, the annotators' links, the number and the text."""
    from gapwise.stages.datasets.alignment.features import ASSOCIATION_NAMES, CLASSES, link_features, word_classes
    from gapwise.stages.datasets.alignment.lexicon import both_best
    from gapwise.stages.problems.matching.labellings import POSSIBLE, TRUE

    e, f = pair
    J, K = len(e), len(f)
    x = link_features(e, f, lexicon)
    forward, back, agreement = (
        x[:, :, ASSOCIATION_NAMES.index(name)] for name in ("posterior from e", "posterior from f", "agreement")
    )
    if links is None:
        links = {(int(j), int(k)): "S" for j, k in np.argwhere(both_best(forward, back))}
    sure = np.array(sorted(link for link, letter in links.items() if letter == "S"), np.int16).reshape(-1, 2)
    possible = np.array(sorted(links), np.int16).reshape(-1, 2)
    role = np.zeros((J, K), np.uint8)
    role[tuple(possible.T)] = POSSIBLE
    true = _allowed(sure, agreement, fertility)
    role[tuple(true.T)] = TRUE
    labels = np.zeros((J, fertility), np.uint8)
    for j, k in true.tolist():
        labels[j, np.argmin(labels[j])] = k + 1
    e_id, f_id = _ids(lexicon, e, "english"), _ids(lexicon, f, "french")
    return {
        "x": x.reshape(J * K, -1),
        "counts": np.full(J, K, np.int16),
        "column": np.tile(np.arange(K, dtype=np.int16), J),
        "role": role.ravel(),
        "labels": labels.ravel(),
        "kind": np.concatenate(
            [word_classes(e_id, lexicon.english_counts), CLASSES + word_classes(f_id, lexicon.french_counts)]
        ).astype(np.uint8),
        "sure": sure,
        "possible": possible,
        "number": np.array([number], np.int32),
        "text": encoded([" ".join(e), " ".join(f)]),
    }


def _ids(lexicon: Lexicon, words: list[str], side: str) -> np.ndarray:
    from gapwise.stages.datasets.alignment.tokens import normal

    return lexicon.ids([normal(word) for word in words], side)


def _allowed(sure: np.ndarray, agreement: np.ndarray, fertility: int) -> np.ndarray:
    """The largest set of sure links within the fertility; of several, the one that agrees most. Sorted, (links, 2)."""
    from gapwise.stages.problems.matching.assignment import best_matching, workspace

    J, K = agreement.shape
    if not len(sure):
        return sure
    work, y = workspace(J, K, J * K), np.zeros(J * fertility, np.int16)
    gain = np.zeros((J, K))
    gain[tuple(sure.T)] = 1.0 + agreement[tuple(sure.T)] / (1.0 + len(sure))  # no agreement outweighs one link more
    work[0][:], work[3][:] = gain.ravel(), 0.0
    best_matching(np.arange(0, J * K + 1, K), 0, J, K, np.tile(np.arange(K, dtype=np.int32), J), fertility, y, work)
    rows = np.repeat(np.arange(J), fertility)[y > 0]
    return np.stack([rows, y[y > 0] - 1], axis=1)
