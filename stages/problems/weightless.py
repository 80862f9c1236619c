"""Structures whose score has a part without weights, such as Potts terms of a fixed weight.

With f_i(y) that part, the hinge of block i is max_y [ L_i(y) + f_i(y) - f_i(y_i) - <w, psi_i(y)> ]. The solver needs nothing
but the sum, so `loss` returns L_i(y) + f_i(y) - f_i(y_i): 0 at the truth, and possibly negative elsewhere. Such a
structure has the property `weightless`, a method `task_loss(i, y)` for L_i(y), and a `decode` that counts f_i(y). Its
`least_loss` is 0.
"""

from __future__ import annotations

from gapwise.stages.problems.capabilities import traits_of
from gapwise.stages.problems.moves import optional


@optional()
def task_loss(P, i, y):
    """L_i(y) >= 0, which is `loss` unless the score has a part without weights."""
    return P.loss(i, y)


def is_weightless(problem: object) -> bool:
    """Whether the score has a part without weights."""
    return traits_of(problem).weightless
