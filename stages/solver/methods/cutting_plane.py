"""The 1-slack cutting-plane method: all blocks share one slack, and a plane is a joint labelling of all of them.

Joachims, Finley, Yu, *Cutting-plane training of structural SVMs*, Machine Learning 2009, Alg. 3, with margin rescaling:

    min  (lambda/2) ||w||^2 + xi   where  (1/n) sum_i <w, psi_i(y_i)> >= (1/n) sum_i L_i(y_i) - xi  for all (y_1, ..., y_n)

with lambda = 1/C and the mean, not the sum, of hinges: P of the other methods, with the same w and the same gap. The most
violated joint labelling consists of the answers of the blocks' max-oracles, so an iteration is one exact pass. To a gap of
eps it takes O(R^2 / (lambda eps)) iterations, whatever n is (Theorem 5). The dual has one weight per joint labelling, in
one simplex; the restricted problem has as many variables as there are planes.
"""

from __future__ import annotations

import numpy as np

from gapwise.stages.solver.cutting_planes import CuttingPlanes, PlaneOptions

Options = PlaneOptions


class OneSlack(CuttingPlanes):
    """One plane an iteration, one simplex."""

    def pieces(self, atom: np.ndarray) -> list[np.ndarray]:
        """All of them together."""
        return [] if not atom.size or self.planes.knows(atom) else [atom]

    def mixtures(self, atom: np.ndarray, alpha: np.ndarray) -> list[tuple[np.ndarray, np.ndarray, float]]:
        """One plane that is a mixture of joint labellings."""
        return [(atom, alpha, 1.0)] if atom.size else []

    def group(self) -> np.ndarray:
        """All in one."""
        return np.zeros(self.planes.count, np.int64)


METHOD = OneSlack
