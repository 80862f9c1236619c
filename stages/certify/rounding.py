"""How far stored and recomputed numbers may lie apart: what rounding explains, and never a visible share of eps.

Units belong to the data. A value is measured against R_0, the primal value of w = 0; a weight against the largest weight. So
scaling the features or the losses changes no verdict.

psi = (1/n) sum_i psi_i is summed plainly over a chunk of m blocks and with compensation over the chunks. Each entry is then
off by at most (m / 2 + 5) u mean_i |psi_i|, u = 1.1e-16; with m = 64 all of psi by less than e = WORST u mean_i ||psi_i||.
(Where d is large chunks are longer, and this is what random signs make of them.) An error e in psi is one of e / lambda in
w. It moves the mean hinge, whose subgradients are means of psi_i(y), by at most mean_i ||psi_i|| e / lambda. Scores and
values are sums themselves, which round by a multiple of u (R_0 + ||w|| mean_i ||psi_i||).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from gapwise.stages.certify.recompute import Rebuilt, Zero

TOLERANCE = 1e-7
"""Relative difference always allowed between stored and recomputed numbers, where eps is no smaller."""

SHARE = 1e-3
"""Share of eps that no difference may exceed where something is certified to eps."""

SIMPLEX = 1e-9
"""Largest error of the sum of a block's weights, where eps is not so small that it would show."""

WORST = 64.0
"""Half a chunk, and what the terms themselves round, in units of u = 1.1e-16."""

UNIT = 0.5 * float(np.finfo(float).eps)

FEW = 64.0 * UNIT
"""What rounding alone makes of the sum of a block's weights, and of a weight as a share of the largest. For any eps."""


class Slack(NamedTuple):
    """What may differ at one breakpoint."""

    value: float
    """of objective values, hinges, losses and gaps"""
    norm2: float
    """of ||w||^2"""
    weights: float
    """of a weight, as a share of the largest"""
    simplex: float
    """of the sum of a block's weights"""
    bound: float
    """share of eps by which a bound may exceed eps"""
    in_w: float
    """what rounding may do to w, in norm"""
    rounding: float
    """the bound on what rounding does to objective values"""
    dual_norm2: float
    """of ||q||^2"""

    def note(self, difference: float) -> str:
        """An explanation for a difference that rounding might have made; empty otherwise."""
        if not difference <= self.rounding:
            return ""
        return (
            f" (rounding may reach {self.rounding:.3g} at this lambda, which is too much for this eps: use a larger "
            "eps or tolerance, or a larger least lambda)"
        )


def slack_of(
    r: Rebuilt, zero: Zero, lam: float, goal: float, *, apart: bool = False, tolerance: float = TOLERANCE
) -> Slack:
    """The slack of a recomputed breakpoint at lambda whose gap is claimed to be at most `goal` (inf: nothing is claimed).

    With a `tolerance` of 0 it is what rounding alone explains. `apart`: w is the stored one, and no error of psi is in it.
    """
    scale, norm = max(r.psi_scale, zero.psi_scale), math.sqrt(r.norm2)
    in_psi = WORST * UNIT * scale
    in_w = 0.0 if apart else in_psi / lam
    by_psi = in_psi / lam * math.sqrt(r.dual_norm2) if apart else in_w * scale
    in_values = WORST * UNIT * (zero.hinge + norm * scale) + by_psi
    most = SHARE * goal
    value = min(max(tolerance * zero.hinge, in_values), most)
    most_weights = max(most / scale, FEW * r.largest) if scale > 0.0 else math.inf
    weights = min(max(tolerance * r.largest, 2.0 * in_w), most_weights)
    norm2 = 2.0 * (tolerance + FEW) * r.norm2 + 4.0 * in_w * (norm + in_w)
    return Slack(
        value=value,
        norm2=min(norm2, most / lam),
        weights=weights / r.largest if r.largest > 0.0 else 0.0,
        simplex=min(SIMPLEX, max(most / (zero.hinge + norm * scale), FEW)) if zero.hinge > 0.0 else SIMPLEX,
        bound=min(max(TOLERANCE, in_values / goal), SHARE) if goal > 0.0 else TOLERANCE,
        in_w=2.0 * in_w,
        rounding=in_values,
        dual_norm2=min(2.0 * tolerance * r.dual_norm2 + 4.0 * in_psi * (math.sqrt(r.dual_norm2) + in_psi), most * lam),
    )


def psi_norm2_rounding(zero: Zero) -> float:
    """What rounding may do to ||psi~||^2, which the solver sums over all blocks without compensation."""
    error = WORST * UNIT * zero.psi_scale
    return error * (2.0 * math.sqrt(zero.psi_norm2) + error)
