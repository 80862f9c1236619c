"""Blocks in memory, as a feature store would return them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from gapwise.records import Record
from gapwise.stages.datasets.common.reader import Known
from gapwise.stages.problems import capabilities, structure
from gapwise.stages.problems.capabilities import Capabilities


class Blocks:
    """A sink in memory: every split as the arrays that a feature store would return.

    As in the store, blocks also get what their structure derives from them. `shared` holds the arrays of all splits.
    With `decoding`, stand-ins take the place of what decoding does not read.
    """

    def __init__(
        self, structure_name: str, shared: Mapping[str, np.ndarray] | None = None, decoding: bool = False
    ) -> None:
        part, derived = capabilities(structure_name), structure(structure_name).derived
        self.derived: Callable[..., dict[str, np.ndarray]] = (part.stand_ins if decoding else None) or derived
        self.for_training, self.written_at_once = part.for_training or dict, part
        self.whole: dict[str, dict[str, np.ndarray]] = defaultdict(dict, {"": dict(shared or {})})
        self.blocks: dict[str, dict[str, list[np.ndarray]]] = defaultdict(lambda: defaultdict(list))

    def append(self, split: str, **arrays: np.ndarray) -> None:
        if split == "train":
            arrays = self.for_training(arrays)
        for name, array in {**arrays, **self.derived(**{**self.whole[""], **arrays})}.items():
            self.blocks[split][name].append(np.asarray(array))

    def put(self, split: str, name: str, array: np.ndarray) -> None:
        self.whole[split][name] = np.asarray(array)

    def arrays(self, split: str) -> dict[str, np.ndarray]:
        """Arrays of one split, the shared ones included."""
        return self._with(self.whole[split], self.blocks[split])

    def part(self, split: str, chosen: np.ndarray) -> dict[str, np.ndarray]:
        """The same for the `chosen` blocks of a split: bool (blocks,), or their numbers in any order."""
        blocks = self.blocks[split].items()
        appended = {name: [every[i] for i in np.arange(len(every))[chosen]] for name, every in blocks}
        return self._with(taken(self.whole[split], self.written_at_once, chosen), appended)

    def _with(self, whole: Mapping[str, np.ndarray], blocks: Mapping[str, list[np.ndarray]]) -> dict[str, np.ndarray]:
        arrays = {**self.whole[""], **whole}
        for name, parts in blocks.items():
            arrays[name] = np.concatenate(parts)
            arrays[f"{name}_ptr"] = np.concatenate([[0], np.cumsum([len(part) for part in parts])])
        return arrays


def taken(arrays: Mapping[str, np.ndarray], part: Capabilities, chosen: np.ndarray) -> dict[str, np.ndarray]:
    """Of arrays that a reader wrote at once, the `chosen` blocks: bool (blocks,), or numbers. Others as they are."""
    chosen_arrays = {name: array[chosen] if name in part.whole else array for name, array in arrays.items()}
    if part.rows and part.rows[0] in arrays:
        pointer, *names = part.rows
        start, sizes = arrays[pointer][:-1][chosen], np.diff(arrays[pointer])[chosen]
        new = np.append(0, np.cumsum(sizes)).astype(arrays[pointer].dtype)
        rows = np.arange(new[-1]) + np.repeat(start - new[:-1], sizes)
        chosen_arrays |= {pointer: new, **{name: arrays[name][rows] for name in names}}
    return chosen_arrays


@dataclass(frozen=True)
class Encoded:
    """New inputs as one split: ``stages.problems.build(structure, arrays, meta)`` gives its problem.

    The truth is unknown: all ``labels`` are 0, and losses and metrics of these blocks mean nothing.
    """

    structure: str
    arrays: dict[str, np.ndarray]
    """As a feature store returns them for a split: ragged arrays with their ``<name>_ptr``, and the shared ones."""
    meta: Record
    known: Known | None = None
    """How much of the input has weights, if the encoder tells."""
