"""Who computes which blocks: everything has one owner, shares follow the threads, and no more moves than must."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np

from gapwise.pipeline.compute.homes import Homes

GRID = (np.arange(240) + 0.5) / 240


def owners(homes: Homes) -> list[str | None]:
    return [homes.of(place) for place in GRID]


def test_homes__are_one_interval_each_by_threads() -> None:
    homes = Homes()
    assert homes.of(0.5) is None
    homes.update({"b": 1, "a": 2, "c": 1})
    assert owners(homes) == ["a"] * 120 + ["b"] * 60 + ["c"] * 60
    homes.update({})
    assert owners(homes) == ["a"] * 120 + ["b"] * 60 + ["c"] * 60, "they may come back"


def test_homes__of_a_dead_worker_are_divided_and_go_to_the_next_that_joins() -> None:
    homes = Homes()
    homes.update({"a": 1, "b": 1, "c": 1})
    homes.update({"a": 1, "c": 1})
    assert owners(homes) == ["a"] * 120 + ["c"] * 120
    homes.update({"a": 1, "c": 1, "d": 1})
    assert owners(homes) == ["a"] * 80 + ["d"] * 80 + ["c"] * 80


def test_homes__of_several_that_join_are_stretches() -> None:
    homes = Homes()
    homes.update({"a": 1, "b": 1, "c": 1})
    homes.update({"b": 1, "c": 1})
    homes.update({"b": 1, "c": 1, "d": 1, "e": 1})
    assert owners(homes)[:80] == ["d"] * 60 + ["e"] * 20, "not first what b gives up, and then what c does"


def test_homes__cover_everything_once_whatever_comes_and_goes() -> None:
    rng, homes, there = np.random.default_rng(0), Homes(), dict[str, int]()
    for event in range(60):
        before, gone = owners(homes), set()
        if there and rng.random() < 0.4:
            gone.add(str(rng.choice(sorted(there))))
            del there[gone.copy().pop()]
        else:
            there[str(event)] = int(rng.integers(1, 4))
        homes.update(there)
        if not there:
            continue
        total = sum(there.values())
        lengths = {worker: sum(high - low for low, high in owned) for worker, owned in homes.owned.items()}
        assert lengths == {worker: Fraction(count, total) for worker, count in there.items()}
        edges = sorted(interval for owned in homes.owned.values() for interval in owned)
        assert edges[0][0] == 0
        assert edges[-1][1] == 1
        assert all(first[1] == second[0] for first, second in pairwise(edges))
        if gone:
            assert all(new == old for old, new in zip(before, owners(homes), strict=True) if old not in gone)
