"""A user's own oracle in Python as a data set: the object holds the data; the store gets truths and coordinates.

Only the object knows the input of a block, so new input for `encoder` is the name of a split of its own that the class
serves, "new", say; the class is made with it as with "train" and "test". Such a split needs no `truth` and no `loss`.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np

from gapwise.records import Facts, Record
from gapwise.stages.datasets import NEW, MapBlocks, Raw, Report, Sink
from gapwise.stages.datasets.common.options import Values
from gapwise.stages.datasets.common.own_class import OwnClassReader, new_split
from gapwise.stages.problems.user_code import oracle_source

if TYPE_CHECKING:
    from gapwise.stages.problems.oracle import Oracle
    from gapwise.stages.problems.python_oracle import PythonOracle

log = logging.getLogger("gapwise")

EVERY = 1000
"""Number of blocks between two progress reports."""


@dataclass(frozen=True)
class OracleEncoder:
    """New inputs of a user's class: the split that it is made with, and arguments."""

    meta: Facts

    def encode(self, raw: Raw, sink: Sink, map_blocks: MapBlocks) -> None:
        """One input, alone or in a list: the split's name, or a mapping of the class's arguments, ``split`` among them;
        other arguments are those of the training.

        Only the names are stored: `stages.problems.python_oracle.decoded` makes the object and asks it.
        """
        split, arguments = new_split(raw, self.meta["oracle"], self.meta["arguments"])
        sink.put(NEW, "split", np.frombuffer(split.encode(), np.uint8))
        sink.put(NEW, "arguments", np.frombuffer(json.dumps(arguments, sort_keys=True).encode(), np.uint8))
        self._say_if_changed()

    def _say_if_changed(self) -> None:
        """Warn if the class's code differs from the code at training, as after an edit that lets it serve new inputs."""
        if oracle_source(self.meta["oracle"]) != self.meta["source"]:
            log.warning(
                "%s: its code has changed since the training; predictions are right only if features and decode still mean "
                "the same",
                self.meta["oracle"],
            )


@dataclass(frozen=True)
class PythonOracleReader(OwnClassReader):
    """Blocks of a `stages.problems.oracle.Oracle`."""

    oracle: Annotated[str, Values("module:Class")]
    structure = "python_oracle"
    code = "oracle"

    def declared(self) -> list[str | Path] | None:
        from gapwise.stages.problems.answers import ask
        from gapwise.stages.problems.oracle import Oracle, oracle_class

        files = getattr(oracle_class(self.oracle), "files", None)
        if getattr(files, "__func__", files) is Oracle.files.__func__:  # type: ignore[attr-defined]
            return None
        return ask(f"{self.oracle}.files", lambda: list(oracle_class(self.oracle).files(**self.given)))

    def write(self, sink: Sink, report: Report) -> Record:
        """Checks every block's truth, and the max-oracle on a few blocks."""
        from gapwise.stages.problems.oracle_check import try_oracle

        d = 0
        for split in self.splits:
            oracle = self.object_of(split)
            d = int(oracle.d)
            sink.put(split, "split", np.frombuffer(split.encode(), np.uint8))
            blocks = []
            for i in range(len(oracle)):
                block = block_of(oracle, split, i)
                sink.append(split, **block)
                if split == "train":
                    blocks.append(block)
                if (i + 1) % EVERY == 0:
                    report(i + 1, len(oracle), f"python_oracle {split}")
            if split == "train":
                try_oracle(self.problem_of(blocks))
        return {"d": d}

    @classmethod
    def encoder(cls, meta: Facts, shared: Mapping[str, np.ndarray]) -> OracleEncoder:
        return OracleEncoder(meta)

    def object_of(self, split: str) -> Oracle:
        """A new object for a split, which this process then uses; ValueError if it cannot be made, or has no blocks."""
        from gapwise.stages.problems.answers import ask
        from gapwise.stages.problems.oracle import labels_of, object_for, packed_spec

        oracle = object_for(packed_spec(self.oracle, split, self.given).tobytes(), anew=True)
        if ask(f"{self.oracle}.__len__: {split}", len, oracle) < 1:
            raise ValueError(f"{self.oracle}: the {split} split has no blocks")
        labels_of(oracle)
        check_weights(oracle)
        return oracle

    def problem_of(self, blocks: Sequence[Mapping[str, np.ndarray]]) -> PythonOracle:
        """The problem over the first blocks of the train split (`block_of`)."""
        from gapwise.stages.problems.oracle import packed_spec
        from gapwise.stages.problems.python_oracle import first_blocks

        arrays: dict[str, np.ndarray] = {}
        for name in blocks[0]:
            rows = [block[name] for block in blocks]
            arrays |= {name: np.concatenate(rows), f"{name}_ptr": np.cumsum([0, *map(len, rows)], dtype=np.int64)}
        return first_blocks(packed_spec(self.oracle, "train", self.given), arrays)


def check_weights(oracle: Oracle) -> None:
    """ValueError if the d of an oracle, or its bounds, cannot be used."""
    from gapwise.stages.problems.answers import ask

    name = type(oracle).__name__
    d = ask(f"{name}.d", lambda: getattr(oracle, "d", None))
    if isinstance(d, bool) or not isinstance(d, int | np.integer) or d < 1:
        raise ValueError(f"{name}.d: must be the number of weights, an integer >= 1, is {d!r}")
    for bound in ("lower", "upper"):
        values = ask(f"{name}.{bound}", lambda bound=bound: np.asarray(getattr(oracle, bound)))
        if values.shape not in ((0,), (d,)) or values.dtype.kind not in "fiub" or np.isnan(values).any():
            raise ValueError(f"{name}.{bound}: must be empty or hold {d} numbers, has shape {values.shape}")
    if len(oracle.lower) != len(oracle.upper):
        raise ValueError(f"{name}.lower, upper: give both or none, with -inf and inf where there is no bound")


def block_of(oracle: Oracle, split: str, i: int) -> dict[str, np.ndarray]:
    """Truth and coordinates of a block; ValueError if they cannot be used."""
    from gapwise.stages.problems.answers import answer_of

    truth = answer_of(oracle, "truth", i, split=split)
    ids = answer_of(oracle, "coordinates", i, split=split)
    answer_of(oracle, "features", i, truth, size=int(oracle.d) if ids is None else ids.size, split=split)
    loss = answer_of(oracle, "loss", i, truth, split=split)
    if loss != 0.0:
        raise ValueError(
            f"{type(oracle).__name__}.loss: {split} block {i}: the loss of the truth must be 0, is {loss:g}"
        )
    return {"labels": truth} | ({} if ids is None else {"ids": ids})
