"""PRACTICE.md and practice.json, from the records in a folder."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from judges import Figure
from tasks import TASKS

from gapwise.stages.reports.tables import markdown


def machine() -> dict[str, str]:
    """What the numbers were measured on."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    cores = f"{platform.machine()}, {os.cpu_count()} cores, {memory:.0f} GB"
    return {"python": f"Python {platform.python_version()}", "machine": cores}


INTRO = """\
# What practitioners use, beside Gapwise

Every contestant is tuned in the same way, to the end of its grid, on every fold. A fifth of the training units chooses
the settings, and all of them train the model again. Packages choose by the first figure of the table, Gapwise's λ by
its own loss.

± is one standard error: over the folds where there are several, otherwise over 1,000 bootstrap samples of the test
units. The choice of the held-out fifth is not in it. CPU seconds count tuning and training together, on one core, from
the same objects in Python. Reading data, features of pictures, imports and compiling are not counted. Gapwise
with *dataset=* is whole commands, whose starting, verifying and evaluating are counted. A model is what users save.
Prediction is over all test units.

Made by `python tests/benchmarks/practice` on {machine}, {python}, load {load}, source {source}, {days}. The numbers are
in `practice.json` beside this page.
"""
PLACES = ["task", "figure", "Gapwise", "best of the others", "place", "CPU s, ours, theirs", "prediction, ratio"]
HEADS = ["CPU s, tuned", "model", "prediction, CPU s", "setting"]
Records = Mapping[str, Mapping[str, Sequence[Mapping[str, Any]]]]
"""by task, contestant and fold"""


def written(folder: Path) -> None:
    """Make the page and its numbers anew."""

    def folds(name: str, who: str) -> list[Any]:
        return [json.loads(file.read_text()) for file in sorted((folder / name).glob(f"{who}-?.json"))]

    found = {name: {who: folds(name, who) for who in task.contestants} for name, task in TASKS.items()}
    numbers = {**machine(), "records": found}
    (folder / "practice.json").write_text(json.dumps(numbers, indent=1) + "\n", encoding="utf-8")
    (folder / "PRACTICE.md").write_text(page(numbers), encoding="utf-8")


def page(numbers: Mapping[str, Any]) -> str:
    """The page."""
    records: Records = numbers["records"]
    done = [record for task in records.values() for folds in task.values() for record in folds]
    loads = [record["load"] for record in done] or [0.0]
    about = {
        **numbers, "load": f"{min(loads):g} to {max(loads):g}",
        "days": ", ".join(sorted({record["day"] for record in done})),
        "source": ", ".join(sorted({str(record["source"]) for record in done})),
    }  # fmt: skip
    short = [line for name in TASKS if (line := _place(name, records[name])) is not None]
    lines = [INTRO.format(**about), *markdown([PLACES, *short]), ""]
    for name, task in TASKS.items():
        figures = [f"{figure.name} {'↓' if figure.sign < 0 else '↑'}" for figure in task.judge.figures]
        rows = [_row(name, who, folds) for who, folds in records[name].items()]
        lines += [f"## {task.says}", "", f"{task.tests}.", "", *markdown([["", *figures, *HEADS], *rows]), ""]
        lines += [task.remarks, ""] if task.remarks else []
    return "\n".join(lines).rstrip() + "\n"


def _figure(figure: Figure, folds: Sequence[Mapping[str, Any]]) -> tuple[float, float]:
    """Mean and standard error."""
    values = [record["figures"][figure.name] for record in folds]
    if len(values) > 1:
        return float(np.mean(values)), float(np.std(values, ddof=1) / np.sqrt(len(values)))
    return values[0], float(folds[0]["resampled"][figure.name])


def _mean(key: str, folds: Sequence[Mapping[str, Any]]) -> float:
    return float(np.mean([record[key] for record in folds]))


def _row(name: str, who: str, folds: Sequence[Mapping[str, Any]]) -> list[str]:
    task = TASKS[name]
    says = task.contestants[who].says
    if not folds:
        return [says, *["–"] * (len(task.judge.figures) + 3), "not measured"]
    settings = list(dict.fromkeys(record["setting"] for record in folds))
    said = settings[0] if len(settings) == 1 else f"{settings[0]}, … ({len(settings)} over the folds)"
    missing = f"; {len(folds)} of {task.folds} folds" if len(folds) < task.folds else ""
    size, quality = (
        _mean("bytes", folds),
        ["{:.4f} ± {:.4f}".format(*_figure(figure, folds)) for figure in task.judge.figures],
    )
    return [
        says, *quality, f"{_mean('seconds', folds):.3g}", f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{size / 1e3:.0f} kB",
        f"{_mean('predict_seconds', folds):.2g}", said + missing,
    ]  # fmt: skip


def _place(name: str, records: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[str] | None:
    """A line of the first table: the best of ours and of the others, of those with all folds."""
    task = TASKS[name]
    lead, whole = task.judge.figures[0], {who: folds for who, folds in records.items() if len(folds) == task.folds}
    ranked = sorted(whole, key=lambda who: -lead.sign * _figure(lead, whole[who])[0])
    both = [next((who for who in ranked if who.startswith("gapwise") is own), None) for own in (True, False)]
    if None in both:
        return None
    ours, best = both
    (mine, error), (theirs, other_error) = _figure(lead, whole[ours]), _figure(lead, whole[best])
    says = {who: task.contestants[who].says for who in (ours, best)}
    ahead = lead.sign * (mine - theirs)
    place = "first" if ahead >= 0 else "within one standard error" if -ahead <= max(error, other_error) else "behind"
    seconds = [f"{_mean('seconds', whole[who]):.3g}" for who in (ours, best)]
    ratio = _mean("predict_seconds", whole[ours]) / max(_mean("predict_seconds", whole[best]), 1e-6)
    return [
        task.says, lead.name, f"{mine:.4f} ± {error:.4f}, {says[ours]}", f"{theirs:.4f} ± {other_error:.4f}, {says[best]}",
        place, ", ".join(seconds), f"{ratio:.2g}",
    ]  # fmt: skip
