"""How work on many blocks is spread: over threads of this process, and over processes that have the problem open.

Compiled code notices no signal, so it is called for pieces of about `PIECE_SECONDS` each (`Pace`), with a look at whether to
stop in between. A clock decides where pieces end, and nothing else depends on that.

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

from gapwise.stages.problems.protocol import Problem, frozen

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


class Pace:
    """How many items make a piece of about `PIECE_SECONDS`; 1 until something is known."""

    def __init__(self) -> None:
        self.size = 1
        self._began = 0.0

    def begin(self) -> int:
        """Begin a piece; returns its most items."""
        self._began = time.perf_counter()
        return self.size

    def end(self, done: int) -> None:
        """Note the end of a piece in which `done` items were done."""
        seconds = time.perf_counter() - self._began
        if seconds > PIECE_SECONDS:
            self.size = max(1, min(self.size, int(done * PIECE_SECONDS / seconds)))
        elif seconds < 0.5 * PIECE_SECONDS and done >= self.size:
            self.size *= 2

    def run(self, fn: Callable[[int, int], R], start: int, stop: int, check: Callable[[], None]) -> list[R]:
        """fn(a, b) of consecutive ranges that cover start..stop, with check() before each."""
        results: list[R] = []
        mine = Pace()  # threads share self, but not the moment when they begin
        mine.size = self.size
        while start < stop or not results:
            check()
            end = min(start + mine.begin(), stop)
            results.append(fn(start, end))
            mine.end(end - start)
            start = end
        self.size = mine.size
        return results


def nothing() -> None:
    """The check of work that is never stopped."""


class Elsewhere(Protocol):
    """Other processes that have the same problem open."""

    def __call__(self, fn: BlockFunction[R], split: str, w: np.ndarray, parts: Sequence[range | np.ndarray]) -> list[R]:
        """fn(problem of the split, w, blocks) of every part, in order."""


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
    """

    map_ranges: MapRanges = serial
    elsewhere: Elsewhere | None = None
    check: Callable[[], None] = nothing
    pace: Pace = field(default_factory=Pace, compare=False)

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
            return self.elsewhere(fn, split, w, [blocks[start:stop] for start, stop in task_ranges(len(blocks))])
        w, every = frozen(w), np.array(blocks, np.int64)

        def part(start: int, stop: int) -> list[R]:
            return self.pace.run(lambda a, b: fn(problem, w, every[a:b]), start, stop, self.check)

        return [result for results in self.map_ranges(part, block_ranges(len(every))) for result in results]

    def over_threads(self, fn: Callable[[int, int], None], n: int) -> None:
        """fn(start, stop) of ranges that cover 0..n, on threads of this process."""
        self.map_ranges(lambda start, stop: self.pace.run(fn, start, stop, self.check), block_ranges(n))

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
