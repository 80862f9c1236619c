"""Made-up breakpoints under the names of `storage.layout.PATH`, so that tests of storage need no solver."""

from __future__ import annotations

from typing import Any

import numpy as np

BLOCKS, FEATURES = 3, 4


def breakpoint_record(number: int) -> dict[str, Any]:
    """A different breakpoint for each number, with its own number of atoms, whose labellings differ in length."""
    rng = np.random.default_rng(number)
    counts = rng.integers(1, 4, size=BLOCKS)
    atoms = int(counts.sum())
    lengths = rng.integers(1, 5, size=atoms)
    scalars = ("lambda", "lambda_low", "gap", "primal", "dual", "hinge", "loss_dual", "norm2", "effective_passes")
    return {
        **{name: float(rng.random()) for name in scalars},
        "seconds": 0.5,
        "oracle_calls": number,
        "status": number % 3,
        "weights": rng.normal(size=FEATURES),
        "block_gap": rng.random(BLOCKS),
        "support_offset": np.concatenate([[0], np.cumsum(counts)]),
        "support_alpha": rng.random(atoms),
        "support_loss": rng.random(atoms),
        "support_label": rng.integers(5, size=int(lengths.sum())).astype(np.int16),
        "label_offset": np.concatenate([[0], np.cumsum(lengths)]),
    }
