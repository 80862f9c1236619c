"""Segmentation: unary rows in float32, and in uint8."""

from __future__ import annotations

import itertools

import numpy as np

from gapwise.stages.problems import build, structure
from gapwise.stages.problems.protocol import Problem
from tiny.blocks import ragged


def segmentation(
    seed: int = 2,
    n: int = 5,
    d_unary: int = 3,
    d_pairwise: int = 2,
    smoothing: float = 1.0,
    codes: bool = False,
    potts: float | None = None,
) -> Problem:
    """Images of 1 to 6 superpixels on random graphs; one is all background, one has no edge. Codes: unary in uint8."""
    rng = np.random.default_rng(seed)
    shared = {"unary_scale": np.array([1 / 255])} if codes else {}
    blocks = []
    for i in range(n):
        size = 1 + (i + 3) % 6
        pairs = [pair for pair in itertools.combinations(range(size), 2) if rng.random() < 0.6]
        edges = np.array(pairs, np.int32).reshape(-1, 2)
        labels = (rng.random(size) < 0.5).astype(np.uint8) * (i != 1)
        unary = (rng.normal(size=(size, d_unary)) + 0.5 * np.where(labels, 1, -1)[:, None]).astype(np.float32)
        if codes:
            unary = np.rint(255 / (1 + np.exp(-unary))).astype(np.uint8)
        pairwise = (smoothing * rng.random((len(edges), d_pairwise))).astype(np.float32)
        area = rng.integers(20, 60, size=size).astype(float)
        block = {"unary": unary, "pairwise": pairwise, "edges": edges, "labels": labels, "area": area}
        block["foreground"] = area * np.where(labels, 0.8, 0.1)
        blocks.append(block | structure("segmentation").derived(**block, **shared))
    return build("segmentation", ragged(blocks) | shared, {"potts": potts})


def segmentation_u8() -> Problem:
    """Unary rows in [0, 1], stored as multiples of 1/255."""
    return segmentation(codes=True)


INSTANCES = {"segmentation": segmentation, "segmentation_u8": segmentation_u8}
LABELS = {"Segmentation": lambda problem: 2}
