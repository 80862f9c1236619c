"""Blocks as a feature store would return them."""

from __future__ import annotations

import numpy as np


def ragged(blocks: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """Blocks as a feature store returns them: every array concatenated, with its ``<name>_ptr``."""
    arrays = {name: np.concatenate([b[name] for b in blocks]) for name in blocks[0]}
    ends = {name: np.cumsum([0] + [len(b[name]) for b in blocks]) for name in blocks[0]}
    return arrays | {f"{name}_ptr": end for name, end in ends.items()}
