"""``gapwise show``: runs in full, or where the running ones are right now; locks are looked at and never taken."""

from __future__ import annotations

import argparse
import textwrap
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from gapwise.pipeline.cli import Command
from gapwise.pipeline.overview.states import RESUMABLE, add_root, add_run
from gapwise.pipeline.overview.words import ago, as_json, duration, number, size

if TYPE_CHECKING:
    from gapwise.pipeline.overview.standing import Standing

WIDTH = 100
"""Characters of a line, besides its name."""


def arguments(parser: argparse.ArgumentParser) -> None:
    add_run(parser, "runs", nargs="*", more=" (default: in brief, all that are running)")
    add_root(parser)
    parser.add_argument("--brief", action="store_true", help="only the state of each run, and where it is")
    parser.add_argument(
        "--json", action="store_true", help="one object for one RUN, otherwise a list: state, manifest, result"
    )


def run(asked: argparse.Namespace) -> int:
    from gapwise.pipeline.overview.find import all_named, folders, root_of
    from gapwise.pipeline.overview.standing import standing

    where = all_named(asked.runs, asked.root) if asked.runs else folders(root_of(asked.root))
    standings = [standing(path) for path in where]
    shown = standings if asked.runs else [run for run in standings if run.state == "running"]
    if asked.json:
        objects = [as_facts(run) for run in shown]
        print(as_json(objects[0] if len(asked.runs) == len(objects) == 1 else objects))
        return 0
    parts = [lines(run) if asked.brief or not asked.runs else in_full(run) for run in shown]
    print("\n\n".join("\n".join(part) for part in parts) or _nothing(standings))
    return 0


def as_facts(standing: Standing) -> dict[str, object]:
    """`Standing.facts`, what only a live run has, its manifest and its result."""
    said = standing.said
    return {
        **standing.facts(),
        "at": said.solving,
        "said": said.line,
        "said_at": said.time,
        "stage_since": said.since,
        "commit": standing.commit,
        "command": standing.manifest.get("command"),
        "manifest": standing.manifest,
        "result": standing.result,
    }


def in_full(standing: Standing) -> list[str]:
    """What came out or where it is, what was asked for, and its directory, alone on the last line."""
    return [*outcome(standing), *origin(standing), f"run: {standing.run}"]


def outcome(standing: Standing) -> list[str]:
    """The summary that the run printed at its end, or where it is."""
    if standing.state != "complete" or standing.result is None:
        return lines(standing)
    from gapwise.pipeline.result import summary

    solve = standing.stages.get("solve", {})
    return summary(standing.result, standing.run, took=seconds_of(standing), solve=solve).splitlines()


def lines(standing: Standing, now: float | None = None) -> list[str]:
    """What is known of one run, in few lines; `now` in seconds since the epoch."""
    now = time.time() if now is None else now
    resumable = ", resumable" if standing.state in RESUMABLE else ""
    out = [f"{standing.run.name}: {standing.state}{resumable}" + (f" ({standing.why})" if standing.why else "")]
    rows = []
    if standing.holder is not None:
        spent = "" if standing.holder.since is None else f", for {duration(now - standing.holder.since)}"
        rows.append(("held by", f"{standing.holder}{spent}"))
    if standing.manifest:
        stage = f"{'in' if standing.state == 'running' else 'next:'} {standing.stage}" if standing.stage else ""
        if standing.state == "running" and standing.said.since is not None:
            stage += f", for {duration(now - standing.said.since)}"
        done = f"done: {', '.join(standing.stages) or 'none'}"
        rows.append(("stages", " · ".join(part for part in (stage, done) if part)))
    if standing.said.line and standing.state in ("running", "interrupted", "failed"):
        rows.append(("at", f"{_without_clock(standing.said.line)} · said {ago(standing.said.time, now)}"))
    if standing.commit is not None:
        counts = standing.commit["counts"]
        where = f" at λ {int(counts['breakpoint']) + 1} ({number(counts['lam'])})" if "lam" in counts else ""
        rows.append(("commit", f"number {standing.commit['generation']}{where}, {ago(standing.commit['at'], now)}"))
    elif standing.manifest and standing.state != "complete" and "solve" not in standing.stages:
        rows.append(("commit", "none yet"))
    if standing.state in RESUMABLE and standing.manifest.get("command"):
        rows.append(("go on", f"the command that began it: {standing.manifest['command']}"))
    return out + [f"{name:>8}  {text}" for name, text in rows]


def seconds_of(standing: Standing) -> dict[str, float]:
    """Seconds of every stage, as the invocation took that did it."""
    return {name: float(facts["seconds"]) for name, facts in standing.stages.items() if "seconds" in facts}


def origin(standing: Standing) -> list[str]:
    """What the run was asked for and where it was made."""
    from gapwise.pipeline.overview.disk import bytes_below

    if not standing.manifest:
        return []
    science: Mapping[str, object] = standing.manifest.get("science", {})
    rows = [
        (
            group,
            " · ".join(f"{key.removeprefix(f'{group}.')} {number(value)}" for key, value in _chosen(science, group)),
        )
        for group in ("dataset", "solver", "path")
    ]
    versions = standing.manifest.get("versions", {})
    made = f"{standing.manifest.get('created')} on {standing.manifest.get('host')}, Gapwise {versions.get('gapwise')}"
    rows += [("seed", str(science.get("seed"))), ("made", made), ("command", str(standing.manifest.get("command")))]
    if (bytes := bytes_below(standing.run)) is not None:
        rows.append(("size", size(bytes)))
    if standing.state != "complete" and (spent := seconds_of(standing)):
        rows.append(("time", " · ".join(f"{name} {duration(seconds)}" for name, seconds in spent.items())))
    return [line for name, text in rows for line in _wrapped(name, text)]


def _wrapped(name: str, text: str) -> list[str]:
    """A row in as many lines as it takes."""
    parts = textwrap.wrap(text, WIDTH, break_long_words=False, break_on_hyphens=False) or [""]
    return [f"{name:>8}  {parts[0]}", *(f"{'':>8}  {part}" for part in parts[1:])]


def _chosen(science: Mapping[str, object], group: str) -> list[tuple[str, object]]:
    from gapwise.records import flat

    chosen = science.get(group)
    settings = flat(chosen) if isinstance(chosen, Mapping) else {}
    return [(key, value) for key, value in settings.items() if value not in (None, [], "")]


def _without_clock(line: str) -> str:
    return line.rpartition(" · ")[0] or line


def _nothing(standings: list[Standing]) -> str:
    left = [standing.run.name for standing in standings if standing.state in RESUMABLE]
    more = f"; resumable: {', '.join(left[:8])}{' …' if len(left) > 8 else ''}" if left else ""
    return f"no run is running{more}"


COMMAND = Command("Shows runs: results, configuration, cost; or where the running ones are.", arguments, run)
