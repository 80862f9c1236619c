"""Pairwise: from the worst active atom z to the vertex y, at most all its weight, gamma_max = alpha(z) (O16 Alg. 3).

delta = m(y) - m(z), slope h(y) - h(z), alpha <- alpha + gamma (e_y - e_z).
"""

from gapwise.stages.solver.block.moves import Move
from gapwise.stages.solver.steps import PAIRWISE

MOVE = Move(PAIRWISE)
