"""The page in Markdown, from the numbers alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from gapwise.pipeline.practice.contest import Figure
from gapwise.pipeline.practice.table import TASKS, Task
from gapwise.records import Facts, Record
from gapwise.stages.reports.tables import markdown

INTRO = """\
# What practitioners use, beside Gapwise

Every contestant is tuned in the same way. A fifth of the training units chooses the settings, and all of them train the
model again. Packages choose by the first figure of the table, Gapwise's λ by its own loss. Grids begin with the
package's default; the row says so where a limit of CPU seconds ended them early.

± is one standard error: over the folds where there are several, otherwise over 1,000 bootstrap samples of the test
units. The choice of the held-out fifth is not in it. CPU seconds count tuning and training together, on one core, from
the same objects in Python. Reading data, features of pictures, lexicons, imports and compiling are not
counted. Gapwise with *dataset=* is whole commands, whose starting, verifying and evaluating are counted. A model is
what users save. Prediction is over all test units.

Made by `python -m pipeline +experiment=practice` on {machine}, {python}, load {load}, source {source}, {days}. The
numbers are in `practice.json` beside this page.
"""
PLACES = ("task", "figure", "Gapwise", "best of the others", "place", "CPU s, ours, theirs", "prediction, ratio")
HEADS = ("CPU s, tuned", "model", "prediction, CPU s", "setting")


class Row:
    """The records of one contestant on one task, put together."""

    def __init__(self, task: Task, records: Sequence[Record]) -> None:
        self.says, self.ours = str(records[0]["says"]), bool(records[0].get("ours"))
        self.left_out = "; ".join(str(record["left_out"]) for record in records if "left_out" in record)
        self.done = [record for record in records if "figures" in record]
        self.task = task

    def mean(self, key: str) -> float:
        """Mean over the splits."""
        return float(np.mean([record[key] for record in self.done]))

    def figure(self, figure: Figure) -> tuple[float, float]:
        """Mean and standard error."""
        values = [record["figures"][figure.name] for record in self.done]
        if len(values) > 1:
            return float(np.mean(values)), float(np.std(values, ddof=1) / np.sqrt(len(values)))
        return values[0], float(self.done[0]["resampled"][figure.name])

    def cells(self) -> list[str]:
        """Of the table."""
        figures = self.task.judge.figures
        if not self.done:
            return [self.says, *["–"] * (len(figures) + 3), self.left_out]
        quality = ["{:.4f} ± {:.4f}".format(*self.figure(figure)) for figure in figures]
        settings = list(dict.fromkeys(str(record["setting"]) for record in self.done))
        said = settings[0] if len(settings) == 1 else f"{settings[0]}, … ({len(settings)} over the folds)"
        notes = dict.fromkeys(str(record["note"]) for record in self.done if record["note"])
        splits = [f"{len(self.done)} of {self.task.folds} folds"] if len(self.done) < self.task.folds else []
        said = "; ".join([said, *notes, *splits, *([self.left_out] if self.left_out else [])])
        return [
            self.says, *quality, f"{self.mean('seconds'):.3g}", bytes_as_text(self.mean("bytes")),
            f"{self.mean('predict_seconds'):.2g}", said,
        ]  # fmt: skip


def bytes_as_text(size: float) -> str:
    """kB or MB."""
    return f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{size / 1e3:.0f} kB"


def rows_of(numbers: Facts) -> dict[str, list[Row]]:
    """Rows by task, in the order of the table; who has no record is said not to be measured."""
    rows = {}
    for name, task in TASKS.items():
        mine = [record for record in numbers["records"] if record["task"] == name]
        rows[name] = [
            Row(
                task,
                [record for record in mine if record["who"] == who] or [{"says": one.says, "left_out": "not measured"}],
            )
            for who, one in task.contestants.items()
        ]
    return rows


def summary(name: str, rows: Sequence[Row]) -> list[str] | None:
    """A line of the first table: ours that is first in the table and the best of the others."""
    lead = TASKS[name].judge.figures[0]
    ours = next((row for row in rows if row.ours and row.done), None)
    others = [row for row in rows if row.done and not row.ours]
    if ours is None or not others:
        return None
    best = min(others, key=lambda row: row.figure(lead)[0] if lead.low else -row.figure(lead)[0])
    (mine, error), (theirs, other_error) = ours.figure(lead), best.figure(lead)
    lead_by = theirs - mine if lead.low else mine - theirs
    standing = (
        "first" if lead_by >= 0 else "within one standard error" if -lead_by <= max(error, other_error) else "behind"
    )
    return [
        TASKS[name].says, lead.name, f"{mine:.4f} ± {error:.4f}", f"{theirs:.4f} ± {other_error:.4f}, {best.says}", standing,
        f"{ours.mean('seconds'):.3g}, {best.mean('seconds'):.3g}",
        f"{ours.mean('predict_seconds') / max(best.mean('predict_seconds'), 1e-4):.2g}",
    ]  # fmt: skip


def overview(rows: Mapping[str, Sequence[Row]]) -> list[str]:
    """The first table: a line a task that Gapwise and another package have done; [] if there is none."""
    short = [line for name in TASKS if (line := summary(name, rows[name])) is not None]
    return markdown([[*PLACES], *short]) if short else []


def sources(numbers: Facts) -> str:
    """The commits that measured the records, in words; older records do not name theirs."""
    done = [record for record in numbers["records"] if "figures" in record]
    named = sorted({str(record["source"]) for record in done if record.get("source")})
    last = numbers["source"] or "unknown"
    return ", ".join([*named, *([f"up to {last}"] if any("source" not in record for record in done) else [])]) or last


def page(numbers: Facts) -> str:
    """PRACTICE.md."""
    done = [record for record in numbers["records"] if "figures" in record]
    loads, days = [record["load"] for record in done], sorted({str(record["day"]) for record in done})
    load = f"{min(loads):g} to {max(loads):g}" if loads else "unknown"
    about = {**numbers, "load": load, "days": ", ".join(days) or "never", "source": sources(numbers)}
    lines = [INTRO.format(**about)]
    if numbers["size"] != "full":
        lines.append(f"**practice.size={numbers['size']}: a trial of the machinery; no number means anything.**\n")
    rows = rows_of(numbers)
    lines += [*overview(rows), ""] if overview(rows) else []
    for name, task in TASKS.items():
        lines += [f"## {task.says}", "", f"{task.tests}.", ""]
        figures = [f"{figure.name} {'↓' if figure.low else '↑'}" for figure in task.judge.figures]
        lines += [*markdown([["", *figures, *HEADS], *(row.cells() for row in rows[name])]), ""]
        lines += [f"- {who}: {why}." for who, why in task.left_out.items()]
        lines += [""] if task.left_out else []
        lines += [*task.remarks, ""] if task.remarks else []
    return "\n".join(lines).rstrip() + "\n"
