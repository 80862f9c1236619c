"""``gapwise ls``: every run below a folder in one line."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from gapwise.pipeline.cli import Command
from gapwise.pipeline.overview.states import STATES, add_root
from gapwise.pipeline.overview.words import ago, as_json, number, table

if TYPE_CHECKING:
    from gapwise.records import Facts

HEAD = ("run", "state", "progress", "gap", "best λ", "test loss", "last sign")


def arguments(parser: argparse.ArgumentParser) -> None:
    add_root(parser)
    parser.add_argument("--state", choices=[*STATES], help="only runs in this state")
    parser.add_argument("--json", action="store_true", help="a list of objects, with more than the table shows")


def run(asked: argparse.Namespace) -> int:
    from gapwise.pipeline.overview.find import folders, root_of
    from gapwise.pipeline.overview.standing import standing

    root = root_of(asked.root)
    runs = [standing(path).facts() for path in folders(root)]
    runs = [facts for facts in runs if asked.state in (None, facts["state"])]
    print(as_json(runs) if asked.json else "\n".join(lines(runs, str(root))))
    return 0


def lines(runs: Sequence[Facts], root: str) -> list[str]:
    """The table, the run that changed last on top, and a line that counts."""
    if not runs:
        return [f"no run in {root}"]
    rows = sorted(runs, key=lambda facts: (facts["changed"] is None, -(facts["changed"] or 0.0), facts["name"]))
    cells = [
        (
            facts["name"], facts["state"], progress(facts), gap(facts), number(facts["best_lambda"]),
            number(facts["test_loss"]), ago(facts["changed"]),
        )
        for facts in rows
    ]  # fmt: skip
    counts = Counter(facts["state"] for facts in runs)
    said = ", ".join(f"{counts[state]} {state}" for state in STATES if counts[state])
    return [*table([HEAD, *cells], right=(3, 4, 5)), f"{len(runs)} in {root}: {said}"]


def gap(facts: Facts) -> str:
    """The largest gap that verify found, or the one known so far; what it is unless it is exact (`problems.certainty`)."""
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
        return _short(str(facts["why"]))
    position = f"at λ {count} ({number(facts['lambda'])})" if facts["stage"] == "solve" and count else ""
    next_or_now = "in" if facts["state"] == "running" else "next:"
    done = f"{many} solved" if count and not position else ""
    return " · ".join(part for part in (done, f"{next_or_now} {facts['stage']}", position) if part)


def _short(text: str, most: int = 60) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


COMMAND = Command("Lists runs: state, progress, gap, best λ.", arguments, run)
