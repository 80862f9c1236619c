"""Exports a frozen copy of the stages' results, for DVC and others who keep them; each stage defines what it exports.

The copy is never read back: state stays in the run directory, where a killed run finds it again. Everything but
`seconds` and pictures is the same for the same configuration.
"""

from __future__ import annotations

import csv
import math
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gapwise.pipeline.rundir import write_json
from gapwise.records import Facts
from gapwise.storage.backend import Location
from gapwise.storage.files import aside, fetched, publish, replaced


@dataclass(frozen=True)
class Export:
    """Where a copy is taken from, and where it goes."""

    run: Location
    features: Location
    folder: Path

    def json(self, name: str, value: Mapping[str, object]) -> None:
        write_json(self.folder / name, value)

    def table(self, name: str, rows: Sequence[Facts]) -> None:
        """`rows` as CSV, with a column log10_lambda to plot against."""
        rows = [{**row, "log10_lambda": math.log10(row["lambda"])} for row in rows]
        with aside(self.folder / name).open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
        publish(self.folder / name)

    def file(self, name: str) -> None:
        """The file `name` of the run."""
        shutil.copyfile(fetched(self.run / name), aside(self.folder / name))
        publish(self.folder / name)

    def tree(self, name: str, *without: str) -> None:
        """The folder `name` of the run, except what matches a pattern in `without`."""
        with replaced(self.folder / name) as made:
            shutil.copytree(fetched(self.run / name), made, ignore=shutil.ignore_patterns(*without))
