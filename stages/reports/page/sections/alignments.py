"""The test sentence pairs with the most wrong or missed links: a grid of words with what was found and what is true."""

from __future__ import annotations

import math

from markupsafe import Markup

from gapwise.stages.reports.alignments import Aligned, all_pairs, all_scores, has_alignments
from gapwise.stages.reports.page.html import joined, paragraph, scrolling
from gapwise.stages.reports.page.stored import ReportedRun
from gapwise.stages.reports.paint import BLUE, GREEN, ORANGE

ORDER = 60
TITLE = "The worst alignments"
SHOWN, WORDS = 12, 30
"""Most sentence pairs; longer ones, in words of either language, are left out where shorter ones have mistakes too."""
CELL, LETTER = 16, 7
"""Pixels of a cell, and about those of a letter."""
KINDS = {"sure": GREEN, "possible": BLUE, "wrong": ORANGE}
"""Colours of links that were found."""


def applies(run: ReportedRun) -> bool:
    """True for sentence pairs with predictions."""
    return run.has_features and has_alignments(run)


def content(run: ReportedRun) -> Markup:
    pairs = all_pairs(run)
    perfect = sum(not pair.mistakes for pair in pairs) / len(pairs)
    found = all_scores(pairs)
    said = paragraph(
        f"{perfect:.1%} of the {len(pairs):,} test sentence pairs have neither a wrong link nor a missing sure one, at the "
        f"best λ. Over all links, precision is {found['precision']:.3f}, recall {found['recall']:.3f}, and the alignment "
        f"error rate {found['aer']:.3f}."
    )
    shown = worst(pairs)
    if not shown:
        return said
    return said + legend() + Markup('<div class="grids">{}</div>').format(joined(grid(pair) for pair in shown))


def worst(pairs: list[Aligned]) -> list[Aligned]:
    """At most SHOWN pairs with mistakes, those with the most first."""
    wrong = [pair for pair in pairs if pair.mistakes]
    short = [pair for pair in wrong if max(len(pair.e), len(pair.f)) <= WORDS]
    return sorted(short or wrong, key=lambda pair: -pair.mistakes)[:SHOWN]


def legend() -> Markup:
    """What the colours mean."""
    entry = Markup('<li><i style="background:{}"></i>{}</li>')
    names = ("found, and sure", "found, and possible", "found, but wrong")
    entries = [entry.format(colour, name) for name, colour in zip(names, KINDS.values(), strict=True)]
    entries.append(Markup('<li><i class="sure"></i>sure: a frame that is empty is a link that was missed</li>'))
    entries.append(Markup('<li><i class="maybe"></i>possible</li>'))
    return Markup('<ul class="legend">{}</ul>').format(joined(entries))


def grid(pair: Aligned) -> Markup:
    """English words down, French ones across; truth as frames and shades, predicted links as coloured squares."""
    left, top = (8 + LETTER * max(map(len, words)) for words in (pair.e, pair.f))
    width, height = left + CELL * len(pair.f) + 1, top + CELL * len(pair.e) + 1
    text = Markup('<text x="{}" y="{}" text-anchor="end">{}</text>')
    turned = Markup('<text transform="translate({} {}) rotate(-90)">{}</text>')
    words = [text.format(left - 5, top + CELL * j + 12, word) for j, word in enumerate(pair.e)]
    words += [turned.format(left + CELL * k + 12, top - 5, word) for k, word in enumerate(pair.f)]
    cells = [_square(pair, link, left, top, 'class="maybe"') for link in sorted(pair.possible)]
    cells += [
        _square(pair, link, left, top, f'fill="{KINDS[_kind(pair, link)]}"', 2, _kind(pair, link))
        for link in sorted(pair.found)
    ]
    cells += [_square(pair, link, left, top, 'class="sure"', 1) for link in sorted(pair.sure)]
    frame = Markup('<path class="lines" d="{}"/>').format(_lines(left, top, len(pair.f), len(pair.e)))
    drawn = Markup('<svg width="{}" height="{}" role="img" aria-label="{}">{}</svg>').format(
        math.ceil(width), math.ceil(height), _in_words(pair), joined([frame, *cells, *words])
    )
    said = f"Sentence {pair.number}: {_count(len(pair.wrong), 'wrong link')}, {len(pair.missed)} missed"
    return Markup('<figure class="grid">{}<figcaption>{}</figcaption></figure>').format(scrolling(said, drawn), said)


def _square(
    pair: Aligned, link: tuple[int, int], left: float, top: float, look: str, inset: int = 0, kind: str = ""
) -> Markup:
    j, k = link
    side = CELL - 2 * inset
    name = f"{pair.e[j]} – {pair.f[k]}{': ' * bool(kind)}{kind}"
    return Markup('<rect x="{}" y="{}" width="{}" height="{}" {}><title>{}</title></rect>').format(
        left + CELL * k + inset, top + CELL * j + inset, side, side, Markup(look), name
    )


def _kind(pair: Aligned, link: tuple[int, int]) -> str:
    return "sure" if link in pair.sure else "possible" if link in pair.possible else "wrong"


def _lines(left: float, top: float, columns: int, rows: int) -> str:
    """Path data of the lines of a grid."""
    across = "".join(f"M{left} {top + CELL * j}h{CELL * columns}" for j in range(rows + 1))
    return across + "".join(f"M{left + CELL * k} {top}v{CELL * rows}" for k in range(columns + 1))


def _in_words(pair: Aligned) -> str:
    """What the grid shows, for those who cannot see it."""

    def named(links: set[tuple[int, int]]) -> str:
        return ", ".join(f"{pair.e[j]} – {pair.f[k]}" for j, k in sorted(links)) or "none"

    return f"Alignment of sentence {pair.number}. Wrong links: {named(pair.wrong)}. Missed: {named(pair.missed)}."


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"
