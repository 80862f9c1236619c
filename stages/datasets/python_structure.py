"""A user's own compiled structure as a data set: its class reads the data, the store keeps the fields of its problems.

`stages.problems.python_structure` says what the class offers. New input for `encoder` is the name of a split that its `read`
serves, "new", say, or a mapping of its arguments, ``split`` among them; the truth of such a split may be all 0.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from gapwise.records import Facts, Record
from gapwise.stages.datasets import NEW, DataError, MapBlocks, Raw, Report, Sink
from gapwise.stages.datasets.inputs import NewInput
from gapwise.stages.datasets.inputs.own_class import UNDECLARED, declared_files, new_split, one_input, splits_of
from gapwise.stages.datasets.inputs.own_class import VALIDATION as VALIDATION
from gapwise.stages.datasets.offers.options import Values, one_of, options_of
from gapwise.stages.problems.user_code import oracle_source

log = logging.getLogger("gapwise")

CODE = ("module",)
"""Where the facts of the features name the user's code."""
JOINED = False
"""A user's class returns arrays of its own for each split, which nothing else can concatenate."""
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


def encoder(meta: Facts, shared: Mapping[str, np.ndarray]) -> StructureEncoder:
    """The encoder of a feature store of this reader."""
    return StructureEncoder(meta)


def read_new(inputs: Sequence[str], meta: Facts) -> NewInput:
    """One input: a split's name, or the arguments of `read` as JSON: ``{"split": "new", "n": 7}``."""
    return one_input(inputs, meta["module"])


def stored_input(arrays: Mapping[str, np.ndarray], meta: Facts) -> NewInput | None:
    """The test split, with its true labels."""
    return NewInput("test", np.asarray(arrays["truth"]), example="test")


@dataclass(frozen=True)
class Options:
    """Options of the configuration."""

    module: Annotated[str, Values("module:Class")]
    arguments: dict[str, Any] | None = None
    validation: Annotated[str, one_of(*VALIDATION)] | None = None


def open(options: Facts) -> PythonStructureReader:
    """`options`: ``module`` = module:Class, ``arguments`` of its `read` besides the split, and ``validation``: "split" if it
    serves a split "validation"."""
    given = options_of(Options, options)
    return PythonStructureReader(given.module, given.arguments or {}, splits_of(given.validation))


class PythonStructureReader:
    """The problems that a user's class reads."""

    structure = "python_structure"

    def __init__(self, module: str, arguments: Record, splits: tuple[str, ...] = ("train", "test")) -> None:
        self.module, self.arguments, self.splits = module, arguments, splits

    def files(self) -> dict[str, Path]:
        """The data files that the class declares."""
        from gapwise.stages.problems.answers import ask
        from gapwise.stages.problems.python_structure import files_of, problem_class

        def declared() -> list[str | Path]:
            files = files_of(problem_class(self.module))
            return ask(f"{self.module}.files", lambda: list(files(**self.arguments))) if files is not None else []

        return declared_files(self.module, "dataset.module", declared)

    def source(self) -> Record:
        """The code of the structure."""
        try:
            return {"structure": oracle_source(self.module)}
        except ValueError as error:
            raise DataError(f"dataset.module: {error}") from error

    def featurize(self, sink: Sink, map_blocks: MapBlocks, report: Report) -> Record:
        """Write the fields of all splits; DataError if they are not what the protocol says."""
        try:
            return self._featurize(sink, report)
        except ValueError as error:
            raise DataError(f"dataset.module: {error}") from error

    def _featurize(self, sink: Sink, report: Report) -> Record:
        from gapwise.stages.problems.contract import truth_of
        from gapwise.stages.problems.python_structure import fields_of, files_of, read_problem

        d, numbers = 0, dict[str, str]()
        for number, split in enumerate(self.splits):
            problem = read_problem(self.module, split, self.arguments)
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
        if files_of(type(problem)) is None:
            log.warning(UNDECLARED, self.module, "code", "`read`")
        facts = {"module": self.module, "arguments": self.arguments, "source": oracle_source(self.module)}
        return {**facts, "numbers": numbers, "d": d}
