"""The page over all parts of `+experiment=papers`, and papers.json with a row a claim."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path

from markupsafe import Markup

from gapwise.records import Facts
from gapwise.stages.reports.page import write_page
from gapwise.stages.reports.page.engine import fill
from gapwise.stages.reports.page.html import paragraph, table
from gapwise.stages.reports.page.pixels import saved
from gapwise.stages.reports.papers.measured import Finding
from gapwise.stages.reports.papers.ours import HEADS, Contest, rows, said
from gapwise.stages.reports.papers.shown import ORIGIN_HEADS, Shown, judged, origin_rows
from gapwise.stages.reports.sweep_figures import figure_file
from gapwise.storage.backend import Location
from gapwise.storage.files import write_json

HOLDS = {False: "does not hold", None: "not decided", True: "holds"}
"""Words of a finding, in the order of the page."""
BUDGETS = {
    "minutes": "few seeds, short runs, some parts only",
    "small": "two or three seeds, longer runs, some parts only",
    "full": "runs as long as the figures need, and five seeds unless “Where the runs come from” has fewer",
    "every": "the same runs with every budget",
}


def write_json_claims(
    target: Location, parts: Sequence[Shown], about: Facts, lines: Sequence[Contest], here: bool = True
) -> None:
    """papers.json: every part, a row a claim and part, and the lines of what this project adds.

    From it the same pages are made where the runs are not. `here`: it also says where they are on this machine.
    """
    claims = [
        {"claim": claim.name, "source": claim.source, "quote": claim.quote, "judged": claim.judged, "part": part.name,
         "holds": finding.holds, "why": finding.why, "measured": finding.measured, "ratio": finding.ratio}
        for part in parts for claim, finding in part.claims
    ]  # fmt: skip
    ours = [{**vars(line), "goal": line.goal, "ratio": line.ratio} for line in lines]
    left_out = {part.name: part.problem for part in parts if part.problem}
    made = [part.record(here) for part in parts]
    write_json(target, {**about, "claims": claims, "ours": ours, "left_out": left_out, "parts_made": made})


def write_index(
    target: Location, parts: Sequence[Shown], about: Facts, lines: Sequence[Contest], where_shown: Places
) -> None:
    """index.html: what this project adds, all claims, where every figure is, then every part with figures and claims."""
    said_of = f"{BUDGETS[about['budget']]}; {about['parts']} parts; {about['python']}, {about['machine']}"
    if about.get("source"):
        said_of += f"; source {about['source']}"
    sections = [
        ("In short", paragraph(said_of) + _standings_table(lines) + _claim_table(parts)),
        ("Every figure and table of the papers", table(PLACES, place_rows(parts, where_shown), caption="Where it is")),
        ("Where the runs come from", table(ORIGIN_HEADS, origin_rows(parts), caption="Parts and their runs")),
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


def _standings_table(lines: Sequence[Contest]) -> Markup:
    body = rows(lines)
    if not body:
        return Markup("")
    return table(HEADS, body, caption="What this project adds: work to the finest gap that both sides certify")


def outcome(finding: Finding) -> str:
    """What became of a claim, and why these runs do not decide it."""
    return HOLDS[finding.holds] + (f": {finding.why}" if finding.why else "")


CLAIM_HEADS = ("the paper's words", "where", "judged here by", "measured on", "here", "measured")


def claim_rows(parts: Sequence[Shown]) -> list[list[str]]:
    """The rows of `judged`: claims that do not hold first, then those that these runs do not decide."""
    every = sorted(judged(parts), key=lambda row: list(HOLDS).index(row.finding.holds))
    return [
        [f"“{row.claim.quote}”", row.claim.source, row.claim.judged, row.on, outcome(row.finding), row.finding.measured]
        for row in every
    ]


def _claim_table(parts: Sequence[Shown]) -> Markup:
    return table([*CLAIM_HEADS], claim_rows(parts), caption="The papers' claims")


def _part(part: Shown, target: Location) -> Markup:
    folder = part.folder
    figures = [
        {"name": name, "uri": saved(figure_file(folder, name)), "on_paper": _on_paper(folder, name, target)}
        for name in part.figures
        if folder is not None
    ]
    claims = [
        {
            "quote": claim.quote,
            "judged": claim.judged,
            "source": claim.source,
            "holds": outcome(finding),
            "measured": finding.measured,
        }
        for claim, finding in part.claims
    ]
    report = link(folder / "report.html", target) if folder is not None else ""
    return fill("paper", part=part, figures=figures, claims=claims, contests=map(said, part.contests), report=report)


def _on_paper(folder: Location, name: str, target: Location) -> list[tuple[str, str]]:
    """(link, name) of the same figure as PDF and SVG, where it was drawn as such."""
    files = {form.upper(): figure_file(folder, f"{name.removesuffix('.png')}.{form}") for form in ("pdf", "svg")}
    return [(there, form) for form, file in files.items() if file.is_file() and (there := link(file, target))]


def link(file: Location, target: Location) -> str:
    """From a page to a file of the same machine; empty to others."""
    if not isinstance(file, Path) or not isinstance(target, Path):
        return ""
    return os.path.relpath(file, target.parent).replace(os.sep, "/")


def machine() -> dict[str, str]:
    """What the numbers were measured on."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    cores = f"{platform.machine()}, {os.cpu_count()} cores, {memory:.0f} GB"
    return {"python": f"Python {platform.python_version()}", "machine": cores}
