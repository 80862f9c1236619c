"""The formats that figures are saved in, which `paint.figure_in` reads. Loads no library, for configurations import it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

FORMATS = ("png", "pdf", "svg")
"""png for screens; pdf and svg for papers"""
wanted: ContextVar[tuple[str, ...]] = ContextVar("wanted", default=("png",))


@contextmanager
def saved_as(formats: Sequence[str]) -> Iterator[None]:
    """Save the figures of the block in these formats."""
    before = wanted.set(tuple(formats))
    try:
        yield
    finally:
        wanted.reset(before)
