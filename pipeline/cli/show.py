"""``gapwise show``: one run in full: what came out, what it was asked for, what it cost and where it lies."""

from __future__ import annotations

import argparse
import textwrap
from typing import TYPE_CHECKING, Any

from gapwise.pipeline.cli import Command, status
from gapwise.pipeline.overview.states import RUN, add_root
from gapwise.pipeline.overview.words import as_json, duration, number, size

if TYPE_CHECKING:
    from gapwise.pipeline.overview.standing import Standing

WIDTH = 100
"""Characters of a line, besides its name."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_dir", metavar="RUN", help=RUN)
    add_root(parser)
    parser.add_argument("--json", action="store_true", help="one object: result, manifest and state")


def run(asked: argparse.Namespace) -> int:
    from gapwise.pipeline.overview.find import named
    from gapwise.pipeline.overview.standing import standing

    at = standing(named(asked.run_dir, asked.root))
    if asked.json:
        print(as_json({**status.as_facts(at), "manifest": at.manifest, "result": at.result}))
    else:
        print("\n".join([*outcome(at), *origin(at), f"run: {at.run}"]))
    return 0


def outcome(at: Standing) -> list[str]:
    """The summary that the run printed at its end, or where it is."""
    if at.state != "complete" or at.result is None:
        return status.lines(at)
    from gapwise.pipeline.result import summary

    return summary(at.result, at.run, took=seconds_of(at), solve=at.stages.get("solve", {})).splitlines()


def seconds_of(at: Standing) -> dict[str, float]:
    """Seconds of every stage, as the attempt took that did it."""
    return {name: float(facts["seconds"]) for name, facts in at.stages.items() if "seconds" in facts}


def origin(at: Standing) -> list[str]:
    """What the run was asked for and where it was made."""
    from gapwise.pipeline.overview.disk import bytes_below

    if not at.manifest:
        return []
    science: dict[str, Any] = at.manifest.get("science", {})
    rows = [
        (
            group,
            " · ".join(f"{key.removeprefix(f'{group}.')} {number(value)}" for key, value in _chosen(science, group)),
        )
        for group in ("dataset", "solver", "path")
    ]
    versions = at.manifest.get("versions", {})
    made = f"{at.manifest.get('created')} on {at.manifest.get('host')}, Gapwise {versions.get('gapwise')}"
    rows += [("seed", str(science.get("seed"))), ("made", made), ("command", str(at.manifest.get("command")))]
    if (bytes := bytes_below(at.run)) is not None:
        rows.append(("size", size(bytes)))
    if at.state != "complete" and (spent := seconds_of(at)):
        rows.append(("time", " · ".join(f"{name} {duration(seconds)}" for name, seconds in spent.items())))
    return [line for name, text in rows for line in _wrapped(name, text)]


def _wrapped(name: str, text: str) -> list[str]:
    """A row in as many lines as it takes."""
    parts = textwrap.wrap(text, WIDTH, break_long_words=False, break_on_hyphens=False) or [""]
    return [f"{name:>8}  {parts[0]}", *(f"{'':>8}  {part}" for part in parts[1:])]


def _chosen(science: dict[str, Any], group: str) -> list[tuple[str, Any]]:
    from gapwise.pipeline.overview.differences import flat

    return [(key, value) for key, value in flat(science.get(group, {})).items() if value not in (None, [], "")]


COMMAND = Command("Shows one run: results, configuration, cost.", arguments, run)
