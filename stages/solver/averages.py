"""Weighted averages of the dual iterates, on one track or two (LJ13 3.4; S15's MP-BCFW-avg).

A track averages the iterates after some of the steps: v_bar = sum_k 2k / (K (K + 1)) v_k over the K steps it counts. It
keeps the sum z with v_bar = v - 2 z / (K (K + 1)): a move that u makes after k counted steps, u += m, adds k (k + 1) / 2 m
to z, because v_1 to v_k are without it. Compiled steps do this for the track that they are given. The count of another
track stands still meanwhile, so for that track a whole pass is one such move.

`weighted` is one track over all steps. `two_track` has one over the steps of exact passes and one over those of approximate
passes; its point is where the dual value is largest between the two.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gapwise.stages.problems.moves import norm2_of, product_of
from gapwise.stages.problems.stored import check_array
from gapwise.stages.solver.codes import AVERAGED
from gapwise.stages.solver.objective import dual_value

if TYPE_CHECKING:
    from gapwise.stages.problems.protocol import Problem
    from gapwise.stages.solver.counts import Arrays
    from gapwise.stages.solver.running import State

TRACKS = {"none": 0, "weighted": 1, "two_track": 2}
"""Tracks of each value of `solver.averaging`."""

EXACT, APPROXIMATE = range(2)
"""Kinds of passes."""

HALVINGS = 60
"""Bisections of the interval between two averages, with a box."""


class AveragePoint(NamedTuple):
    """A dual point that an average shows, without its labellings."""

    v: np.ndarray
    """float64, (d,): (1 / lambda n) sum_i B_i (m_i(y_i) - mu_i)"""
    ell: float
    """mean of the ell_i"""

    def value(self, problem: Problem, lam: float) -> float:
        """D."""
        w = self.weights(problem)
        return dual_value(self.ell, self.v, w, lam, problem.lower, problem.upper, norm2_of(problem, w))

    def weights(self, problem: Problem) -> np.ndarray:
        """w = clip(v), (d,)."""
        return np.clip(self.v, problem.lower, problem.upper) if problem.lower.size else self.v


def between(a: AveragePoint, b: AveragePoint, share: float) -> AveragePoint:
    """a + share (b - a)."""
    return AveragePoint(a.v + share * (b.v - a.v), a.ell + share * (b.ell - a.ell))


def best_between(problem: Problem, lam: float, a: AveragePoint, b: AveragePoint) -> AveragePoint:
    """The point of the segment from a to b whose dual value is largest (S15 3.5).

    D is concave, with derivative (ell_b - ell_a) - lambda <w, v_b - v_a> along the segment, which is linear without a box.
    """
    along, rise = b.v - a.v, b.ell - a.ell

    def slope(share: float) -> float:
        return float(rise - lam * product_of(problem, between(a, b, share).weights(problem), along))

    if not problem.lower.size:
        curvature, first = lam * norm2_of(problem, along), slope(0.0)
        return between(a, b, min(max(first / curvature, 0.0), 1.0) if curvature > 0.0 else float(first > 0.0))
    low, high = 0.0, 1.0
    if slope(high) >= 0.0:
        return b
    if slope(low) <= 0.0:
        return a
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if slope(middle) > 0.0 else (low, middle)
    return between(a, b, low)


@dataclass
class Averages:
    """The tracks of a solve at one lambda."""

    z: list[np.ndarray]
    """float64, (d,) each: running sums"""
    z_ell: np.ndarray
    """float64, (tracks,): the same for the mean loss of the dual point"""
    counts: np.ndarray
    """int64, (tracks,): steps that a track counts"""

    @classmethod
    def empty(cls, tracks: int, d: int) -> Averages:
        """Averages of nothing yet."""
        return cls([np.zeros(d) for _ in range(tracks)], np.zeros(tracks), np.zeros(tracks, np.int64))

    def clear(self) -> None:
        """Begin again, at another lambda."""
        for z in self.z:
            z[:] = 0.0
        self.z_ell[:], self.counts[:] = 0.0, 0

    @contextmanager
    def during(self, state: State, kind: int) -> Iterator[State]:
        """The state for a pass of a kind, whose steps count on its track; afterwards the tracks are up to date.

        The pass may replace arrays of the pool, but must go on with u, z, z_ell and counters of this state.
        """
        if not self.z:
            yield state
            return
        track = min(kind, len(self.z) - 1)
        state = state._replace(z=self.z[track])
        state.z_ell[0], state.counters[AVERAGED] = self.z_ell[track], self.counts[track]
        u, ell = state.u.copy(), state.z_ell[1]
        yield state
        self.z_ell[track], self.counts[track] = state.z_ell[0], state.counters[AVERAGED]
        for other in range(len(self.z)):
            if other != track:
                late = 0.5 * float(self.counts[other]) * float(self.counts[other] + 1)
                self.z[other] += late * (state.u - u)
                self.z_ell[other] += late * (state.z_ell[1] - ell)

    def points(self, state: State) -> list[AveragePoint]:
        """The average of each track that counts a step; the current point if none does."""
        now, means = AveragePoint(state.u, float(state.z_ell[1])), []
        for z, z_ell, count in zip(self.z, self.z_ell, self.counts, strict=True):
            if count:
                factor = 2.0 / (float(count) * float(count + 1))
                means.append(AveragePoint(now.v - factor * z, float(now.ell - factor * z_ell)))
        return means or [now]

    def best(self, problem: Problem, lam: float, state: State) -> AveragePoint:
        """The average of one track, or the best point between the averages of two."""
        points = self.points(state)
        return points[0] if len(points) == 1 else best_between(problem, lam, points[0], points[1])

    # -- committed state ----------------------------------------------------------------------------------------------
    def arrays(self) -> dict[str, np.ndarray]:
        """The committed arrays."""
        z = np.array(self.z).reshape(len(self.z), -1 if self.z else 0)
        return {"average": z, "average_ell": self.z_ell, "average_count": self.counts}

    def restore(self, arrays: Arrays, d: int) -> None:
        """Take them from a commit; ValueError if one does not fit the problem, which has d weights."""
        tracks = len(self.z)
        stored = check_array("average", arrays["average"], (tracks, d if tracks else 0), float, finite=True)
        for z, row in zip(self.z, stored, strict=True):
            z[:] = row
        self.z_ell[:] = check_array("average_ell", arrays["average_ell"], (tracks,), float, finite=True)
        self.counts[:] = check_array("average_count", arrays["average_count"], (tracks,), np.int64)
