"""Some blocks of a user's oracles as another oracle: the training blocks, the blocks held out, or both splits joined."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from gapwise.records import Record
from gapwise.stages.problems.oracle import Oracle, has_bound

OF_A_BLOCK = ("truth", "features", "loss", "max_oracle", "decode", "least_loss", "coordinates")
OF_ALL = ("d", "labels", "lower", "upper", "approximate", "accuracy")


def part_of(oracle: Oracle, blocks: np.ndarray) -> Oracle:
    """An oracle whose block k is block ``blocks[k]`` of `oracle`."""
    return _renumbered([oracle], [(0, int(block)) for block in blocks])


def joined(oracles: Sequence[Oracle]) -> Oracle:
    """An oracle with the blocks of several objects of one class, one object after the other."""
    return _renumbered(oracles, [(k, block) for k, oracle in enumerate(oracles) for block in range(len(oracle))])


def _renumbered(oracles: Sequence[Oracle], blocks: Sequence[tuple[int, int]]) -> Oracle:
    """An oracle, of a class with the name of the first one's, whose block k is the block of the object in ``blocks[k]``.

    It defines `max_bound` and `max_oracles` only if that class does.
    """
    first = oracles[0]
    optional = {"max_bound": has_bound(first), "max_oracles": first.lists}
    methods = (*OF_A_BLOCK, *(name for name, defined in optional.items() if defined))

    def renumbered(name: str) -> Callable[..., object]:
        own = [getattr(oracle, name) for oracle in oracles]

        def method(self: Oracle, k: int, *arguments: object) -> object:
            number, block = blocks[k]
            return own[number](block, *arguments)

        return method

    body: Record = {name: getattr(first, name) for name in OF_ALL}
    body |= {name: renumbered(name) for name in methods}
    body |= {"__len__": lambda self: len(blocks), "__module__": type(first).__module__}
    made: Oracle = type(type(first).__name__, (Oracle,), body)()
    return made
