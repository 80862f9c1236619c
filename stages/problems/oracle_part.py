"""Some blocks of a user's oracle as another oracle: the training blocks, or the blocks held out."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gapwise.records import Record
from gapwise.stages.problems.oracle import Oracle, has_bound

OF_A_BLOCK = ("truth", "features", "loss", "max_oracle", "decode", "least_loss", "coordinates")
OF_ALL = ("d", "labels", "lower", "upper", "approximate", "accuracy")


def part_of(oracle: Oracle, blocks: np.ndarray) -> Oracle:
    """An oracle, of a class with the name of `oracle`'s, whose block k is block ``blocks[k]`` of `oracle`.

    It defines `max_bound` and `max_oracles` only if `oracle` does.
    """
    optional = {"max_bound": has_bound(oracle), "max_oracles": oracle.lists}
    methods = (*OF_A_BLOCK, *(name for name, defined in optional.items() if defined))

    def renumbered(name: str) -> Callable[..., object]:
        whole = getattr(oracle, name)
        return lambda self, k, *arguments: whole(int(blocks[k]), *arguments)

    body: Record = {name: getattr(oracle, name) for name in OF_ALL}
    body |= {name: renumbered(name) for name in methods}
    body |= {"__len__": lambda self: int(blocks.size), "__module__": type(oracle).__module__}
    made: Oracle = type(type(oracle).__name__, (Oracle,), body)()
    return made
