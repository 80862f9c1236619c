"""Frank-Wolfe: towards the vertex, at most all the way (LJ13 Alg. 4; O16 Alg. 2)."""

from gapwise.stages.solver.steps import FW, StepRule

STEP = StepRule(FW)
