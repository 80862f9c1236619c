"""Pairwise: weight moves from the worst active atom to the corner, at most all that atom has (O16 Alg. 3)."""

from stages.solver.steps import PAIRWISE, StepRule

STEP = StepRule(PAIRWISE)
