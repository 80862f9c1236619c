"""Away: towards the vertex or away from the worst active atom, whichever has the larger slope (O16 Alg. 4)."""

from gapwise.stages.solver.steps import AWAY, FW, StepRule

STEP = StepRule(FW + AWAY, by_slope=True)
