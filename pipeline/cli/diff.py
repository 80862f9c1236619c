"""``gapwise diff``: which configuration keys and which results of two runs differ."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from gapwise.pipeline.cli import Command
from gapwise.pipeline.overview.states import add_root, add_run
from gapwise.pipeline.overview.words import as_json, number, table

if TYPE_CHECKING:
    from gapwise.pipeline.overview.differences import Pairs
    from gapwise.pipeline.overview.standing import Standing

TITLES = {
    "configuration": "configuration and data: the same",
    "made": "machine and versions: the same",
    "results": "results: the same",
    "cost": "cost: the same",
}
"""Each part's name and what is said where nothing differs."""
WIDEST = 40
"""Characters of a value."""


def arguments(parser: argparse.ArgumentParser) -> None:
    for name in ("one", "other"):
        add_run(parser, name)
    add_root(parser)
    parser.add_argument("--json", action="store_true", help="one object: pairs of values by part and name")


def run(asked: argparse.Namespace) -> int:
    from gapwise.pipeline.overview.differences import differences
    from gapwise.pipeline.overview.find import named
    from gapwise.pipeline.overview.standing import standing

    first, second = (standing(named(word, asked.root)) for word in (asked.one, asked.other))
    for run_standing in (first, second):
        if not run_standing.manifest:
            raise ValueError(f"{run_standing.run}: expected a run, but it is {run_standing.state}: {run_standing.why}")
    changes = differences(first, second)
    if asked.json:
        print(as_json({"runs": [str(first.run), str(second.run)], **changes}))
    else:
        print("\n".join(lines(first, second, changes)))
    return 0


def lines(first: Standing, second: Standing, changes: dict[str, Pairs]) -> list[str]:
    """One table, a part below the other; parts without a difference in one line."""
    rows = [("", first.run.name, second.run.name)]
    for part in changes:
        rows += [(part, "", ""), *((f"  {name}", _cell(a), _cell(b)) for name, (a, b) in changes[part].items())]
    same = [*_protocols(changes["results"]), *(TITLES[part] for part, pairs in changes.items() if not pairs)]
    shown = [row for row in rows if row[0] not in changes or changes[row[0]]]
    harmed = [f"{run.run.name} is damaged: {run.why}" for run in (first, second) if run.state == "damaged"]
    return [*(table(shown) if len(shown) > 1 else [f"{first.run.name} and {second.run.name}"]), *same, *harmed]


def _protocols(results: Pairs) -> list[str]:
    """A warning if the best lambda of the two runs was picked on different splits."""
    from gapwise.pipeline.overview.differences import PICKED_ON

    splits = results.get(PICKED_ON, ())
    if None in splits or not splits:
        return []
    one, other = (f"{split} blocks" for split in splits)
    return [
        f"two protocols: λ was picked on {one} in the first run and on {other} in the second; best λ and losses there do "
        "not compare"
    ]


def _cell(value: object) -> str:
    text = number(value, ".6g")
    return text if len(text) <= WIDEST else f"{text[: WIDEST - 1]}…"


COMMAND = Command("Compares two runs: which keys and which results differ.", arguments, run)
