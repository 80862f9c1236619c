"""Noisy data of many blocks, made quickly: more blocks than weights, so that no w fits them all."""

from __future__ import annotations

import numpy as np
from tiny import chain

from gapwise.stages.problems import build
from gapwise.stages.problems.protocol import Problem


def large_multiclass(n: int, width: int = 4, classes: int = 3, seed: int = 0) -> Problem:
    """Overlapping Gaussian classes; d = classes * width."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(classes, size=n)
    x = rng.normal(size=(n, width)) + np.eye(classes, width)[labels]
    return build("multiclass", {"x": x, "labels": labels}, {"classes": classes})


def large_chain(n: int, seed: int = 0) -> Problem:
    """Five hundred sequences again and again, with other labels changed each time; d = 36. `n`: a multiple of 500."""
    rng = np.random.default_rng(seed)
    few = 500
    times = n // few
    base = chain(3, lengths=tuple(rng.integers(1, 4, size=few).tolist()), width=6, classes=3)
    truth = np.tile(base.truth, times).astype(np.int64)
    changed = rng.random(truth.size) < 0.3
    truth[changed] = rng.integers(3, size=int(changed.sum()))
    values = 1.0 + rng.normal(scale=0.1, size=base.tokens.ids.size * times)
    lengths = np.tile(np.diff(base.label_ptr), times)
    arrays = {
        "labels": truth,
        "labels_ptr": np.concatenate([[0], np.cumsum(lengths)]),
        "ids": np.tile(base.tokens.ids, times),
        "counts": np.tile(np.diff(base.tokens.row_ptr), times),
        "values": values,
        "gram": np.tile(base.gram, times),  # approximate: only line searches use it
        "gram_ptr": np.concatenate([[0], np.cumsum(lengths**2)]),
    }
    return build("chain", arrays, {"classes": 3, "attributes": 9})
