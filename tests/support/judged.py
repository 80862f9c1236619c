"""Verdicts written by hand: a path that is certified for every lambda > 0, and whatever a test changes of it."""

from __future__ import annotations

import math
from typing import Any

from gapwise.stages.certify.verdict import Verdict, judge

ATTRS = {
    "rule": "paper", "eps": 0.1, "relative": False, "certified": True, "certainty": "exact",
    "dual_point": True, "status": "CONVERGED",
}  # fmt: skip
GIVEN = {"rule": "grid"}
FOUND: dict[str, Any] = {
    "sense": "exact", "met": 3, "solved": 3, "largest_gap": 0.09, "lam_low": 0.0, "lam_high": math.inf,
    "rebuild_error": 1e-15,
}  # fmt: skip


def judged(*, findings: dict[str, Any] | None = None, **attrs: Any) -> Verdict:
    """The verdict on a path with these attributes, besides ATTRS, and these findings, besides FOUND."""
    asked = {**ATTRS, **attrs}
    return judge(asked, **{**FOUND, "sense": asked["certainty"], **(findings or {})})
