"""What earlier pages tell: parts whose runs may be on another machine, with the numbers that were measured there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from gapwise.records import Facts
from gapwise.stages.reports.papers.ours import Contest, contest_of
from gapwise.stages.reports.papers.shown import Shown, recorded

NEWER = ("shows", "task", "differs")
"""What the configuration says of a part now, in place of what it said when the page was made."""


@dataclass(frozen=True)
class Pages:
    """What pages show: earlier parts, and what is carried out now."""

    parts: Mapping[str, Shown]
    """By name."""
    told: Sequence[Contest]
    """Ours against the papers' methods, as earlier pages measured it."""

    def with_parts(self, new: Mapping[str, Shown], order: Iterable[str]) -> Pages:
        """With parts that were carried out now; one that was left out does not replace what an earlier page knows."""
        carried_out = {name: part for name, part in new.items() if name not in self.parts or not part.left_out}
        parts = {**self.parts, **carried_out}
        return Pages({name: parts[name] for name in dict.fromkeys((*order, *parts)) if name in parts}, self.told)


def earlier(records: Sequence[Facts], parts: Mapping[str, Facts]) -> Pages:
    """The parts of the files papers.json that earlier pages wrote, in the order of `parts`; later files go before.

    Parameters
    ----------
    records : sequence of mappings
        What is in the files.
    parts : mapping
        `papers.parts`, whose words go before those of earlier pages.
    """
    shown: dict[str, Shown] = {}
    told: list[Contest] = []
    for record in records:
        names = {row["name"] for row in record["parts_made"]}
        told = [line for line in told if not names & {*line.parts}] + [contest_of(line) for line in record["ours"]]
        for row in record["parts_made"]:
            now = {key: words for key in NEWER if (words := parts.get(row["name"], {}).get(key))}
            shown[row["name"]] = recorded(row | now, record["claims"])
    return Pages({}, told).with_parts(shown, parts)
