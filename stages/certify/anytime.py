"""The verifier of `anytime`: recomputes the certificate of every cell, and that they cover the axis for the eps reached.

The cells are those of `two_sided`, whose lambdas are found in another way, so the checks are the same. A path that a limit
has stopped claims the whole axis as well: its end has to be what `axis_end` says, whatever stopped it.
"""

from __future__ import annotations

from gapwise.stages.certify import two_sided

ENDS = ("CONVERGED", "LAMBDA_NEGLIGIBLE", "ROUNDING_LIMIT")
"""How an axis may end: at `path.lambda_min`, where no smaller lambda matters, where rounding shows."""


class Anytime(two_sided.TwoSided):
    """All cells of a path over the rebuilt breakpoints."""

    def end(self) -> None:
        """The axis ends as the path says, even if a limit has stopped the solve."""
        ended, status = self.attrs.get("axis_end"), str(self.attrs["status"])
        if ended not in ENDS or (status in ENDS and status != ended):
            self.broken.append(
                f"axis_end is stored as {ended!r}, with the status {status}: expected one of {', '.join(ENDS)}"
            )
            return
        self.audit.end(str(ended))


VERIFIER = Anytime
