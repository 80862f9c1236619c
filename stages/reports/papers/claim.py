"""A claim of a paper: the sentence, where it stands, and how it is judged here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from gapwise.stages.reports.papers.comparisons import Outcome
from gapwise.stages.reports.papers.measured import Finding, Measured

MOST_WORDS = 15
"""Of a paper's sentence, this many words are quoted at most."""


@dataclass(frozen=True)
class Claim:
    """A sentence of a paper, and how to measure it."""

    name: str
    """Unique among the claims of all papers."""
    source: str
    """Paper and figure, table or section."""
    quote: str
    """The sentence or a part of it, word for word, at most `MOST_WORDS` words."""
    judged: str
    """What is measured for it, and where in the run."""
    parts: tuple[str, ...]
    """The parts of `+experiment=papers` on which it is measured."""
    measure: Callable[[Measured], Finding]
    """Raises KeyError if the part lacks one of the runs."""
    together: Callable[[Mapping[str, Finding]], Outcome] | None = None
    """Of a sentence about several data sets at once: its outcome from the findings on the parts, by their names. The words
    are those of the findings."""
