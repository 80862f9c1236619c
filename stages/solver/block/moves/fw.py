"""Frank-Wolfe: from the mean mu_i to the vertex, at most all the way, gamma_max = 1 (LJ13 Alg. 4; O16 Alg. 2).

delta = m(y) - mu_i, slope h(y) - base, alpha <- (1 - gamma) alpha + gamma e_y.
"""

from gapwise.stages.solver.block.moves import Move
from gapwise.stages.solver.steps import FW

MOVE = Move(FW)
