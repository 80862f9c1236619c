"""Which worker each part of the blocks goes to: the same in every pass while it lives, so that it reads its share alone.

Blocks lie in [0, 1), in order. Each worker owns intervals there, as long as its share of all threads; at first it is one
interval. What a dead worker owned is divided among the others. A new worker gets what others own beyond their shares, the
latest first, so after a death it gets what the dead one had. Only the division of the work depends on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

Interval = tuple[Fraction, Fraction]


class Homes:
    """The intervals of the workers; nobody's before `update` names some."""

    def __init__(self) -> None:
        self.owned: dict[str, list[Interval]] = {}
        self._free: list[Interval] = [(Fraction(0), Fraction(1))]

    def update(self, threads: Mapping[str, int]) -> None:
        """Divide [0, 1) among these workers by their numbers of threads; if there are none, nothing changes."""
        total = sum(threads.values())
        if not total:
            return
        for worker in set(self.owned) - set(threads):
            self._free += self.owned.pop(worker)
        shares = {worker: Fraction(count, total) for worker, count in sorted(threads.items())}
        for worker, share in shares.items():
            had = self.owned.get(worker, [])
            self.owned[worker] = _taken(had, min(share, _length(had)))
            self._free += had
        self._free.sort()
        for worker, share in shares.items():
            self.owned[worker] += _taken(self._free, share - _length(self.owned[worker]))

    def of(self, place: float) -> str | None:
        """The worker that owns `place`, in [0, 1); None if nobody does."""
        owners = (worker for worker, owned in self.owned.items() if any(low <= place < high for low, high in owned))
        return next(owners, None)


def _length(intervals: list[Interval]) -> Fraction:
    return sum((high - low for low, high in intervals), Fraction(0))


def _taken(intervals: list[Interval], length: Fraction) -> list[Interval]:
    """Remove this length from the beginning of the list; returns it."""
    taken = []
    while length > 0:
        low, high = intervals.pop(0)
        cut = min(high, low + length)
        taken.append((low, cut))
        if cut < high:
            intervals.insert(0, (cut, high))
        length -= cut - low
    return taken
