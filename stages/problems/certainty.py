"""What a duality gap is worth, which depends on the max-oracle that its hinges come from.

* EXACT: the oracle finds every maximum;
* UPPER_BOUNDED: the oracle is approximate, and the structure bounds each maximum from above (`protocol.Bounded`). The gap
  is that of the bounds, so it certifies as much as an exact one, whatever the oracle returned;
* ESTIMATE: the oracle is approximate without a bound, or the gap rests on stale numbers: it may be too small.

An approximate oracle has the *multiplicative accuracy* nu in (0, 1] if the block gap that its answer shows is always at
least nu times the true one (LJ13 4). A true gap is then at most 1 / nu times its estimate, and LJ13's bounds on the steps of
BCFW hold times 1 / nu^2. Running the oracle cannot prove nu. So it is shown as what the oracle declares, and gaps stay
estimates.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gapwise.stages.problems.capabilities import ESTIMATE, EXACT, UPPER_BOUNDED, optional_of

__all__ = [
    "ESTIMATE",
    "EXACT",
    "UPPER_BOUNDED",
    "accuracy_of",
    "certainty_of",
    "certainty_told",
    "is_accuracy",
    "promise",
]


def certainty_of(problem: object) -> str:
    """What the gaps of this problem are; structures without the attribute `certainty` are EXACT."""
    return str(optional_of(problem, "certainty"))


def certainty_told(attrs: Mapping[str, Any]) -> str:
    """What the attributes of a stored trace or path say of its gaps; EXACT where they are silent."""
    return str(attrs.get("certainty", EXACT))


def accuracy_of(problem: object) -> float | None:
    """The multiplicative accuracy that the oracle of this problem declares; None if it declares none."""
    accuracy = optional_of(problem, "accuracy") if certainty_of(problem) == ESTIMATE else None
    return None if accuracy is None else float(accuracy)


def is_accuracy(value: object) -> bool:
    """Whether `value` is a number in (0, 1], as a multiplicative accuracy has to be."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0.0 < value <= 1.0


def promise(accuracy: float) -> str:
    """What LJ13's theorem promises for an oracle of this multiplicative accuracy."""
    return (
        f"with the multiplicative accuracy {accuracy:g} that the oracle declares, a gap is at most {1.0 / accuracy:.4g} "
        f"times its estimate and BCFW takes at most {1.0 / accuracy**2:.4g} times the steps (LJ13 section 4)"
    )
