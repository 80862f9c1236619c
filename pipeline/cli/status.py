"""``gapwise status``: where a run is right now, without disturbing it: its lock is looked at and never taken."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any

from gapwise.pipeline.cli import Command
from gapwise.pipeline.overview.states import RESUMABLE, RUN, add_root
from gapwise.pipeline.overview.words import ago, as_json, duration, number

if TYPE_CHECKING:
    from gapwise.pipeline.overview.standing import Standing


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", nargs="*", metavar="RUN", help=f"{RUN} (default: all that are running)")
    add_root(parser)
    parser.add_argument("--json", action="store_true", help="a list of objects")


def run(asked: argparse.Namespace) -> int:
    from gapwise.pipeline.overview.find import all_named, folders, root_of
    from gapwise.pipeline.overview.standing import standing

    where = all_named(asked.runs, asked.root) if asked.runs else folders(root_of(asked.root))
    found = [standing(path) for path in where]
    shown = found if asked.runs else [at for at in found if at.state == "running"]
    if asked.json:
        print(as_json([as_facts(at) for at in shown]))
        return 0
    print("\n\n".join("\n".join(lines(at)) for at in shown) or _nothing(found))
    return 0


def as_facts(at: Standing) -> dict[str, Any]:
    """`Standing.facts`, and what only a live status has."""
    return {
        **at.facts(), "at": at.said.solving, "said": at.said.line, "said_at": at.said.at, "stage_since": at.said.since,
        "commit": at.commit, "command": at.manifest.get("command"),
    }  # fmt: skip


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


def _without_clock(line: str) -> str:
    return line.rpartition(" · ")[0] or line


def _nothing(found: list[Standing]) -> str:
    left = [at.run.name for at in found if at.state in RESUMABLE]
    more = f"; resumable: {', '.join(left[:8])}{' …' if len(left) > 8 else ''}" if left else ""
    return f"no run is running{more}"


COMMAND = Command("Shows where running or stopped runs are, without taking their locks.", arguments, run)
