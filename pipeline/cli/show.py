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
    found = [standing(path) for path in where]
    shown = found if asked.runs else [at for at in found if at.state == "running"]
    if asked.json:
        objects = [as_facts(at) for at in shown]
        print(as_json(objects[0] if len(asked.runs) == len(objects) == 1 else objects))
        return 0
    parts = [lines(at) if asked.brief or not asked.runs else in_full(at) for at in shown]
    print("\n\n".join("\n".join(part) for part in parts) or _nothing(found))
    return 0


def as_facts(at: Standing) -> dict[str, object]:
    """`Standing.facts`, what only a live run has, its manifest and its result."""
    return {
        **at.facts(), "at": at.said.solving, "said": at.said.line, "said_at": at.said.at, "stage_since": at.said.since,
        "commit": at.commit, "command": at.manifest.get("command"), "manifest": at.manifest, "result": at.result,
    }  # fmt: skip


def in_full(at: Standing) -> list[str]:
    """What came out or where it is, what was asked for, and its directory, alone on the last line."""
    return [*outcome(at), *origin(at), f"run: {at.run}"]


def outcome(at: Standing) -> list[str]:
    """The summary that the run printed at its end, or where it is."""
    if at.state != "complete" or at.result is None:
        return lines(at)
    from gapwise.pipeline.result import summary

    return summary(at.result, at.run, took=seconds_of(at), solve=at.stages.get("solve", {})).splitlines()


def lines(at: Standing, now: float | None = None) -> list[str]:
    """What is known of one run, in few lines; `now` in seconds since the epoch."""
    now = time.time() if now is None else now
    resumable = ", resumable" if at.state in RESUMABLE else ""
    out = [f"{at.run.name}: {at.state}{resumable}" + (f" ({at.why})" if at.why else "")]
    rows = []
    if at.holder is not None:
        spent = "" if at.holder.since is None else f", for {duration(now - at.holder.since)}"
        rows.append(("held by", f"{at.holder}{spent}"))
    if at.manifest:
        stage = f"{'in' if at.state == 'running' else 'next:'} {at.stage}" if at.stage else ""
        if at.state == "running" and at.said.since is not None:
            stage += f", for {duration(now - at.said.since)}"
        done = f"done: {', '.join(at.stages) or 'none'}"
        rows.append(("stages", " · ".join(part for part in (stage, done) if part)))
    if at.said.line and at.state in ("running", "interrupted", "failed"):
        rows.append(("at", f"{_without_clock(at.said.line)} · said {ago(at.said.at, now)}"))
    if at.commit is not None:
        counts = at.commit["counts"]
        where = f" at λ {int(counts['breakpoint']) + 1} ({number(counts['lam'])})" if "lam" in counts else ""
        rows.append(("commit", f"number {at.commit['generation']}{where}, {ago(at.commit['at'], now)}"))
    elif at.manifest and at.state != "complete" and "solve" not in at.stages:
        rows.append(("commit", "none yet"))
    if at.state in RESUMABLE and at.manifest.get("command"):
        rows.append(("go on", f"the command that began it: {at.manifest['command']}"))
    return out + [f"{name:>8}  {text}" for name, text in rows]


def seconds_of(at: Standing) -> dict[str, float]:
    """Seconds of every stage, as the invocation took that did it."""
    return {name: float(facts["seconds"]) for name, facts in at.stages.items() if "seconds" in facts}


def origin(at: Standing) -> list[str]:
    """What the run was asked for and where it was made."""
    from gapwise.pipeline.overview.disk import bytes_below

    if not at.manifest:
        return []
    science: Mapping[str, object] = at.manifest.get("science", {})
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


def _chosen(science: Mapping[str, object], group: str) -> list[tuple[str, object]]:
    from gapwise.pipeline.overview.differences import flat

    chosen = science.get(group)
    found = flat(chosen) if isinstance(chosen, Mapping) else {}
    return [(key, value) for key, value in found.items() if value not in (None, [], "")]


def _without_clock(line: str) -> str:
    return line.rpartition(" · ")[0] or line


def _nothing(found: list[Standing]) -> str:
    left = [at.run.name for at in found if at.state in RESUMABLE]
    more = f"; resumable: {', '.join(left[:8])}{' …' if len(left) > 8 else ''}" if left else ""
    return f"no run is running{more}"


COMMAND = Command("Shows runs: results, configuration, cost; or where the running ones are.", arguments, run)
