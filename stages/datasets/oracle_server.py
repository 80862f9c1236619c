"""A user's own oracle in any language as a data set: a program that answers lines of JSON (`stages.problems.oracle_server`).

The program knows the data; the store gets truths and coordinates, as of an oracle in Python. New input is the name of a
split that the program serves.
"""

from __future__ import annotations

import logging
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from gapwise.records import Facts
from gapwise.stages.datasets import OptionError, at_home
from gapwise.stages.datasets.inputs.own_class import VALIDATION as VALIDATION
from gapwise.stages.datasets.inputs.own_class import splits_of
from gapwise.stages.datasets.offers.options import Values, one_of, options_of
from gapwise.stages.datasets.python_oracle import PythonOracleReader
from gapwise.stages.datasets.python_oracle import encoder as encoder
from gapwise.stages.datasets.python_oracle import read_new as read_new
from gapwise.stages.datasets.python_oracle import show as show
from gapwise.stages.datasets.python_oracle import stored_input as stored_input

log = logging.getLogger("gapwise")

CODE = ("arguments", "command")
"""Where the facts of the features name the user's program."""
PLAIN, BOUNDED = (f"gapwise.stages.problems.oracle_server:{name}" for name in ("ServerOracle", "BoundedServerOracle"))

FILES = Values("a list of files", lambda files: all(isinstance(file, str | Path) for file in files))


@dataclass(frozen=True)
class Options:
    """Options of the configuration."""

    command: Annotated[str, Values("a program and its arguments, such as './my_oracle --data x'")]
    files: Annotated[list[str], FILES] | None = None
    bounded: bool = False
    validation: Annotated[str, one_of(*VALIDATION)] | None = None


def open(options: Facts) -> OracleServerReader:
    """`options`: ``command``; ``files`` that the program reads; ``bounded``: whether it answers "max_bound"; ``validation``:
    "split" if it serves a split "validation"."""
    given = options_of(Options, options)
    command = given.command
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise OptionError(f"dataset.command: {command!r}: {error}") from error
    if not words:
        raise OptionError("dataset.command: expected a program and its arguments, such as './my_oracle --data x'")
    arguments = {"command": command, "files": at_home([*map(str, given.files or ())])}
    return OracleServerReader(BOUNDED if given.bounded else PLAIN, arguments, splits_of(given.validation))


class OracleServerReader(PythonOracleReader):
    """Blocks of a `stages.problems.oracle_server.ServerOracle`."""

    def _say_what_is_not_seen(self) -> None:
        """Warn that edits of data files go undetected if no file is declared."""
        if not self.arguments["files"]:
            log.warning(
                "dataset.files names no files: this run is known by the command and the program only. If the program reads "
                "data files, name them; otherwise edited data will give the old result"
            )
