"""Blocks of the structure `matching` from sentence pairs, whose links annotators gave or IBM models find."""

from __future__ import annotations

import numpy as np

from gapwise.records import Record
from gapwise.stages.datasets import Sink
from gapwise.stages.datasets.alignment.features import (
    ASSOCIATION,
    ASSOCIATION_NAMES,
    CLASSES,
    NAMES,
    link_features,
    word_classes,
)
from gapwise.stages.datasets.alignment.lexicon import Lexicon, both_best
from gapwise.stages.datasets.alignment.sentences import Links, Pair, encoded, normal
from gapwise.stages.problems.matching.assignment import best_matching, workspace
from gapwise.stages.problems.matching.labellings import POSSIBLE, TRUE


def facts(fertility: int, nonnegative: bool = False) -> Record:
    """What the structure needs to know; `nonnegative`: weights of association features are >= 0."""
    prices = [f"two links: {side} {kind}" for side in ("e", "f") for kind in ("unknown", "rare", "common", "frequent")]
    names = [*NAMES, *(prices if fertility == 2 else [])]
    bounded = list(ASSOCIATION) if nonnegative else []
    return {
        "fertility": fertility, "kinds": 2 * CLASSES, "d": len(names), "feature_names": names, "nonnegative": bounded,
    }  # fmt: skip


def block(lexicon: Lexicon, pair: Pair, links: Links | None, number: int, fertility: int) -> dict[str, np.ndarray]:
    """Arrays of one sentence pair: those of the structure, the annotators' links, the number and the text."""
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
    e_id, f_id = lexicon.ids([*map(normal, e)], "english"), lexicon.ids([*map(normal, f)], "french")
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


def _allowed(sure: np.ndarray, agreement: np.ndarray, fertility: int) -> np.ndarray:
    """The largest set of sure links within the fertility; of several, the one that agrees most. Sorted, (links, 2)."""
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


def write_specimen(sink: Sink, fertility: int) -> Record:
    """Write two training blocks to compile for."""
    empty = np.empty((0, 2), np.int16)
    for _ in range(2):
        sink.append(
            "train", x=np.eye(4, len(NAMES), dtype=np.float32), counts=np.full(2, 2, np.int16),
            column=np.array([0, 1, 0, 1], np.int16), role=np.array([1, 0, 0, 0], np.uint8),
            labels=np.eye(1, 2 * fertility, dtype=np.uint8)[0], kind=np.zeros(4, np.uint8), sure=empty, possible=empty,
        )  # fmt: skip
    return facts(fertility)
