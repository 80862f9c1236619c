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

from gapwise.stages.parallel import Pace
from gapwise.stages.solver.codes import CACHE_ONLY
from gapwise.stages.solver.counts import NEVER
from gapwise.stages.solver.cutting_planes import CuttingPlanes, PlaneCounts, PlaneGroup, PlaneOptions
from gapwise.stages.solver.distances import no_distances, with_room
from gapwise.stages.solver.gaps import ExactGaps
from gapwise.stages.solver.loop import Flags, cached_steps_driver
from gapwise.stages.solver.options import check
from gapwise.stages.solver.planes import Planes
from gapwise.stages.solver.sampling import PERMUTATION
from gapwise.stages.solver.steps import PAIRWISE
from gapwise.stages.solver.supports import blocks_of, drop_unused

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
        super().check()
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
    permutations: int = 0
    """Passes over the working sets so far: the seed of the next permutation."""
    marks: list[int] = field(default_factory=list)
    """Step counts at the last few iterations by blocks."""


@dataclass
class NSlack(CuttingPlanes):
    """A plane per block and iteration, a simplex per block."""

    counts = WorkingSetCounts
    options: Options
    pace: Pace = field(default_factory=Pace)
    """Of visits of blocks."""

    def pieces(self, atom: np.ndarray) -> list[np.ndarray]:
        """Each of them alone."""
        atom = atom[~self.planes.used(self.state.pool.alpha.size)[atom]]
        return [atom[k : k + 1] for k in range(atom.size)]

    def mixtures(self, atom: np.ndarray, alpha: np.ndarray) -> list[tuple[np.ndarray, np.ndarray, float]]:
        """Each labelling alone, with its own weight."""
        return [(atom[k : k + 1], np.ones(1), float(alpha[k])) for k in range(atom.size)]

    def group(self) -> np.ndarray:
        """Blocks, numbered as far as they have planes."""
        block = blocks_of(self.state.pool)[[int(atom[0]) for atom in self.planes.atom]]
        return np.unique(block, return_inverse=True)[1]

    def wanted(self, found: ExactGaps) -> np.ndarray:
        """Blocks whose labelling violates the slack over the working set."""
        return found.gap > 0.0

    def improve(self, found: ExactGaps) -> bool:
        """Add labellings and solve the restricted problem; False if nothing changed."""
        at = self.at
        most = self.options.cutting_plane.quadratic_variables
        if not at.by_blocks:
            weighted = int(np.sum(self.state.pool.alpha > 0.0)) if not at.begun else self.planes.count
            if weighted + self.corners(found).size <= most:
                return super().improve(found)
            at.by_blocks, at.begun = True, True
            self.state.pool.place[:] = -1
            self.state = self.state._replace(distances=no_distances(self.problem.n))
            self.planes = Planes.empty()
        self.forget()
        self.pass_over_blocks()
        return True

    def forget(self) -> None:
        """Drop labellings that have had no weight, and that no oracle has returned, for `unused_iterations` iterations."""
        at, pool, most = self.at, self.state.pool, self.options.cutting_plane.unused_iterations
        pool.used[pool.alpha > 0.0] = self.steps
        pool.used[self.truth] = self.steps
        at.marks = [*at.marks, self.steps][-most:]
        if len(at.marks) == most:
            drop_unused(pool, at.marks[0])

    def pass_over_blocks(self) -> None:
        """Pairwise moves inside the working sets until their gap is below `accuracy` of the last exact gap."""
        P, at = self.problem, self.at
        self.state = self.state._replace(distances=with_room(self.state.distances, self.state.pool.counts))
        self.state.skip[:] = 0
        driver, flags = cached_steps_driver(P), self.pairwise_flags()
        for _ in range(MOST_PASSES):
            order = np.random.default_rng([self.seed, at.permutations]).permutation(P.n)
            at.permutations += 1

            def part(first: int, last: int, order: np.ndarray = order) -> None:
                driver(P, self.state, flags, order[first:last])

            self.pace.run(part, 0, order.size, self.check_stop)
            if self.known_gap <= self.options.cutting_plane.accuracy * at.exact_total:
                return

    def pairwise_flags(self) -> Flags:
        """What the compiled passes read."""
        return Flags(
            sampler=PERMUTATION,
            kinds=PAIRWISE,
            by_slope=False,
            cache=True,
            corner=CACHE_ONLY,
            rounds=ROUNDS,
            skip_below=0.0,
            F=0.0,
            nu=0.0,
            capacity=NEVER,
            degree=1.0,
            average=False,
            scale=self.scale,
            exact_total=self.at.exact_total,
            stop_sum=-1.0,
            stop_calls=NEVER,
        )

    def warm_up(self) -> None:
        """Also compile or load what only this method calls."""
        super().warm_up()
        with_room(no_distances(1), np.ones(1, np.int64))
        cached_steps_driver(self.problem)(self.problem, self.state, self.pairwise_flags(), np.empty(0, np.int64))


METHOD = NSlack
