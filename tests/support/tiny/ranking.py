"""Queries of two and three documents, with two levels of relevance and with three."""

from __future__ import annotations

import numpy as np

from gapwise.stages.problems import build
from gapwise.stages.problems.protocol import Problem

LEVELS = ((1, 0), (2, 1, 0), (1, 0, 0), (1, 1, 0))


def ranking(seed: int = 0, levels=LEVELS, width: int = 3, **meta) -> Problem:
    rng = np.random.default_rng(seed)
    relevance = np.concatenate([np.array(of, float) for of in levels])
    x = rng.normal(size=(relevance.size, width)) + 0.7 * relevance[:, None]
    x_ptr = np.cumsum([0, *map(len, levels)])
    return build("ranking", {"x": x, "relevance": relevance, "x_ptr": x_ptr}, meta)
