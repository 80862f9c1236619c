"""How work on many blocks is spread: over threads of this process, and over processes that have the problem open.

Compiled code notices no signal, so it is called for pieces (`Pace`), with a look at whether to stop in between. A piece ends
after some *work*, which is counted in local coordinates: as much as takes about `PIECE_SECONDS` by the clock, and never more
than `MOST_WORK`. Where pieces end changes no result.

However it is spread, the result has one entry per block, in the order of the blocks. So no sum depends on how many
workers there were, which of them died, or where a range was computed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import numpy as np

from gapwise.stages.problems.protocol import Problem, frozen, max_local_size

R = TypeVar("R")

MapRanges = Callable[[Callable[[int, int], Any], list[tuple[int, int]]], list[Any]]
"""map_ranges(fn, ranges): fn(start, stop) of every range, in order, by threads that share this process's arrays."""

BlockFunction = Callable[[Problem, np.ndarray, np.ndarray], R]
"""fn(problem, w, blocks): a module-level function, so that only its name is sent; entry k of the result is for blocks[k]."""

RANGES = 2 * (os.cpu_count() or 1)
"""Number of ranges of a pass over threads; only the division of the work depends on it."""

FEW, USUAL, MANY, LARGE = 64, 16, 256, 10_000
"""Parts of a pass over processes: one block each up to FEW parts, USUAL blocks each up to MANY parts, then up to LARGE."""


PIECE_SECONDS = 0.1
"""About the longest time between two checks for a stop."""

MOST_WORK, MOST_VISITS = 1 << 25, 1 << 16
"""Most local coordinates of the blocks of a piece, unless it is one block, and most blocks. The clock may be mistaken about
the next piece, for instance after many blocks that sat out."""

PLAIN_WORK = 1 << 16
"""Local coordinates of the first piece of work that calls no oracle, which takes some milliseconds of any structure's."""


def work_before(problem: Problem, blocks: np.ndarray | None = None) -> np.ndarray:
    """int64, (blocks + 1,): local coordinates of the blocks before each of `blocks` (int64; None: all, in order)."""
    if blocks is None:
        return problem.local_ptr
    return np.concatenate([[0], np.cumsum(np.diff(problem.local_ptr)[blocks])])


def most_visits(problem: Problem) -> int:
    """Most steps of a piece whose blocks are drawn on the way, as if each were on the largest: a sampler may draw it again
    and again."""
    return max(1, min(MOST_VISITS, MOST_WORK // max(1, max_local_size(problem))))


def drawn_work(problem: Problem, steps: int) -> np.ndarray:
    """int64, (steps + 1,): as `work_before`, of steps on blocks that are drawn on the way."""
    return np.arange(steps + 1) * max_local_size(problem)


class Pace:
    """How much work makes a piece of about `PIECE_SECONDS`.

    Parameters
    ----------
    size : int
        Work of the first piece; by default one item, whatever its work.
    """

    def __init__(self, size: int = 1) -> None:
        self.size = size
        self._began = 0.0

    def begin(self) -> int:
        """Begin a piece; returns its most work."""
        self._began = time.perf_counter()
        return self.size

    def end(self, done: int, full: bool) -> None:
        """Note the end of a piece of work `done`, and whether it was `full`: with one item more it had been too much."""
        seconds = time.perf_counter() - self._began
        if seconds > PIECE_SECONDS:
            self.size = max(1, min(self.size, int(done * PIECE_SECONDS / seconds)))
        elif seconds < 0.5 * PIECE_SECONDS and full:
            self.size = min(2 * max(self.size, done), MOST_WORK)

    def run(
        self, fn: Callable[[int, int], R], start: int, stop: int, check: Callable[[], None], work: np.ndarray
    ) -> list[R]:
        """fn(a, b) of consecutive ranges that cover start..stop, with check() before each.

        The work of items a..b is ``work[b] - work[a]`` (`work_before`).
        """
        results: list[R] = []
        mine = Pace(self.size)  # threads share self, but not the moment when they begin
        while start < stop or not results:
            check()
            last = int(np.searchsorted(work, work[start] + mine.begin(), side="right")) - 1
            end = min(max(last, start + 1), start + MOST_VISITS, stop)
            results.append(fn(start, end))
            mine.end(int(work[end] - work[start]), end < stop)
            start = end
        self.size = mine.size
        return results


def nothing() -> None:
    """The check of work that is never stopped."""


OverBlocks = Callable[[Callable[[int, int], None], Problem], None]
"""over_blocks(fn, problem): fn(start, stop) of consecutive ranges of all blocks, in order."""


def in_one_piece(fn: Callable[[int, int], None], problem: Problem) -> None:
    """The plainest `OverBlocks`."""
    fn(0, problem.n)


class Elsewhere(Protocol):
    """Other processes that have the same problem open."""

    def __call__(
        self,
        fn: BlockFunction[R],
        split: str,
        w: np.ndarray,
        parts: Sequence[range | np.ndarray],
        places: Sequence[float],
    ) -> list[R]:
        """fn(problem of the split, w, blocks) of every part, in order.

        Entry k of `places`, in [0, 1), says where among all blocks part k begins, by the work before it.
        """


def serial(fn: Callable[[int, int], object], ranges: list[tuple[int, int]]) -> list[Any]:
    """The plainest `MapRanges`."""
    return [fn(start, stop) for start, stop in ranges]


def block_ranges(n: int, pieces: int = RANGES) -> list[tuple[int, int]]:
    """At most `pieces` ranges that cover 0..n."""
    edges = np.linspace(0, n, min(n, pieces) + 1).astype(int)
    return list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))


def task_ranges(n: int) -> list[tuple[int, int]]:
    """The ranges of a pass over processes: their number depends on n alone, not on the workers."""
    return block_ranges(n, max(FEW, min(n // USUAL, MANY), n // LARGE))


@dataclass(frozen=True)
class Spread:
    """Ways to spread the blocks of one problem.

    Attributes
    ----------
    map_ranges : callable
        Over threads of this process.
    elsewhere : Elsewhere, optional
        Over other processes; if given, oracles are called there.
    check : callable
        Called between pieces of work in this process; raises an error to stop it.
    pace : Pace
        Of work that calls oracles.
    plain_pace : Pace
        Of work that does not.
    """

    map_ranges: MapRanges = serial
    elsewhere: Elsewhere | None = None
    check: Callable[[], None] = nothing
    pace: Pace = field(default_factory=Pace, compare=False)
    plain_pace: Pace = field(default_factory=lambda: Pace(PLAIN_WORK), compare=False)

    def blocks(
        self, fn: BlockFunction[R], problem: Problem, w: np.ndarray, blocks: range | np.ndarray, split: str = "train"
    ) -> list[R]:
        """fn(problem, w, part) of parts that cover `blocks`, in their order.

        `w` (d,) reaches `fn` read-only, here as elsewhere, so that the same compiled code runs and gives the same bits.
        ValueError if it has another size: compiled code would read past its end.
        """
        if w.shape != (problem.d,):
            raise ValueError(f"weights: have shape {w.shape}, expected ({problem.d},) for this problem")
        if self.elsewhere is not None:
            parts = [blocks[start:stop] for start, stop in task_ranges(len(blocks))]
            work = work_before(problem)
            places = [float(work[part[0]] / max(1, work[-1])) for part in parts]
            return self.elsewhere(fn, split, w, parts, places)
        w, every = frozen(w), np.array(blocks, np.int64)
        work = work_before(problem, every)

        def part(start: int, stop: int) -> list[R]:
            return self.pace.run(lambda a, b: fn(problem, w, every[a:b]), start, stop, self.check, work)

        return [result for results in self.map_ranges(part, block_ranges(len(every))) for result in results]

    def over_threads(self, fn: Callable[[int, int], None], work: np.ndarray) -> None:
        """fn(start, stop) of ranges that cover all items, whose work is `work_before`, on threads of this process."""
        self.map_ranges(
            lambda start, stop: self.pace.run(fn, start, stop, self.check, work), block_ranges(work.size - 1)
        )

    def in_order(self, fn: Callable[[int, int], R], problem: Problem) -> list[R]:
        """fn(start, stop) of consecutive ranges of all blocks, one after another, in this thread."""
        return self.plain_pace.run(fn, 0, problem.n, self.check, work_before(problem))

    def points(self, fn: Callable[[int, Spread], object], count: int) -> None:
        """fn(k, spread for its blocks) for k < count: several k at a time on threads, or one k at a time elsewhere."""
        if self.elsewhere is None:
            here = Spread(check=self.check)
            self.map_ranges(lambda start, stop: fn(start, here), [(k, k + 1) for k in range(count)])
        else:
            for k in range(count):
                fn(k, self)


HERE = Spread()
"""Calls one block after another, in this thread."""
