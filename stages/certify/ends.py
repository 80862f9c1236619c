"""Whether a path may begin and end where it says: above its top w = 0 serves, and below its end nothing is left to gain."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from gapwise.stages.certify.recompute import Zero
from gapwise.stages.certify.rounding import SHARE, TOLERANCE, psi_norm2_rounding

if TYPE_CHECKING:
    from gapwise.stages.certify.audit import Audit

NEGLIGIBLE, PAST_TOP = 0.01, 1.001e-4
"""Share of eps that (lambda / 2) ||w||^2 may be where a path ends because no smaller lambda matters; and, where the hinge
has not fallen by eps, the share of the top that lambda may be, with some room for rounding."""

LEAST, ROUNDED = 1e-9, 1e-13
"""A path that ends because of rounding ends below LEAST ||psi~||^2 / eps or ROUNDED mean_i ||psi_i||^2 / eps."""


def check_end(audit: Audit, ended: str | None = None) -> None:
    """The path ends where its status says: at lambda = 0, at `path.lambda_min`, or where nothing is left to gain.

    `ended` replaces the status, where a limit has stopped a path that ends like this all the same.
    """
    closed, status = audit.verifier.closed(), ended or str(audit.attrs["status"])
    low, least = (float(closed[-1]) if closed.size else math.inf), float(audit.attrs["lambda_min"])
    if status == "CONVERGED" and not low <= least:
        audit.broken.append(f"lambda {low:.9g}: the path ends above lambda_min without reaching its end")
    eps, relative, lams = float(audit.attrs["eps"]), bool(audit.attrs["relative"]), audit.arrays["lambda"]
    last, r = float(lams[-1]), audit.rebuilt[-1]
    if status == "LAMBDA_NEGLIGIBLE":
        goal = eps * (r.primal if relative else 1.0)
        share, fallen = 0.5 * last * r.norm2 / goal, (audit.zero.hinge - r.hinge) / goal
        top = audit.zero.psi_norm2 / (2.0 * eps * (audit.zero.hinge if relative else 1.0))
        past_top = fallen >= 1.0 - SHARE or last <= PAST_TOP * top
        if not (least == 0.0 and share <= NEGLIGIBLE * (1.0 + SHARE) and past_top):
            audit.broken.append(
                f"lambda {low:.9g}: the path says it ends where the regulariser is negligible; at its last lambda it is "
                f"worth {share:.3g} of eps, lambda {last / top:.3g} of the top, and the hinge fell by {fallen:.3g} eps"
            )
    if status == "LOSS_RISES" and audit.attrs.get("end") != "loss_rises":
        audit.broken.append(
            f"lambda {low:.9g}: the path says that a rising loss ended it, which path.end does not ask for"
        )
    if status == "ROUNDING_LIMIT":
        floor = rounding_floor(audit.zero, eps * (audit.zero.hinge if relative else 1.0))
        if not low <= floor:
            audit.broken.append(f"lambda {low:.9g}: the path says that rounding ends it, as is so below {floor:.9g}")


def rounding_floor(zero: Zero, unit: float) -> float:
    """The lambda below which rounding may show in a gap of `unit`."""
    return max(LEAST * zero.psi_norm2, ROUNDED * zero.psi_scale**2) / unit


def check_top(audit: Audit) -> None:
    """The dual point of w = 0, on which all lambdas above the first breakpoint rest."""
    top, zero = float(audit.attrs["lam_top"]), audit.zero
    eps = float(audit.attrs["eps"]) * (zero.hinge if audit.attrs["relative"] else 1.0)
    at_hinge = min(TOLERANCE * zero.hinge, SHARE * eps)
    for name, value, allowed in (
        ("hinge_at_zero", zero.hinge, at_hinge),
        ("psi_norm2", zero.psi_norm2, TOLERANCE * zero.psi_norm2 + psi_norm2_rounding(zero)),
    ):
        stored = float(audit.attrs[name])
        if not abs(stored - value) <= allowed:
            audit.broken.append(f"lambda {top:.9g} and above: {name} is stored as {stored:.9g}, is {value:.9g}")
