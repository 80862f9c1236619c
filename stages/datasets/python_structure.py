"""A user's own compiled structure as a data set: its class reads the data, the store keeps the fields of its problems.

`stages.problems.python_structure` says what the class offers. New input for `encoder` is the name of a split that its `read`
serves, "new", say, or a mapping of its arguments, ``split`` among them; the truth of such a split may be all 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np

from gapwise.records import Facts, Record
from gapwise.stages.datasets import NEW, DataError, MapBlocks, Raw, Report, Sink
from gapwise.stages.datasets.common.options import Values
from gapwise.stages.datasets.common.own_class import OwnClassReader, new_split

TRIED = 20
"""Most blocks of a split whose truth is tried for a loss of 0."""


@dataclass(frozen=True)
class StructureEncoder:
    """New inputs of a user's class: the split that it is to read, and arguments."""

    meta: Facts

    def encode(self, raw: Raw, sink: Sink, map_blocks: MapBlocks) -> None:
        """One input, alone or in a list: the split's name, or a mapping of the arguments of `read`, ``split`` among them;
        other arguments are those of the training."""
        from gapwise.stages.problems.python_structure import fields_of, read_problem

        name = self.meta["module"]
        split, arguments = new_split(raw, name, self.meta["arguments"])
        try:
            problem = read_problem(name, split, arguments)
        except ValueError as error:
            raise DataError(f"input: {error}") from error
        if problem.d != self.meta["d"]:
            raise DataError(f"input: {name} has d = {problem.d} for {split!r}, but the model has {self.meta['d']}")
        for field, array in fields_of(problem)[0].items():
            sink.put(NEW, field, array)


@dataclass(frozen=True)
class PythonStructureReader(OwnClassReader):
    """The problems that a user's class reads."""

    module: Annotated[str, Values("module:Class")]
    structure = "python_structure"
    code = "module"
    truths = "truth"
    joined = False
    """A user's class returns arrays of its own for each split, which nothing else can concatenate."""

    def declared(self) -> list[str | Path] | None:
        from gapwise.stages.problems.answers import ask
        from gapwise.stages.problems.python_structure import files_of, problem_class

        files = files_of(problem_class(self.module))
        return None if files is None else ask(f"{self.module}.files", lambda: list(files(**self.given)))

    def write(self, sink: Sink, report: Report) -> Record:
        """Checks that the fields of all splits are what the protocol says, and that some truths have a loss of 0."""
        from gapwise.stages.problems.contract import truth_of
        from gapwise.stages.problems.python_structure import fields_of, read_problem

        d, numbers = 0, dict[str, str]()
        for number, split in enumerate(self.splits):
            problem = read_problem(self.module, split, self.given)
            if number and problem.d != d:
                raise ValueError(f"{self.module}: d is {problem.d} for {split!r}, but {d} for {self.splits[0]!r}")
            d = int(problem.d)
            for i in dict.fromkeys(np.linspace(0, problem.n - 1, TRIED).astype(int).tolist()):
                loss = problem.loss(i, truth_of(problem, i))
                if loss != 0.0:
                    raise ValueError(
                        f"{self.module}.loss: {split} block {i}: the loss of the truth must be 0, is {loss:g}"
                    )
            arrays, numbers = fields_of(problem)
            for field, array in arrays.items():
                sink.put(split, field, array)
            report(number + 1, len(self.splits), "python_structure: splits")
        return {"numbers": numbers, "d": d}

    @classmethod
    def encoder(cls, meta: Facts, shared: Mapping[str, np.ndarray]) -> StructureEncoder:
        return StructureEncoder(meta)
