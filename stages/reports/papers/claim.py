"""A claim of a paper, and how it is measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gapwise.stages.reports.papers.measured import Finding, Measured


@dataclass(frozen=True)
class Claim:
    """A sentence of a paper, and how to measure it."""

    name: str
    """Unique among the claims of all papers."""
    source: str
    """Paper and figure, table or section."""
    says: str
    """The claim in one sentence, in our words."""
    parts: tuple[str, ...]
    """The parts of `+experiment=papers` on which it is measured."""
    measure: Callable[[Measured], Finding]
    """Raises KeyError if the part lacks one of the runs."""
