"""What structures with losses share: their names, the unit they are counted in, weights, counts of right and wrong labels.

The unit of a loss may be a mean over the training blocks, such as the labelled pixels of a picture. The structure's record
(`Capabilities.unit`) says of what. Whoever makes training blocks adds the mean to their facts, where `build` reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import numpy as np

from gapwise.records import Facts, Record

PER_SEQUENCE, PER_TOKEN = LOSSES = ("per_sequence", "per_token")
"""Losses of sequences: what the costs of a sequence's tokens are divided by (`chain.costs`). The first is the papers'."""
BALANCED = "balanced"
"""Label weights inverse to how often a label occurs: in training, or for pictures in each of them."""
PER_IMAGE, PER_PIXEL = "per_image", "per_pixel"
PICTURE_LOSSES = (BALANCED, PER_IMAGE, PER_PIXEL)
"""Losses of pictures (`images.graph.costs_by`): the first is the usual loss of two classes, the second of more."""
IN_WORDS = {
    PER_SEQUENCE: "the share of wrong labels in the sequence",
    PER_TOKEN: "the number of wrong labels in the sequence, divided by the mean length of a training sequence",
    BALANCED: "the share of each class's pixels in the picture that is labelled wrongly, averaged over the classes that "
    "occur there",
    PER_IMAGE: "the share of the picture's pixels that is labelled wrongly",
    PER_PIXEL: "the number of wrong pixels in the picture, divided by the mean number of labelled pixels of a training "
    "picture",
}
"""What the loss of one example is, as the end of a sentence."""
VOID = 255
"""The label of superpixels that have no true one."""
BLOCK_WEIGHT = "block_weight"
"""Array of weights of blocks (training examples)."""
CHUNKS = {"BIO": "BI", "IOBES": "BIES", "BILOU": "BILU", "BMES": "BMES", "BMEWO": "BMEW"}
"""Letters of a chunk's first token, an inner one, its last, and a chunk of one token. O is outside of all chunks."""


def chunk_roles(labels: Iterable[object]) -> tuple[str, list[tuple[str, str]]]:
    """The scheme of labels such as B-NP, or plain B, and of each its letter in IOBES and its type, such as -NP.

    IOB1 has the letters of BIO. ValueError if the labels fit no scheme of `CHUNKS`.
    """
    names = [str(label) for label in labels]
    for scheme, letters in CHUNKS.items():
        role = dict(zip(letters, "BIES", strict=False))
        if all(name == "O" or (name[:1] in role and name[1:2] in ("", "-")) for name in names):
            return scheme, [(role.get(name[0], "O"), name[1:]) for name in names]
    raise ValueError(f"the labels {', '.join(names)} fit none of {', '.join(CHUNKS)}")


class LossUnit(NamedTuple):
    """What one loss of a structure is counted in."""

    loss: str
    """the loss, as the fact ``loss`` names it"""
    fact: str
    """the fact that holds the mean"""
    total: Callable[[Facts], float]
    """total(arrays): the sum over one training block, or over several in a row"""

    def added(self, facts: Record, total: float, blocks: int) -> Record:
        """The facts, with the mean if the loss is this one."""
        return {**facts, self.fact: total / blocks} if facts.get("loss") == self.loss and blocks else facts


def with_unit(unit: LossUnit | None, facts: Record, arrays: Mapping[str, np.ndarray]) -> Record:
    """The facts of the training blocks in `arrays`, with the mean that their loss needs, if it needs any."""
    return facts if unit is None else unit.added(facts, unit.total(arrays), arrays["labels_ptr"].size - 1)


def block_weights(structure: str, arrays: Mapping[str, np.ndarray], n: int) -> np.ndarray:
    """float64 (n,): ``block_weight`` among the arrays, 1 without any; ValueError unless all are finite and > 0.

    A weight s_i multiplies the hinge of block i. Its loss and its features are s_i times those of the data, so the local
    coordinates, the max-oracle and all certificates are those of any other block. With weights of mean 1 the objective is
    (lambda / 2) ||w||^2 plus the weighted mean of the hinges. Predictions do not depend on weights; losses of blocks do.
    """
    weight = np.array(arrays.get(BLOCK_WEIGHT, np.ones(n)), np.float64)
    if weight.shape != (n,) or not ((weight > 0) & (weight < np.inf)).all():
        raise ValueError(f"{structure}: {BLOCK_WEIGHT} must hold {n} numbers > 0; leave out blocks of weight 0")
    weight.flags.writeable = False
    return weight


def share(wrong: np.ndarray) -> float:
    """Share of what is wrong, bool of any shape; of nothing it is 0, because nothing is wrong there."""
    return float(np.mean(wrong)) if wrong.size else 0.0


def counted(truth: np.ndarray, predicted: np.ndarray, labels: int, weight: np.ndarray | None = None) -> np.ndarray:
    """float64 (labels, labels): entries, or the sum of their `weight`, by (truth, prediction); all arguments are flat."""
    cell = truth.astype(np.int64) * labels + predicted.astype(np.int64)
    return np.bincount(cell, weight, minlength=labels * labels).astype(float).reshape(labels, labels)


def silenced(block: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """A block for training: feature rows of void superpixels and of their edges are 0. Without any, the block itself."""
    if not has_void(block["labels"]):
        return dict(block)
    void, edges = np.asarray(block["labels"]).reshape(-1) == VOID, np.asarray(block["edges"]).reshape(-1, 2)
    cut = void[edges].any(axis=1)
    unary = np.where(void[:, None], np.float32(0.0), block["unary"])
    return {**block, "unary": unary, "pairwise": np.where(cut[:, None], np.float32(0.0), block["pairwise"])}


def has_void(labels: np.ndarray) -> bool:
    """Whether a superpixel has no true label."""
    return bool((np.asarray(labels) == VOID).any())
