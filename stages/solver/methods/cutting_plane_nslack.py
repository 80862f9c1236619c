"""The n-slack cutting-plane method: every block has its own slack and its own *working set* of labellings.

Tsochantaridis, Joachims, Hofmann, Altun, JMLR 2005, Alg. 1; Joachims, Finley, Yu 2009, Alg. 1, with margin rescaling:

    min  (lambda/2) ||w||^2 + (1/n) sum_i xi_i   where  <w, psi_i(y)> >= L_i(y) - xi_i  for all y in W_i, all i.

An iteration calls the max-oracles of all blocks at one w, adds each answer to its block's working set where it violates
the slack over that set, and solves the problem over the working sets. (The papers solve it after every constraint,
SVM-struct after every hundred. Here w stays for a whole pass, which is then an exact one and gives the certificate.)

The dual of the restricted problem is a quadratic program with one variable per labelling, in a product of simplices. Up to
`quadratic_variables` of them it is solved as such (`simplex_qp`). Beyond, a dense Gram matrix and its factorisations would
take too long, and it is solved block by block, as decomposition methods such as SVM-light do: passes over the blocks in
permuted order, with exact pairwise moves inside the block's working set and the block's own Gram matrix
(`block.cached_step`), until their gap is below `accuracy` of the last exact gap. So a large restricted problem is
solved to finite accuracy, and slowly where lambda is small. The certificate is as exact as ever.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from gapwise.stages.solver.block_method import block_method
from gapwise.stages.solver.codes import CACHE_ONLY
from gapwise.stages.solver.cutting_planes import (
    CuttingPlanes,
    Mixture,
    PlaneCounts,
    PlaneGroup,
    PlaneOptions,
    Slacks,
    schedule_of,
    setup_of,
)
from gapwise.stages.solver.distances import no_distances, with_room
from gapwise.stages.solver.gaps import ExactGaps
from gapwise.stages.solver.iterate import Iterate, mark_pass
from gapwise.stages.solver.loop import cached_steps_driver
from gapwise.stages.solver.options import check
from gapwise.stages.solver.planes import SPECS, Planes
from gapwise.stages.solver.running import Flags
from gapwise.stages.solver.schedule import Schedule
from gapwise.stages.solver.visits import Visits

ROUNDS = 10
"""The most moves of a block each time it is visited."""

MOST_PASSES = 1000
"""The most passes over the working sets in one iteration."""


@dataclass
class WorkingSetGroup(PlaneGroup):
    """The group `solver.cutting_plane`."""

    quadratic_variables: int = 300
    """The most labellings, of all working sets together, for which the restricted problem is one quadratic program."""
    accuracy: float = 0.1
    """Share of the last exact gap to which larger restricted problems are solved."""

    def check(self) -> None:
        """Raises ValueError naming the key."""
        PlaneGroup.check(self)
        most, share = self.quadratic_variables, self.accuracy
        check("solver.cutting_plane.quadratic_variables", most, 0 <= most <= 2000, "an integer from 0 to 2000")
        check("solver.cutting_plane.accuracy", share, 0 < share < 1, "a number in (0, 1)")


@dataclass
class Options(PlaneOptions):
    """The options of `cutting_plane_nslack`."""

    cutting_plane: WorkingSetGroup = field(default_factory=WorkingSetGroup)


@dataclass
class WorkingSetCounts(PlaneCounts):
    """The scalars of the n-slack method."""

    by_blocks: bool = False
    """Whether there have been too many labellings for one quadratic program; then there are no planes."""


def pieces(planes: Planes, atom: np.ndarray, slots: int) -> list[np.ndarray]:
    """Each of them alone."""
    atom = atom[~planes.used(slots)[atom]]
    return [atom[k : k + 1] for k in range(atom.size)]


def mixtures(atom: np.ndarray, alpha: np.ndarray) -> list[Mixture]:
    """Each labelling alone, with its own weight."""
    return [(atom[k : k + 1], np.ones(1), float(alpha[k])) for k in range(atom.size)]


def group(planes: Planes, block: np.ndarray) -> np.ndarray:
    """Blocks, numbered as far as they have planes."""
    return np.unique(block[[int(atom[0]) for atom in planes.atom]], return_inverse=True)[1]


def wanted(answers: ExactGaps) -> np.ndarray:
    """Blocks whose labelling violates the slack over the working set."""
    return answers.gap > 0.0


@dataclass
class NSlack:
    """A plane per block and iteration, a simplex per block; or, if they are too many, passes over the working sets."""

    it: Iterate
    options: Options
    planes: CuttingPlanes
    counts: WorkingSetCounts

    def __post_init__(self) -> None:
        self.visits = Visits(self.it)

    def improve(self, answers: ExactGaps) -> bool:
        """Add labellings and solve the restricted problem; False if nothing changed."""
        it, counts, planes = self.it, self.counts, self.planes
        most = self.options.cutting_plane.quadratic_variables
        if not counts.by_blocks:
            weighted = planes.planes.count if counts.begun else int(np.sum(it.state.pool.alpha > 0.0))
            if weighted + planes.vertices(answers).size <= most:
                return planes.improve(answers)
            counts.by_blocks, counts.begun = True, True
            it.state.pool.row[:] = -1
            it.state = it.state._replace(distances=no_distances(it.problem.n))
            planes.planes = Planes.empty()
        self.forget()
        self.pass_over_blocks()
        return True

    def forget(self) -> None:
        """Drop labellings that have had no weight, and that no oracle has returned, for `unused_iterations` iterations."""
        it = self.it
        it.state.pool.used[it.state.pool.alpha > 0.0] = it.ledger.steps
        it.state.pool.used[self.planes.truth] = it.ledger.steps
        mark_pass(it, self.options.cutting_plane.unused_iterations)

    def pass_over_blocks(self) -> None:
        """Pairwise moves inside the working sets until their gap is below `accuracy` of the last exact gap."""
        it, flags = self.it, self.pairwise_flags()
        it.state.skip[:] = 0
        for _ in range(MOST_PASSES):
            order = np.random.default_rng([it.seed, it.counts.permutations]).permutation(it.problem.n)
            it.counts.permutations += 1
            self.visits.cached_visits(flags, order)
            if it.known_gap <= self.options.cutting_plane.accuracy * it.counts.exact_total:
                return

    def pairwise_flags(self) -> Flags:
        """What the compiled passes read."""
        return self.visits.flags(vertex_from=CACHE_ONLY, rounds=ROUNDS)

    def warm_up(self) -> None:
        """Compile or load every function that a solve calls."""
        self.planes.warm_up()
        with_room(no_distances(1), np.ones(1, np.int64))
        P, none = self.it.problem, np.empty(0, np.int64)
        cached_steps_driver(P)(P, self.it.state, self.pairwise_flags(), none)


def n_slack(it: Iterate, options: Options, own_primal: bool) -> Schedule:
    """The schedule of `NSlack`."""
    counts = WorkingSetCounts()
    planes = CuttingPlanes(it, options, own_primal, Slacks(pieces, mixtures, group, wanted), counts)
    method = NSlack(it, options, planes, counts)
    return schedule_of(planes, method.improve, method.warm_up)


METHOD = block_method(n_slack, setup_of, SPECS)
