"""The page over all parts of `+experiment=papers`, its short form in Markdown, and papers.json with a row a claim."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from markupsafe import Markup

from gapwise.records import Facts
from gapwise.stages.reports.page import write_page
from gapwise.stages.reports.page.engine import fill
from gapwise.stages.reports.page.html import paragraph, table
from gapwise.stages.reports.page.pixels import saved
from gapwise.stages.reports.papers import findings
from gapwise.stages.reports.papers.claim import Claim
from gapwise.stages.reports.papers.measured import Finding, Measured
from gapwise.stages.reports.papers.ours import HEADS, Contest, contests, rows, said
from gapwise.stages.reports.sweep_figures import figure_file
from gapwise.stages.reports.tables import markdown
from gapwise.storage.backend import Location
from gapwise.storage.files import aside, publish, write_json

HOLDS = {False: "does not hold", None: "not decided", True: "holds"}
"""Words of a finding, in the order of the page."""
BUDGETS = {
    "minutes": "the least budget: few seeds, short runs, some parts only",
    "small": "small budget: three seeds, short runs, some parts only",
    "full": "full budget",
}


@dataclass(frozen=True)
class Shown:
    """One part, carried out or left out."""

    name: str
    shows: str
    command: str
    differs: str = ""
    task: str = ""
    """What is learned: parts of the same task are compared with each other, too."""
    folder: Location | None = None
    """The sweep's directory; None if the part was left out."""
    problem: str = ""
    figures: tuple[str, ...] = ()
    claims: tuple[tuple[Claim, Finding], ...] = ()
    contests: tuple[Contest, ...] = field(default=())
    """On the runs of this part alone."""
    measured: Measured | None = field(default=None, repr=False)

    def without(self, problem: str) -> Shown:
        """The part as left out."""
        return replace(self, problem=" ".join(problem.split()))

    def of(self, folder: Location) -> Shown:
        """The part with what its sweep found. A sweep that cannot be read is a problem of the part, not of the page."""
        done = replace(self, folder=folder)
        try:
            measured = Measured(folder)
            figures = tuple(name for name in measured.summary.get("figures", ()) if name.endswith(".png"))
            checked, lines = tuple(findings(self.name, measured)), tuple(contests(self.task or self.shows, [measured]))
        except (ValueError, OSError) as error:
            return replace(done, problem=str(error))
        statuses = measured.summary["statuses"]
        missing = ", ".join(f"{n} {status}" for status, n in statuses.items() if status not in ("complete", "done"))
        return replace(
            done, figures=figures, claims=checked, contests=lines, measured=measured,
            problem=missing and f"of its runs {missing}",
        )  # fmt: skip


def standings(parts: Sequence[Shown]) -> list[Contest]:
    """Ours against the papers' methods on all runs of each task, wherever in the parts they are."""
    tasks = dict.fromkeys(part.task or part.shows for part in parts)
    return [
        line
        for task in tasks
        for line in contests(task, [p.measured for p in parts if p.measured and (p.task or p.shows) == task])
    ]


def write_json_claims(target: Location, parts: Sequence[Shown], about: Facts) -> None:
    """papers.json: a row a claim and part, and the lines of what this project adds."""
    claims = [
        {"claim": claim.name, "source": claim.source, "quote": claim.quote, "judged": claim.judged, "part": part.name,
         "holds": finding.holds, "measured": finding.measured, "ratio": finding.ratio, "command": part.command}
        for part in parts for claim, finding in part.claims
    ]  # fmt: skip
    ours = [{**vars(line), "ratio": line.ratio} for line in standings(parts)]
    left_out = {part.name: part.problem for part in parts if part.problem}
    write_json(target, {**about, **machine(), "claims": claims, "ours": ours, "left_out": left_out})


def write_index(target: Location, parts: Sequence[Shown], about: Facts, where_shown: Places) -> None:
    """index.html: what this project adds, all claims, where every figure is, then every part with figures and claims."""
    said_of = f"{BUDGETS[about['budget']]}; {about['parts']} parts; {', '.join(machine().values())}"
    if about.get("source"):
        said_of += f"; source {about['source']}"
    sections = [
        ("In short", paragraph(said_of) + _standings_table(parts) + _claim_table(parts)),
        ("Every figure and table of the papers", table(PLACES, place_rows(parts, where_shown), caption="Where it is")),
    ]
    sections += [(part.shows, _part(part, target)) for part in parts]
    write_page(target, "The papers' figures and claims", sections)


Places = Mapping[str, str | Sequence[str]]
"""From a figure or table of a paper to the parts that show it, or to the reason why no part does."""
PLACES = ("figure or table", "here")


def place_rows(parts: Sequence[Shown], where_shown: Places) -> list[list[str]]:
    """Every figure and table of the papers, and which part shows it."""
    shows = {part.name: part.shows for part in parts}

    def words(names: str | Sequence[str]) -> str:
        return (
            names
            if isinstance(names, str)
            else "; ".join(shows.get(name, f"not in these parts: {name}") for name in names)
        )

    return [[figure, words(names)] for figure, names in where_shown.items()]


def _standings_table(parts: Sequence[Shown]) -> Markup:
    body = rows(standings(parts))
    if not body:
        return Markup("")
    return table(HEADS, body, caption="What this project adds: work to the finest gap that both sides certify")


CLAIM_HEADS = ("the paper's words", "where", "judged here by", "measured on", "here", "measured")


def claim_rows(parts: Sequence[Shown]) -> list[list[str]]:
    """A row a claim and part: those that do not hold first, then those that these runs do not decide."""
    every = [(claim, part, finding) for part in parts for claim, finding in part.claims]
    every.sort(key=lambda row: list(HOLDS).index(row[2].holds))
    return [
        [f"“{claim.quote}”", claim.source, claim.judged, part.shows, HOLDS[finding.holds], finding.measured]
        for claim, part, finding in every
    ]


def _claim_table(parts: Sequence[Shown]) -> Markup:
    return table([*CLAIM_HEADS], claim_rows(parts), caption="The papers' claims")


def _part(part: Shown, target: Location) -> Markup:
    if part.folder is None:
        return fill("paper", part=part, figures=[], claims=[], contests=[], report="")
    figures = [
        {"name": name, "uri": saved(figure_file(part.folder, name)), "on_paper": _on_paper(part.folder, name, target)}
        for name in part.figures
    ]
    claims = [
        {
            "quote": claim.quote,
            "judged": claim.judged,
            "source": claim.source,
            "holds": HOLDS[finding.holds],
            "measured": finding.measured,
        }
        for claim, finding in part.claims
    ]
    report = _link(part.folder / "report.html", target)
    return fill("paper", part=part, figures=figures, claims=claims, contests=map(said, part.contests), report=report)


def _on_paper(folder: Location, name: str, target: Location) -> list[tuple[str, str]]:
    """(link, name) of the same figure as PDF and SVG, where it was drawn as such."""
    files = {form.upper(): figure_file(folder, f"{name.removesuffix('.png')}.{form}") for form in ("pdf", "svg")}
    return [(link, form) for form, file in files.items() if file.is_file() and (link := _link(file, target))]


def _link(file: Location, target: Location) -> str:
    """From the page to a file of the same machine; empty to others."""
    if not isinstance(file, Path) or not isinstance(target, Path):
        return ""
    return os.path.relpath(file, target.parent).replace(os.sep, "/")


def write_markdown(target: Location, parts: Sequence[Shown], about: Facts, where_shown: Places) -> None:
    """The short page: date, commit, machine, command; what this project adds; the claims; where every figure is."""
    facts = [f"Made on {datetime.now(UTC):%Y-%m-%d} by", "", "```bash", about["command"], "```", ""]
    facts += [
        f"at commit {about.get('source') or 'unknown'}, on {', '.join(machine().values())}; {BUDGETS[about['budget']]}."
    ]
    held = [finding.holds for part in parts for _, finding in part.claims]
    counts = [sum(h is is_so for h in held) for is_so in (True, False, None)]
    text = "Claims checked: {}. They hold: {}; they do not: {}; these runs do not tell: {}."
    facts += ["", text.format(len(held), *counts)]
    ours = [[*HEADS], *rows(standings(parts))]
    claims = [[*CLAIM_HEADS], *claim_rows(parts)]
    where = [[*PLACES], *place_rows(parts, where_shown)]
    left_out = [f"- {part.shows}: {part.problem}" for part in parts if part.problem]
    differs = [f"- {part.shows}: {part.differs}." for part in parts if part.differs]
    lines_of = ["# The papers' figures and claims, here", "", *facts]
    for title, cells in (("What this project adds", ours), ("Claims", claims), ("Every figure and table", where)):
        lines_of += ["", f"## {title}", "", *(markdown(cells) if len(cells) > 1 else ["Nothing was measured."])]
    for title, lines in (("What differs from the papers", differs), ("Left out", left_out)):
        lines_of += ["", f"## {title}", "", *lines] if lines else []
    aside(target).write_text("\n".join(lines_of) + "\n", encoding="utf-8")
    publish(target)


def machine() -> dict[str, str]:
    """What the numbers were measured on."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    cores = f"{platform.machine()}, {os.cpu_count()} cores, {memory:.0f} GB"
    return {"python": f"Python {platform.python_version()}", "machine": cores}
