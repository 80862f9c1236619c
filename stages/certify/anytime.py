"""The verifier of `anytime`: recomputes the certificate of every cell, and that they cover the axis for the eps reached.

The cells are those of `two_sided`, whose lambdas are found in another way, so the checks are the same. A path that a limit
has stopped claims the whole axis as well: its end has to be what `axis_end` says, whatever stopped it.
"""

from __future__ import annotations

from gapwise.stages.certify import two_sided
from gapwise.stages.certify.ends import check_end, rounding_floor

RUNG = 10.0
"""The next level lies at most by this factor below the eps that is reached."""

ENDS = ("CONVERGED", "LAMBDA_NEGLIGIBLE", "ROUNDING_LIMIT")
"""How an axis may end: at `path.lambda_min`, where no smaller lambda matters, where rounding shows."""


class Anytime(two_sided.TwoSided):
    """All cells of a path over the rebuilt breakpoints."""

    @property
    def eps(self) -> float:
        """The eps reached."""
        return float(self.attrs["eps"])

    def end(self) -> None:
        """The axis ends as the path says, even if a limit has stopped the solve."""
        ended, status = self.attrs.get("axis_end"), str(self.attrs["status"])
        stopped = status == "ROUNDING_LIMIT" and (ended != status or self.eps > self.audit.asked_eps)
        if ended not in ENDS or (status in ENDS and status != ended and not stopped):
            self.broken.append(
                f"axis_end is stored as {ended!r}, with the status {status}: expected one of {', '.join(ENDS)}"
            )
            return
        if stopped:
            self.no_level_left()
        check_end(self.audit, str(ended))

    def no_level_left(self) -> None:
        """Rounding ends the path above the eps that was asked for: it shows at every solved lambda a level below."""
        highest, floor = float(self.arrays["lambda"][0]), rounding_floor(self.audit.zero, self.eps / RUNG)
        if not highest <= floor:
            self.broken.append(
                f"lambda {highest:.9g}: the path says that rounding leaves no eps below {self.eps:.9g}, as is so from "
                f"{floor:.9g} down"
            )


VERIFIER = Anytime
