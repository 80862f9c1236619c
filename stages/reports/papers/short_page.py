"""The short page over all parts of `+experiment=papers`, in Markdown, with its pictures beside it."""

from __future__ import annotations

import contextlib
import hashlib
import io
import re
from collections import Counter
from collections.abc import Callable, Sequence

from PIL import Image
from PIL.PngImagePlugin import PngInfo

from gapwise.records import Facts
from gapwise.stages.reports.papers.ours import HEADS, Contest, rows
from gapwise.stages.reports.papers.page import (
    BUDGETS,
    HOLDS,
    PLACES,
    Places,
    link,
    outcome,
    place_rows,
)
from gapwise.stages.reports.papers.shown import ORIGIN_HEADS, Judged, Shown, judged, origin_rows
from gapwise.stages.reports.sweep_figures import figure_file
from gapwise.stages.reports.tables import markdown
from gapwise.storage.backend import Location
from gapwise.storage.files import aside, publish

WIDE = 1000
"""Most pixels across a picture."""
COLOURS = 64
"""Of a picture, which makes its file a quarter as large."""
SOURCE = "Source"
"""Text in a picture's file: the digest of the figure that it was made from, and the two numbers above."""
HOW_TO_READ = """\
A claim is a sentence of a paper, judged by one measure on the runs of one part.
A number is the median of all seeds.
The file of numbers beside this page (`.json`) also has the least and the largest of them, and ratios along the way.
Work that is named after the last λ alone is the same at each.
“A against B” sets the method that the claim favours before the other.
The claim holds if every seed of the first is better than every seed of the second.
Where the seeds overlap, it is not decided.
One seed a side decides only a factor of 1.25.
A claim about several λ's holds if it holds at each, and does not if it fails at one.
A λ without numbers, or with gaps too large for a claim about small ones, is named and decides nothing.
Seconds were measured beside other runs where the load average is above the number of cores.
“Ratio” is by how much the first is better; below 1 it is worse.
Before the first snapshot of a run nothing is compared.
D* is the largest dual value of any run.
The runs of LJ13's figures end after equal seconds, so a loaded machine shortens them.
Names such as `bcpfw_gap_cache` are presets of `solver=`: pairwise steps, gap sampling, a cache."""


def write_markdown(
    target: Location,
    parts: Sequence[Shown],
    about: Facts,
    ours: Sequence[Contest],
    where_shown: Places,
    pictures: Location | None = None,
) -> None:
    """Write the page: how it was made, what this project adds, the claims, where every figure is, every part.

    Parameters
    ----------
    about : mapping
        `command`, `budget`, `source` (the commit that made the page), `made` (the day), `python` and `machine`.
    ours : sequence of Contest
        What this project adds, by `standings`.
    where_shown : mapping
        Every figure and table of the papers to the names of its parts, or to why there is none.
    pictures : Path or UrlPath, optional
        A folder for the figures of all parts, which the page then shows. Those of parts whose runs are not here stay.
    """
    if pictures is not None:
        for part in parts:
            draw_pictures(part, pictures)
    aside(target).write_text(page_text(target, parts, about, ours, where_shown, pictures), encoding="utf-8")
    publish(target)


def page_text(
    target: Location,
    parts: Sequence[Shown],
    about: Facts,
    ours: Sequence[Contest],
    where_shown: Places,
    pictures: Location | None = None,
) -> str:
    """What `write_markdown` writes to `target`; the parameters are the same."""
    lines = ["# The papers' figures and claims, here", "", f"Made on {about['made']} by", ""]
    lines += ["```bash", about["command"], "```", ""]
    lines += [f"at commit {about.get('source') or 'unknown'}, on {about['python']}, {about['machine']}.", ""]
    budgets = dict.fromkeys(part.budget for part in parts if part.budget)
    lines += [*(f"- `{budget}`: {BUDGETS[budget]}" for budget in budgets), ""]
    lines += [*_counts(parts), *_why_open(parts), *_against(parts)]
    lines += _section("What this project adds", [HEADS, *rows(ours)])
    lines += ["", "## Claims", "", HOW_TO_READ]
    every = judged(parts)
    for paper in dict.fromkeys(paper_of(row) for row in every):
        lines += ["", f"### Claims of {paper}", "", *_claims([row for row in every if paper_of(row) == paper])]
    lines += _section("Every figure and table", [PLACES, *place_rows(parts, where_shown)])
    lines += _section("Where the runs come from", [ORIGIN_HEADS, *origin_rows(parts)])
    for part in parts:
        lines += ["", f"## {part.shows}", "", *_part(part, target, pictures)]
    return "\n".join(lines) + "\n"


def paper_of(row: Judged) -> str:
    """The key of the paper that makes a claim, `O16` say."""
    return row.claim.source.split()[0]


def _counts(parts: Sequence[Shown]) -> list[str]:
    """What became of the claims, by paper."""
    every = [(paper_of(row), row.finding.holds) for row in judged(parts)]
    text = "Claims checked: {}. They hold: {}; they do not: {}; these runs do not tell: {}."
    held = [holds for _, holds in every]
    said = text.format(len(held), *(held.count(holds) for holds in (True, False, None)))
    of = Counter(every)
    body = [
        [paper, *(str(of[paper, holds]) for holds in HOLDS)] for paper in dict.fromkeys(paper for paper, _ in every)
    ]
    return [said, "", *markdown([["paper", *HOLDS.values()], *body])]


def _why_open(parts: Sequence[Shown]) -> list[str]:
    """Why these runs do not decide some claims, with how many of them."""
    why = Counter(row.finding.why for row in judged(parts) if row.finding.holds is None)
    said = [f"- {reason or 'unknown'}: {number}." for reason, number in why.most_common()]
    return ["", "Why these runs do not tell:", "", *said] if said else []


def _against(parts: Sequence[Shown]) -> list[str]:
    """The sentences that fail somewhere, in how many of their rows, and in how many they hold."""
    rows_of: dict[tuple[str, str], list[bool | None]] = {}
    for row in judged(parts):
        rows_of.setdefault((row.claim.quote, row.claim.source), []).append(row.finding.holds)
    failed = {key: held for key, held in rows_of.items() if False in held}
    if not failed:
        return []
    said = [
        f"- “{quote}” ({source}): fails in {held.count(False)} of {len(held)} rows, holds in {held.count(True)}."
        for (quote, source), held in failed.items()
    ]
    return ["", "What does not hold:", "", *said]


def _section(title: str, cells: Sequence[Sequence[str]]) -> list[str]:
    return ["", f"## {title}", "", *(markdown(cells) if len(cells) > 1 else ["Nothing was measured."])]


SHORT_HEADS = ("the paper's words", "judged here by", "measured on", "here", "measured")


def _claims(every: Sequence[Judged]) -> list[str]:
    """A table of a paper's claims: those of one sentence, and of one measure, stand together, and name it once."""
    cells: list[Sequence[str]] = [SHORT_HEADS]
    said: tuple[str, ...] = ("", "")
    for row in sorted(every, key=_sentence_and_measure(every)):
        now = (f"“{row.claim.quote}” ({row.claim.source})", row.claim.judged)
        first = ["" if now[: k + 1] == said[: k + 1] else words for k, words in enumerate(now)]
        cells.append([*first, row.on, outcome(row.finding), in_short(row.finding.measured)])
        said = now
    return plain_table([[cell.replace("|", "\\|") for cell in row] for row in cells])


def _sentence_and_measure(every: Sequence[Judged]) -> Callable[[Judged], tuple[int, int]]:
    """A key that sorts rows by sentence and measure, each in the order in which it first comes."""
    quotes = list(dict.fromkeys(row.claim.quote for row in every))
    measures = list(dict.fromkeys(row.claim.judged for row in every))
    return lambda row: (quotes.index(row.claim.quote), measures.index(row.claim.judged))


def in_short(measured: str) -> str:
    """A line for each lambda: medians, and whether a ratio rises or falls; the same work at each is named once."""
    text = re.sub(r" \[[^]]*\]", "", measured)
    text = re.sub(r" \(ratio [^)]*: (rising|falling)\)", r", ratio \1", text)
    text = re.sub(r" \(ratio [^)]*\)", "", text)
    lines = re.split(r"; (?=λ = |[^;]*: λ = )", text)
    work = {re.sub(r".* (?=after )", "", line) if " after " in line else line for line in lines}
    if len(lines) > 1 and len(work) == 1:
        lines = [line.removesuffix(f" {min(work)}") for line in lines[:-1]] + [lines[-1]]
    return "<br>".join(lines)


def plain_table(cells: Sequence[Sequence[str]]) -> list[str]:
    """A table whose cells are too long to be padded."""
    lines = ["| " + " | ".join(row) + " |" for row in cells]
    return [lines[0], "|" + "---|" * len(cells[0]), *lines[1:]]


def _part(part: Shown, target: Location, pictures: Location | None) -> list[str]:
    """What differs from the paper, what is missing, the command, the figures."""
    lines = [f"Differs: {part.differs}.", ""] if part.differs else []
    if part.problem:
        lines += [f"{'Left out' if part.left_out else 'Missing'}: {part.problem}.", ""]
    lines += ["```bash", part.command, "```"]
    files = {name: picture_file(pictures, part, name) for name in part.figures} if pictures is not None else {}
    for name, picture in files.items():
        if picture.is_file():
            lines += ["", f"![{part.shows}: {name.removesuffix('.png')}]({link(picture, target) or picture})"]
    return lines


def picture_file(pictures: Location, part: Shown, figure: str) -> Location:
    """Where the smaller picture of a figure is."""
    return pictures / f"{part.name}-{figure.replace('/', '-')}"


def draw_pictures(part: Shown, pictures: Location) -> None:
    """The figures of a part whose runs are here, smaller, into a folder."""
    if part.folder is not None:
        pictures.mkdir(parents=True, exist_ok=True)
        for name in part.figures:
            draw_smaller(figure_file(part.folder, name), picture_file(pictures, part, name))


def draw_smaller(figure: Location, picture: Location) -> None:
    """Write a PNG of fewer pixels and colours, unless the one that is there was made from the same figure."""
    content = figure.read_bytes()
    source = f"{hashlib.sha256(content).hexdigest()} {WIDE} {COLOURS}"
    if picture.is_file() and _source_of(picture) == source:
        return
    image = Image.open(io.BytesIO(content)).convert("RGB")
    if image.width > WIDE:
        image = image.resize((WIDE, round(image.height * WIDE / image.width)), Image.Resampling.LANCZOS)
    about = PngInfo()
    about.add_text(SOURCE, source)
    with aside(picture).open("wb") as file:
        image.quantize(COLOURS, dither=Image.Dither.NONE).save(file, "PNG", optimize=True, pnginfo=about)
    publish(picture)


def _source_of(picture: Location) -> str | None:
    """What `draw_smaller` made a picture from; None if the file says nothing of it."""
    with contextlib.suppress(OSError), picture.open("rb") as file:  # Image.open raises OSError for what is no picture
        said = Image.open(file).info.get(SOURCE)
        return said if isinstance(said, str) else None
    return None
