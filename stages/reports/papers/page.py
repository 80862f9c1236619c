"""The page over all parts of `+experiment=papers`, its short form in Markdown, and papers.json with a row a claim."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from markupsafe import Markup

from stages.reports.page import write_page
from stages.reports.page.html import joined, paragraph, picture, table
from stages.reports.page.pixels import saved
from stages.reports.papers import findings
from stages.reports.papers.claim import Claim
from stages.reports.papers.measured import Finding, Measured, amount
from stages.reports.papers.ours import Contest, contests, times
from stages.reports.sweep_figures import figure_file
from stages.reports.tables import markdown
from storage.backend import Location
from storage.files import aside, publish, write_json

HOLDS = {True: "holds", False: "does not hold", None: "not decided"}
BUDGETS = {"minutes": "small budget: few seeds, short runs", "full": "full budget"}


@dataclass(frozen=True)
class Shown:
    """One part, carried out or left out."""

    name: str
    shows: str
    command: str
    differs: str = ""
    folder: Location | None = None
    """The sweep's directory; None if the part was left out."""
    problem: str = ""
    figures: tuple[str, ...] = ()
    claims: tuple[tuple[Claim, Finding], ...] = ()
    contests: tuple[Contest, ...] = field(default=())

    def without(self, problem: str) -> Shown:
        """The part as left out."""
        return replace(self, problem=" ".join(problem.split()))

    def of(self, folder: Location) -> Shown:
        """The part with what its sweep found. A sweep that cannot be read is a problem of the part, not of the page."""
        done = replace(self, folder=folder)
        try:
            measured = Measured(folder)
            figures = tuple(name for name in measured.summary.get("figures", ()) if name.endswith(".png"))
            found, lines = tuple(findings(self.name, measured)), tuple(contests(self.shows, measured))
        except (ValueError, OSError) as error:
            return replace(done, problem=str(error))
        statuses = measured.summary["statuses"]
        missing = ", ".join(f"{n} {status}" for status, n in statuses.items() if status not in ("complete", "done"))
        return replace(
            done, figures=figures, claims=found, contests=lines, problem=missing and f"of its runs {missing}"
        )


def write_json_claims(target: Location, parts: Sequence[Shown], about: Mapping[str, Any]) -> None:
    """papers.json: a row a claim and part, and the lines of what this project adds."""
    claims = [
        {"claim": claim.name, "source": claim.source, "says": claim.says, "part": part.name, "holds": found.holds,
         "measured": found.measured, "ratio": found.ratio, "command": part.command}
        for part in parts for claim, found in part.claims
    ]  # fmt: skip
    ours = [{**vars(line), "ratio": line.ratio} for part in parts for line in part.contests]
    left_out = {part.name: part.problem for part in parts if part.problem}
    write_json(target, {**about, **machine(), "claims": claims, "ours": ours, "left_out": left_out})


def write_index(target: Location, parts: Sequence[Shown], about: Mapping[str, Any]) -> None:
    """index.html: what this project adds, all claims, then every part with its figures, claims and command."""
    said = f"{BUDGETS[about['budget']]}; {about['parts']} parts; {', '.join(machine().values())}"
    if about.get("source"):
        said += f"; source {about['source']}"
    sections = [("In short", paragraph(said) + _contest_table(parts) + _claim_table(parts))]
    sections += [(part.shows, _part(part, target)) for part in parts]
    write_page(target, "The papers' figures and claims", sections)


def _contest_table(parts: Sequence[Shown]) -> Markup:
    lines = [line for part in parts for line in part.contests]
    if not lines:
        return Markup("")
    rows = [
        [line.task, line.lam, line.goal, f"{line.best}: {amount(line.best_work, line.over)}",
         f"{line.ours}: {amount(line.our_work, line.over)}", times(line)]
        for line in lines
    ]  # fmt: skip
    heads = ["figure", "λ", "to", "best of the papers' methods", "ours", "work"]
    return table(heads, rows, caption="What this project adds: work to the finest accuracy that both reach")


def _claim_table(parts: Sequence[Shown]) -> Markup:
    rows = [
        [claim.says, claim.source, part.shows, HOLDS[found.holds], found.measured]
        for part in parts for claim, found in part.claims
    ]  # fmt: skip
    return table(["claim", "source", "measured on", "here", "measured"], rows, caption="The papers' claims")


def _part(part: Shown, target: Location) -> Markup:
    pieces = [paragraph(Markup("<code>{}</code>").format(part.command))]
    if part.differs:
        pieces.append(paragraph(f"Differs: {part.differs}."))
    if part.problem:
        pieces.append(paragraph(f"Left out: {part.problem}." if part.folder is None else f"Missing: {part.problem}."))
    if part.folder is None:
        return joined(pieces)
    for name in part.figures:
        pieces.append(picture(f"{part.shows}: {name}", saved(figure_file(part.folder, name))))
    pieces += [
        paragraph(
            Markup("<strong>{}</strong> ({}): {}. {}").format(
                claim.says, claim.source, HOLDS[found.holds], found.measured
            )
        )
        for claim, found in part.claims
    ]
    if isinstance(part.folder, Path) and isinstance(target, Path):
        link = os.path.relpath(part.folder / "report.html", target.parent).replace(os.sep, "/")
        pieces.append(paragraph(Markup('<a href="{}">All runs of this part</a>').format(link)))
    return joined(pieces)


def write_markdown(target: Location, parts: Sequence[Shown], about: Mapping[str, Any]) -> None:
    """The short page: date, commit, machine, command; what this project adds; the claims."""
    facts = [f"Made on {datetime.now(UTC):%Y-%m-%d} by", "", "```bash", about["command"], "```", ""]
    facts += [
        f"at commit {about.get('source') or 'unknown'}, on {', '.join(machine().values())}; {BUDGETS[about['budget']]}."
    ]
    ours = [["figure", "λ", "to", "best of the papers' methods", "ours", "work"]]
    claims = [["claim", "source", "measured on", "here", "measured"]]
    for part in parts:
        ours += [
            [line.task, line.lam, line.goal, f"`{line.best}` {amount(line.best_work, line.over)}",
             f"`{line.ours}` {amount(line.our_work, line.over)}", times(line)]
            for line in part.contests
        ]  # fmt: skip
        claims += [[c.says, c.source, part.shows, HOLDS[found.holds], found.measured] for c, found in part.claims]
    left_out = [f"- {part.shows}: {part.problem}" for part in parts if part.problem]
    differs = [f"- {part.shows}: {part.differs}." for part in parts if part.differs]
    text = ["# The papers' figures and claims, here", "", *facts]
    for title, found in (("What this project adds", ours), ("Claims", claims)):
        text += ["", f"## {title}", "", *(markdown(found) if len(found) > 1 else ["Nothing was measured."])]
    for title, lines in (("What differs from the papers", differs), ("Left out", left_out)):
        text += ["", f"## {title}", "", *lines] if lines else []
    aside(target).write_text("\n".join(text) + "\n", encoding="utf-8")
    publish(target)


def machine() -> dict[str, str]:
    """What the numbers were measured on."""
    return {"python": f"Python {platform.python_version()}", "machine": f"{platform.machine()}, {os.cpu_count()} cores"}
