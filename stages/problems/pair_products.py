"""How large a block's matrix of inner products may be: one number for every two of its superpixels.

Training reads it in every step, so it is stored. Decoding does not read it.
"""

from __future__ import annotations

LARGEST_BYTES = 1 << 30
"""Bytes of the largest matrix, in float32: that of 16,384 superpixels."""

MOST = int((LARGEST_BYTES // 4) ** 0.5)
"""Superpixels of the largest matrix."""


def too_large(count: int) -> str | None:
    """Why a block of `count` superpixels is too large to train on, in words; None if it is not."""
    if count <= MOST:
        return None
    needed, most = 4 * count**2 / 2**30, LARGEST_BYTES / 2**30
    return (
        f"{count:,} superpixels, whose inner products with each other take {needed:,.3g} GiB in training; expected at most "
        f"{MOST:,} ({most:g} GiB)"
    )
