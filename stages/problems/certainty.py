"""What a duality gap is worth, which depends on the max-oracle that its hinges come from.

* EXACT: the oracle finds every maximum;
* UPPER_BOUNDED: the oracle is approximate, and the structure bounds each maximum from above (`protocol.Bounded`). The gap
  is that of the bounds, so it certifies as much as an exact one, whatever the oracle returned;
* ESTIMATE: the oracle is approximate without a bound, or the gap rests on stale numbers: it may be too small.
"""

from __future__ import annotations

from typing import Any

EXACT, UPPER_BOUNDED, ESTIMATE = "exact", "upper-bounded", "estimate"


def certainty_of(problem: Any) -> str:
    """What the gaps of this problem are; structures without the attribute `certainty` are EXACT."""
    return str(getattr(problem, "certainty", EXACT))
