"""Pairwise: moves weight from the worst active atom to the vertex, at most all of that atom's weight (O16 Alg. 3)."""

from gapwise.stages.solver.steps import PAIRWISE, StepRule

STEP = StepRule(PAIRWISE)
