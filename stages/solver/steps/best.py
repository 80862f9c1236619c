"""Best: whichever of the Frank-Wolfe, pairwise and away moves improves the dual most."""

from gapwise.stages.solver.steps import AWAY, FW, PAIRWISE, StepRule

STEP = StepRule(FW + PAIRWISE + AWAY)
