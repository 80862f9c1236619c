"""Names of losses and labels of chunks, which readers, estimators and structures share."""

from __future__ import annotations

from collections.abc import Iterable

PER_SEQUENCE, PER_TOKEN = LOSSES = ("per_sequence", "per_token")
"""Losses of sequences: what the costs of a sequence's tokens are divided by (`chain.costs`). The first is the papers'."""
BALANCED = "balanced"
"""Label weights inverse to how often a label occurs: in training, or for pictures in each of them."""
PER_IMAGE, PER_PIXEL = "per_image", "per_pixel"
PICTURE_LOSSES = (BALANCED, PER_IMAGE, PER_PIXEL)
"""Losses of pictures (`images.graph.costs_by`): the first is the usual loss of two classes, the second of more."""
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
