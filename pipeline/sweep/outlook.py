"""About how long a sweep will take, from earlier runs that are like those still to do."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from statistics import median
from typing import NamedTuple

from gapwise.pipeline.config.settings import Settings
from gapwise.pipeline.overview.find import folders
from gapwise.pipeline.overview.run_state import run_state
from gapwise.pipeline.overview.words import as_json, duration
from gapwise.pipeline.stage_graph import before, flow
from gapwise.pipeline.tracking.names import task_of
from gapwise.records import flat
from gapwise.storage.backend import Location

SHARED = ("featurize",)
"""Stages whose seconds a run does not pay again."""
IGNORED = ("seed",)
"""Keys in which two runs may differ and still be as long."""


class Upcoming(NamedTuple):
    """A run still to do."""

    science: Mapping[str, object]
    """Flat, as manifests have it."""
    stages: tuple[str, ...]
    """Those that it will go through."""


class Earlier(NamedTuple):
    """A run that has been worked on."""

    science: Mapping[str, object]
    seconds: Mapping[str, float]
    """Of each stage that is done."""


def upcoming_of(settings: Settings) -> Upcoming:
    """What a run of these settings is and goes through."""
    run = settings.run
    until = () if run.until is None else (*before(run.until), run.until)
    stages = (run.stage,) if run.stage is not None else until or tuple(flow())
    return Upcoming(flat(json.loads(as_json(settings.science))), stages)


def outlook(todo: Sequence[Upcoming], root: Location, workers: int) -> str:
    """How long the runs in `todo` will take together, in words, `workers` at a time.

    Parameters
    ----------
    root : Path or UrlPath
        The folder of all runs, from which an estimate is made.
    """
    if not todo:
        return "nothing to solve"
    done = earlier_in(root) if root.is_dir() else []
    known = [seconds for planned in todo if (seconds := seconds_like(planned, done)) is not None]
    if not known:
        return "how long they take is not known: no earlier run is like them"
    about = duration(max(max(known), sum(known) * len(todo) / len(known) / workers))
    some = "" if len(known) == len(todo) else f"{len(known)} of "
    return f"about {about}, going by earlier runs like {some}them"


def most_seconds(limits: Sequence[float], workers: int) -> str:
    """What runs with these limits of seconds of solving take at most, in words; nothing if one has no limit."""
    if not limits or math.inf in limits:
        return ""
    return f"; at most {duration(max(max(limits), sum(limits) / workers))} of solving, by solver.max_seconds"


def earlier_in(root: Location) -> list[Earlier]:
    """All runs of a folder, with the seconds of the stages that are done."""
    runs = []
    for run in map(run_state, folders(root)):
        if run.manifest and run.state not in ("damaged", "other version"):
            seconds = {name: float(facts.get("seconds", 0.0)) for name, facts in run.stages.items()}
            runs.append(Earlier(flat(run.manifest.get("science", {})), seconds))
    return runs


def seconds_like(planned: Upcoming, done: Sequence[Earlier]) -> float | None:
    """Median seconds of those that went through the same stages and differ least; None without any on the same data.

    Only runs with the same kind of path count.
    """
    nearest, seconds = math.inf, list[float]()
    for other in done:
        names = {*planned.science, *other.science} - {*IGNORED}
        keys = {key for key in names if other.science.get(key) != planned.science.get(key)}
        if (
            task_of(other.science.get("path.rule")) != task_of(planned.science.get("path.rule"))
            or any(key.startswith("dataset.") for key in keys)
            or {*planned.stages} - other.seconds.keys()
        ):
            continue
        if len(keys) < nearest:
            nearest, seconds = len(keys), []
        if len(keys) == nearest:
            seconds.append(sum(other.seconds[stage] for stage in planned.stages if stage not in SHARED))
    return median(seconds) if seconds else None
