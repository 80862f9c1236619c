"""The page of the papers, from values.csv and parts.json alone: a line a sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from judge import Verdict, judge, numbers
from measure import PATH, Claim

from gapwise.stages.reports.tables import markdown

WORDS = {True: "holds", False: "does not", None: "open"}
WHERE = {True: "", False: "fails on ", None: "open on "}
FOLDER = "papers"
"""Beside the page: values.csv, parts.json and the pictures."""
HOW_TO_READ = """\
“Holds” and “does not” are about these runs: every seed of one side is better than every seed of the other.
That is so at each λ and on each part, unless the sentence says less.
Where the seeds overlap, or single runs differ by less than a quarter, it is open.
The number is how many times better the side is that the sentence favours: the median over all comparisons, and the range.
A sentence about one method has its own numbers, and behind them what the sentence says of them.
Each verdict links to its rows of the table of values, from which alone it is made.
Both sides of a comparison ran in the same part, so on one machine at the same time.
Many seconds were measured at loads above the number of cores; see the last table.
D* is the largest dual value of any run at a λ, and the primal excess is P − D*."""


def read_values(file: Path) -> pd.DataFrame:
    """values.csv as text; an empty cell is an empty string."""
    return pd.read_csv(file, dtype=str, keep_default_na=False)


def page(values: pd.DataFrame, about: Mapping[str, Any], claims: Sequence[Claim], plan: Mapping[str, Any]) -> str:
    """The page in Markdown.

    Parameters
    ----------
    values : DataFrame
        values.csv.
    about : mapping
        parts.json: how the runs were made, and by name what is known of each part.
    claims : sequence of mappings
        claims.yaml.
    plan : mapping
        parts.yaml.
    """
    verdicts = {claim["id"]: judge(claim, values[values["claim"] == claim["id"]]) for claim in claims}
    held = [verdict.holds for verdict in verdicts.values()]
    counts = ", ".join(
        f"{held.count(holds)} {word}" for holds, word in {True: "hold", False: "do not", None: "are open"}.items()
    )
    lines = ["# The papers' sentences and figures, here", ""]
    lines += [f"{len(claims)} sentences are judged: {counts}.", "", HOW_TO_READ, "", *about.get("notes", ())]
    for paper in dict.fromkeys(claim["paper"] for claim in claims):
        cells = [["sentence", "here", "times better", "measured by", "on"]]
        for claim in (claim for claim in claims if claim["paper"] == paper):
            cells.append(_sentence(claim, verdicts[claim["id"]], values, about["parts"], plan["parts"]))
        lines += ["", f"## {paper}", "", *markdown(cells)]
    added = [["part", "λ", "ours", "the papers' best", "passes", "seconds"], *_added(values, plan["parts"])]
    lines += ["", "## What this project adds", "", ADDED, "", *markdown(added)]
    lines += [
        "",
        "## Every figure and table",
        "",
        *markdown([["of the papers", "here"], *_figures(about["parts"], plan)]),
    ]
    lines += [
        "",
        "## Where the runs come from",
        "",
        f"`{about['command']}` at commit {about['source']}, on {about['made']}, {about['python']}, {about['machine']}.",
        "",
    ]
    heads = ["part", "runs", "seeds", "commits", "days", "load", "differs from the paper"]
    cells = [
        [
            name,
            *(str(of[key]) for key in heads[1:6]),
            ". ".join(filter(None, (plan["parts"][name].get("differs"), of["problem"]))),
        ]
        for name, of in about["parts"].items()
    ]
    return "\n".join([*lines, *markdown([heads, *cells])]) + "\n"


ADDED = """\
`accelerated`, `expensive_oracle`, and paths by the rules `two_sided` and `anytime` are in none of the papers.
How many times less they need than the best of the papers' methods in the same part, to the finest gap that both certify.
The number is the median over λ, with the range."""


def _sentence(
    claim: Claim, verdict: Verdict, values: pd.DataFrame, made: Mapping[str, Any], parts: Mapping[str, Any]
) -> list[str]:
    """The line of a sentence."""
    rows = values.index[values["claim"] == claim["id"]]
    link = (
        f"[{WORDS[verdict.holds]}]({FOLDER}/values.csv#L{rows[0] + 2}-L{rows[-1] + 2})" if rows.size else "not measured"
    )
    where = {
        holds: list(dict.fromkeys(_task(name, parts, made) for name, one in verdict.parts.items() if one is holds))
        for holds in WORDS
    }
    on = "; ".join(f"{WHERE[holds]}{', '.join(names)}" for holds, names in where.items() if names)
    why = "; ".join(dict.fromkeys(reason.partition(";")[0] for reason in verdict.why))
    number = spread(verdict.numbers) + (f" ({_expected(claim)})" if _expected(claim) else "")
    return [f"“{claim['words']}” ({claim['place']})", link, number, _measure(claim), on + (f" ({why})" if why else "")]


def spread(some: Sequence[float]) -> str:
    """The median, and the least and the largest where they differ."""
    if not some:
        return "–"
    middle, least, largest = (
        f"{value:,.0f}" if value >= 100 else f"{value:.2g}" for value in (np.median(some), min(some), max(some))
    )
    return middle if least == largest else f"{middle} [{least}, {largest}]"


def _task(name: str, parts: Mapping[str, Any], made: Mapping[str, Any]) -> str:
    """What a part learns, and that it has a single seed."""
    task = parts[name].get("task") or parts[name]["shows"]
    return f"{task} (one seed)" if str(made.get(name, {}).get("seeds")) == "1" else task


def _expected(claim: Claim) -> str:
    """What a sentence says of its number, where that is not “above 1”."""
    relation, limits = claim.get("relation", "less"), claim.get("limits")
    if relation == "within":
        low, high = limits
        return (
            f"says {low} or more" if high == np.inf else f"says {high} or less" if low == 0 else f"says {low} to {high}"
        )
    if relation == "alike":
        return f"says within {limits} times"
    return f"says over {limits}" if relation == "less" and limits else ""


def _measure(claim: Claim) -> str:
    """By what a sentence is judged, in words."""
    measure = claim["measure"].replace("_", " ")
    if "to" in claim:
        to = claim["to"]
        return (
            f"{measure} to the same {to.replace('_', ' ')}" if isinstance(to, str) else f"{measure} to a gap of {to:g}"
        )
    if ", " in measure or claim["measure"] in PATH:
        return measure
    moments = claim.get("at", "end")
    at = [
        "at the end" if at == "end" else f"after {at}" for at in (moments if isinstance(moments, list) else [moments])
    ]
    return f"{measure} at equal {claim.get('over', 'passes').replace('_', ' ')}" + (
        "" if at == ["at the end"] else f", {' or '.join(at)}"
    )


def _added(values: pd.DataFrame, parts: Mapping[str, Any]) -> list[list[str]]:
    """A row a part: the ratios in passes and in seconds."""
    cells = []
    for part, rows in values[values["claim"] == "added"].groupby("part", sort=False):
        used = rows[rows["note"] == ""]
        ratios = {
            over: [
                float(np.median(numbers(row["their_values"])) / np.median(numbers(row["our_values"])))
                for row in used[used["measure"].str.endswith(over)].to_dict("records")
            ]
            for over in ("passes", "seconds")
        }
        left_out = [
            f"not {row['lambda']} in {row['measure']}: {row['note']}"
            for row in rows[rows["note"] != ""].to_dict("records")
        ]
        lams = [", ".join(dict.fromkeys(used["lambda"])) or "all", *left_out]
        names = [", ".join(dict.fromkeys(used[side])) for side in ("ours", "theirs")]
        cells.append([parts[str(part)]["shows"], "; ".join(lams), *names, *map(spread, ratios.values())])
    return cells


def _figures(made: Mapping[str, Any], plan: Mapping[str, Any]) -> list[list[str]]:
    """Every figure and table of the papers, and the pictures of the parts that show it."""

    def pictures(name: str) -> str:
        files = [(file, f"{FOLDER}/{picture_name(name, file)}") for file in made.get(name, {}).get("figures", ())]
        links = [f"[{file.rpartition('/')[2].removesuffix('.png')}]({there})" for file, there in files]
        return f"{name}: {', '.join(links)}" if links else name

    return [
        [figure, names if isinstance(names, str) else "; ".join(map(pictures, names))]
        for figure, names in plan["figures"].items()
    ]


def picture_name(part: str, figure: str) -> str:
    """The file of a figure beside the page."""
    return f"{part}-{figure.replace('/', '-')}"
