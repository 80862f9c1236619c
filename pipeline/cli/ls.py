"""``gapwise ls``: every run below a folder in one line, or named runs in full; locks are looked at and never taken."""

from __future__ import annotations

import argparse
import textwrap
import time
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from gapwise.pipeline.cli import Command
from gapwise.pipeline.overview.states import RESUMABLE, STATES, add_root, add_run
from gapwise.pipeline.overview.tables import ago, as_json, duration, number, size, table

if TYPE_CHECKING:
    from gapwise.pipeline.overview.run_state import RunState
    from gapwise.records import Facts

HEAD = ("run", "state", "progress", "gap", "best λ", "test loss", "last sign", "apart by")
WIDTH = 110
"""Characters of a line about one run."""
APART = 3
"""Most keys that are shown of those by which runs differ."""


def arguments(parser: argparse.ArgumentParser) -> None:
    add_run(parser, "runs", nargs="*", more=": shown in full (default: all, one a line)")
    add_root(parser)
    parser.add_argument("--state", choices=[*STATES], help="only runs in this state")
    parser.add_argument(
        "--json",
        action="store_true",
        help="a list of objects, with more than the table shows; of named runs with manifest and result",
    )


def run(asked: argparse.Namespace) -> int:
    from gapwise.pipeline.overview.find import all_named, folders, root_of
    from gapwise.pipeline.overview.run_state import run_state

    root = None if asked.runs else root_of(asked.root)
    found = [run_state(path) for path in (all_named(asked.runs, asked.root) if root is None else folders(root))]
    runs = [run for run in found if asked.state in (None, run.state)]
    if asked.json:
        more = bool(asked.runs)
        print(
            as_json([run.facts() | ({"manifest": run.manifest, "result": run.result} if more else {}) for run in runs])
        )
    elif asked.runs:
        print("\n\n".join("\n".join(in_full(run)) for run in runs))
    else:
        print("\n".join(lines([run.facts() for run in runs], str(root))))
    return 0


def lines(runs: Sequence[Facts], root: str) -> list[str]:
    """The table, the run that changed last on top, and a line that counts."""
    if not runs:
        return [f"no run in {root}"]
    rows = sorted(runs, key=lambda facts: (facts["changed"] is None, -(facts["changed"] or 0.0), facts["name"]))
    cells = [
        (
            facts["name"], facts["state"], progress(facts), gap(facts), number(facts["best_lambda"]),
            number(facts["test_loss"]), ago(facts["changed"]), apart(facts, runs),
        )
        for facts in rows
    ]  # fmt: skip
    counts = Counter(facts["state"] for facts in runs)
    said = ", ".join(f"{counts[state]} {state}" for state in STATES if counts[state])
    return [*table([HEAD, *cells], right=(3, 4, 5)), f"{len(runs)} in {root}: {said}"]


def apart(facts: Facts, runs: Sequence[Facts]) -> str:
    """The keys in which a run differs from others of the same data and solver, with its values; the seed first."""
    like = [other["science"] for other in runs if all(other[name] == facts[name] for name in ("dataset", "solver"))]
    own = facts["science"]
    differ = [key for key in own if any(key in science and science[key] != own[key] for science in like)]
    shown = sorted(differ, key=lambda key: key != "seed")[:APART]
    more = " …" if len(differ) > APART else ""
    return " · ".join(f"{key} {number(own[key])}" for key in shown) + more


def gap(facts: Facts) -> str:
    """The largest gap that verify found; what it is unless it is exact (`problems.capabilities`)."""
    kind = facts.get("certainty") or "exact"
    return number(facts["gap"]) + ("" if kind == "exact" else f" ({kind})")


def progress(facts: Facts) -> str:
    """How far a run is, in few words."""
    count = facts["lambdas"]
    many = f"{count} λ" + "'s" * (count != 1) if count else ""
    if facts["state"] == "complete":
        doubt = "" if facts["certified"] else "not certified"
        return " · ".join(part for part in (many, facts["solve_status"], doubt) if part)
    if facts["state"] in ("damaged", "foreign", "other version", "failed"):
        return textwrap.shorten(str(facts["why"]), 60, placeholder="…")
    position = f"at λ {count} ({number(facts['lambda'])})" if facts["stage"] == "solve" and count else ""
    next_or_now = "in" if facts["state"] == "running" else "next:"
    done = f"{many} solved" if count and not position else ""
    return " · ".join(part for part in (done, f"{next_or_now} {facts['stage']}", position) if part)


def in_full(run: RunState) -> list[str]:
    """What came out or where it is, what was asked for, and its directory, alone on the last line."""
    if run.state != "complete" or run.result is None:
        outcome = unfinished(run)
    else:
        from gapwise.pipeline.result import summary

        solve = run.stages.get("solve", {})
        outcome = summary(run.result, run.run, took=seconds_of(run), solve=solve).splitlines()
    return [*outcome, *origin(run), f"run: {run.run}"]


def unfinished(run: RunState) -> list[str]:
    """What is known of one run that is not complete, in few lines."""
    resumable = ", resumable" if run.state in RESUMABLE else ""
    out = [f"{run.run.name}: {run.state}{resumable}" + (f" ({run.why})" if run.why else "")]
    rows = []
    if run.holder is not None:
        spent = "" if run.holder.since is None else f", for {duration(time.time() - run.holder.since)}"
        rows.append(("held by", f"{run.holder}{spent}"))
    if run.manifest:
        stage = f"{'in' if run.state == 'running' else 'next:'} {run.stage}" if run.stage else ""
        done = f"done: {', '.join(run.stages) or 'none'}"
        rows.append(("stages", " · ".join(part for part in (stage, done) if part)))
    if run.log is not None:
        rows.append(("log", f"{run.log}, last written {ago(run.changed)}"))
    if run.commit is not None:
        counts = run.commit["counts"]
        where = f" at λ {int(counts['breakpoint']) + 1} ({number(counts['lam'])})" if "lam" in counts else ""
        rows.append(("commit", f"number {run.commit['generation']}{where}, {ago(run.commit['at'])}"))
    elif run.manifest and "solve" not in run.stages:
        rows.append(("commit", "none yet"))
    if run.state in RESUMABLE and run.manifest.get("command"):
        rows.append(("go on", f"the command that began it: {run.manifest['command']}"))
    return out + [f"{name:>8}  {text}" for name, text in rows]


def seconds_of(run: RunState) -> dict[str, float]:
    """Seconds of every stage, as the invocation took that did it."""
    return {name: float(facts["seconds"]) for name, facts in run.stages.items() if "seconds" in facts}


def origin(run: RunState) -> list[str]:
    """What the run was asked for and where it was made."""
    from gapwise.pipeline.overview.find import bytes_below
    from gapwise.records import flat

    manifest = run.manifest
    if not manifest:
        return []
    science = {
        key: number(value) for key, value in flat(manifest.get("science", {})).items() if value not in (None, [], "")
    }
    rows = [
        (group, " · ".join(f"{key.removeprefix(own)} {value}" for key, value in science.items() if key.startswith(own)))
        for group, own in (("dataset", "dataset."), ("solver", "solver."), ("path", "path."))
    ]
    version = manifest.get("versions", {}).get("gapwise")
    made = f"{manifest.get('created')} on {manifest.get('host')}, Gapwise {version}"
    rows += [("seed", science.get("seed", "–")), ("made", made), ("command", str(manifest.get("command")))]
    if (bytes := bytes_below(run.run)) is not None:
        rows.append(("size", size(bytes)))
    if run.state != "complete" and (spent := seconds_of(run)):
        rows.append(("time", " · ".join(f"{name} {duration(seconds)}" for name, seconds in spent.items())))
    return [line for name, text in rows for line in _wrapped(name, text)]


def _wrapped(name: str, text: str) -> list[str]:
    """A row in as many lines as it takes."""
    wrap = textwrap.TextWrapper(WIDTH, f"{name:>8}  ", " " * 10, break_long_words=False, break_on_hyphens=False)
    return wrap.wrap(text)


COMMAND = Command("Lists runs: state, progress, gap, best λ; of named ones all that is known.", arguments, run)
