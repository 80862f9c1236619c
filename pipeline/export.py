"""Results handed over: a frozen copy of what a stage left, for DVC and whoever else keeps results (DESIGN 4, DVC).

Nothing here is read back: state stays in the run directory, where a killed run finds it again. Everything but
`seconds` and pictures is the same for the same science.
"""

from __future__ import annotations

import csv
import math
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.result import breakpoints
from pipeline.rundir import read_json, write_json
from storage.files import aside, fetched, publish
from storage.layout import MEASURES, open_group
from storage.places import Place


@dataclass(frozen=True)
class Export:
    """Where a copy is taken from, and where to."""

    run: Place
    features: Place
    folder: Path

    def json(self, name: str, value: Mapping[str, Any]) -> None:
        write_json(self.folder / name, value)

    def table(self, name: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """`rows` as CSV, with a column log10_lambda to plot against."""
        rows = [{**row, "log10_lambda": math.log10(row["lambda"])} for row in rows]
        with aside(self.folder / name).open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
        publish(self.folder / name)

    def tree(self, name: str, *without: str) -> None:
        """The folder `name` of the run, but for what fits a pattern of `without`."""
        shutil.rmtree(aside(self.folder / name), ignore_errors=True)
        shutil.copytree(fetched(self.run / name), aside(self.folder / name), ignore=shutil.ignore_patterns(*without))
        publish(self.folder / name)


def export(stages: Sequence[str], run: Place, features: Place, folder: Path) -> None:
    """Copy what `stages` left in the run directory, or in that of its features, to `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    for stage in stages:
        EXPORTS[stage](Export(run, features, folder))


def _featurize(to: Export) -> None:
    meta = read_json(to.features / "meta.json")
    to.json("features.json", {name: value for name, value in meta.items() if isinstance(value, str | int | float)})


def _init_path(to: Export) -> None:
    done = read_json(to.run / "manifest.json")["stages"]["init_path"]
    to.json("init_path.json", {name: value for name, value in done.items() if name != "seconds"})


def _solve(to: Export) -> None:
    found, _ = breakpoints(to.run)
    rows, passes, calls = [], 0.0, 0
    for number, record in enumerate(found):
        passes, calls = passes + record["effective_passes"], calls + record["oracle_calls"]
        kept = {name: record[name] for name in ("lambda", "gap", "primal", "dual", "status")}
        rows.append({"breakpoint": number, **kept, "passes": passes, "oracle_calls": calls})
    to.table("path.csv", rows)
    to.tree("path.zarr", *MEASURES)
    to.json(
        "solve.json",
        {
            "status": read_json(to.run / "manifest.json")["stages"]["solve"]["status"],
            "breakpoints": len(found),
            "last_lambda": found[-1]["lambda"],
            "effective_passes": passes,
            "oracle_calls": calls,
            "seconds": sum(record["seconds"] for record in found),
        },
    )


def _verify(to: Export) -> None:
    found = read_json(to.run / "verify.json")
    to.json("verify.json", {name: value for name, value in found.items() if not isinstance(value, list)})


def _evaluate(to: Export) -> None:
    group: Any = open_group(to.run / "path.zarr")
    measures = sorted(name for name, array in group.arrays() if name.startswith(("train_", "test_")))
    columns = {name: group[name][:].tolist() for name in ("lambda", *measures)}
    to.table("losses.csv", [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)])
    to.json("metrics.json", read_json(to.run / "metrics.json"))
    to.tree("figures")


EXPORTS: dict[str, Callable[[Export], None]] = {
    "featurize": _featurize,
    "init_path": _init_path,
    "solve": _solve,
    "verify": _verify,
    "evaluate": _evaluate,
}
"""Of each stage of the graph, the outs of the same stage in dvc.yaml."""
