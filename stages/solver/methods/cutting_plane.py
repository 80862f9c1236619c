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

from gapwise.stages.solver.block_method import block_method
from gapwise.stages.solver.cutting_planes import (
    CuttingPlanes,
    Mixture,
    PlaneCounts,
    PlaneOptions,
    Slacks,
    schedule_of,
    setup_of,
)
from gapwise.stages.solver.gaps import ExactGaps
from gapwise.stages.solver.iterate import Iterate
from gapwise.stages.solver.planes import SPECS, Planes
from gapwise.stages.solver.schedule import Schedule

Options = PlaneOptions


def pieces(planes: Planes, atom: np.ndarray, slots: int) -> list[np.ndarray]:
    """All of them together."""
    return [] if not atom.size or planes.knows(atom) else [atom]


def mixtures(atom: np.ndarray, alpha: np.ndarray) -> list[Mixture]:
    """One plane that is a mixture of joint labellings."""
    return [(atom, alpha, 1.0)] if atom.size else []


def group(planes: Planes, block: np.ndarray) -> np.ndarray:
    """All in one."""
    return np.zeros(planes.count, np.int64)


def wanted(answers: ExactGaps) -> np.ndarray:
    """All blocks."""
    return np.ones(answers.gap.size, bool)


def one_slack(it: Iterate, options: Options, own_primal: bool) -> Schedule:
    """One plane an iteration, one simplex."""
    method = CuttingPlanes(it, options, own_primal, Slacks(pieces, mixtures, group, wanted), PlaneCounts())
    return schedule_of(method, method.improve)


METHOD = block_method(one_slack, setup_of, SPECS)
