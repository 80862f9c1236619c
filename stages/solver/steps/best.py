"""Best: whichever of Frank-Wolfe, pairwise and away move improves the dual most."""

from stages.solver.steps import AWAY, FW, PAIRWISE, StepRule

STEP = StepRule(FW + PAIRWISE + AWAY)
