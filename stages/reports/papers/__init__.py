"""The papers' claims as checks on our own runs: one row per claim, one file per paper, found by discovery.

A claim is a sentence of a paper, quoted, with the measure by which it is judged on the sweep of a part of
`+experiment=papers` (`comparisons`). Small budgets can only say whether a claim held in these runs, as the page says.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Sequence
from importlib import import_module

from gapwise.parts import with_parts
from gapwise.stages.reports.papers.claim import Claim
from gapwise.stages.reports.papers.measured import Finding, Measured

__path__ = with_parts(__path__, "papers")
MISSING = "runs are missing"


def claims() -> list[Claim]:
    """All claims, in the order of the papers' files."""
    every: list[Claim] = []
    for name in sorted(module.name for module in pkgutil.iter_modules(__path__)):
        part: Sequence[Claim] = getattr(import_module(f"{__name__}.{name}"), "CLAIMS", ())
        every += part
    return every


def findings(part: str, measured: Measured) -> list[tuple[Claim, Finding]]:
    """The claims that are measured on this part, with their findings."""
    pairs = []
    for claim in claims():
        if part in claim.parts:
            try:
                pairs.append((claim, claim.measure(measured)))
            except KeyError as error:
                pairs.append((claim, Finding(None, f"there are no complete runs of {error.args[0]}", why=MISSING)))
    return pairs
