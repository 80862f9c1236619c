"""Away: from the worst active atom z, until it has no weight, gamma_max = alpha(z) / (1 - alpha(z)) (O16 Alg. 4).

delta = mu_i - m(z), slope base - h(z), alpha <- (1 + gamma) alpha - gamma e_z. Only with more than one active atom.
"""

from gapwise.stages.solver.block.moves import Move
from gapwise.stages.solver.steps import AWAY

MOVE = Move(AWAY)
