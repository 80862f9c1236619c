"""Readers of a user's own class: its splits, the data files that it declares, and new input for it."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np

from gapwise.records import Facts, Record
from gapwise.stages.datasets.common.files import DataError
from gapwise.stages.datasets.common.options import one_of
from gapwise.stages.datasets.common.reader import MapBlocks, NewInput, Reader, Report, Sink
from gapwise.stages.problems.user_code import oracle_source

log = logging.getLogger("gapwise")


@dataclass(frozen=True, kw_only=True)
class OwnClassReader(Reader):
    """A class of the user's, ``module:Class``, reads the data. New input is the name of a split that it serves.

    The option `code` names the class; ``arguments`` are its arguments besides the split. With ``validation=split`` the class
    serves a split "validation", too. ValueError of the user's code becomes DataError.
    """

    validations: ClassVar = {"split": ()}
    arguments: dict[str, Any] | None = None
    validation: Annotated[str, one_of("split")] | None = None
    truths: ClassVar[str] = "labels"
    """The array of a split with its true labels."""

    @property
    def own(self) -> str:
        """The class, as ``module:Class``."""
        return str(getattr(self, str(self.code)))

    @property
    def given(self) -> Record:
        """Its arguments."""
        return self.arguments or {}

    @property
    def splits(self) -> tuple[str, ...]:
        """The splits that it serves."""
        return ("train", "test") if self.validation is None else ("train", "validation", "test")

    def declared(self) -> Iterable[str | Path] | None:
        """The data files that the class declares, by its method `files`; None if it does not define that."""
        raise NotImplementedError

    def write(self, sink: Sink, report: Report) -> Record:
        """Write all splits; returns facts besides the class, its arguments and its source."""
        raise NotImplementedError

    def files(self) -> dict[str, Path]:
        """The declared data files; DataError for one that is not there."""
        try:
            declared = [Path(file) for file in self.declared() or ()]
        except ValueError as error:
            raise DataError(f"dataset.{self.code}: {error}") from error
        for file in declared:
            if not file.is_file():
                raise DataError(f"dataset.{self.code}: {self.own}.files names {file}, which is no file")
        return {f"{number} {file.name}": file for number, file in enumerate(declared)}

    def source(self) -> Record:
        """The code of the class."""
        try:
            return {"code": oracle_source(self.own)}
        except ValueError as error:
            raise DataError(f"dataset.{self.code}: {error}") from error

    def featurize(self, sink: Sink, map_blocks: MapBlocks, report: Report) -> Record:
        """Write all splits, and check once what the solver relies on."""
        try:
            facts = self.write(sink, report)
            if self.declared() is None:
                log.warning(
                    "%s does not define files(): this run is known by its code and arguments only. If it reads data files, "
                    "let files() return their paths; otherwise edited data will give the old result",
                    self.own,
                )
            return {str(self.code): self.own, "arguments": self.given, "source": oracle_source(self.own), **facts}
        except ValueError as error:
            raise DataError(f"dataset.{self.code}: {error}") from error

    @classmethod
    def read_new(cls, inputs: Sequence[str], meta: Facts) -> NewInput:
        """One input: a split's name, or the class's arguments as JSON: ``{"split": "new", "n": 7}``."""
        if len(inputs) != 1:
            own = meta[str(cls.code)]
            raise DataError(f"expected one split of {own}, got {len(inputs)} inputs; predict them one after the other")
        if re.fullmatch(r"[\w-]+", inputs[0]):
            return NewInput(inputs[0])
        if not inputs[0].lstrip().startswith("{"):
            raise DataError(
                f"input: {inputs[0]}: {meta[str(cls.code)]} reads its inputs itself; expected the name of a split that it "
                'serves, or its arguments as JSON, e.g. {"split": "new", "file": "new.txt"}'
            )
        try:
            return NewInput(json.loads(inputs[0]))
        except ValueError as error:
            raise DataError(f"input: {inputs[0]}: not valid JSON ({error})") from error

    @classmethod
    def stored_input(cls, arrays: Mapping[str, np.ndarray], meta: Facts) -> NewInput:
        """The test split, with its true labels."""
        return NewInput("test", np.asarray(arrays[cls.truths]), example="test")


def new_split(raw: object, own: str, arguments: Facts) -> tuple[str, Record]:
    """The split and the arguments that new input `raw` names for a user's class; `arguments`: those of the training."""
    split = raw[0] if isinstance(raw, list) and len(raw) == 1 else raw
    given = {"split": split} if isinstance(split, str) else split
    if not isinstance(given, Mapping) or not isinstance(given.get("split"), str):
        raise DataError(
            f"input: {raw!r}: {own} reads its inputs itself; expected the name of a split that it can be made with, or "
            'all arguments that differ from training, such as {"split": "new", "n": 7}'
        )
    return given["split"], {**arguments, **{name: value for name, value in given.items() if name != "split"}}
