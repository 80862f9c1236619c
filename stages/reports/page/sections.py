"""The sections of a run's report, in their order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
from markupsafe import Markup

from gapwise.stages.reports import alignments, charts, pictures, poses
from gapwise.stages.reports.html import fill, number, paragraph, plots
from gapwise.stages.reports.page.certificates import certificates
from gapwise.stages.reports.page.labels import classes, sequences
from gapwise.stages.reports.page.story import knowledge, story
from gapwise.stages.reports.page.terms import term
from gapwise.stages.reports.page.weights import weights
from gapwise.stages.reports.paint import as_jpeg, as_svg
from gapwise.stages.reports.stored import StoredRun

Content = Callable[[StoredRun], Markup | None]
"""What a section shows below its heading; None for a run that lacks it."""


def gaps(run: StoredRun) -> Markup | None:
    """The certified gap at every lambda of the path, and at the breakpoints."""
    chart = charts.path(run)
    if chart is None or not np.isfinite(run.arrays["gap"]).any():
        return None
    return fill("gaps", whole=run.verdict.of_path, charts=_shown(chart))


def losses(run: StoredRun) -> Markup | None:
    """The losses over lambda, on every split that was measured."""
    chart = charts.losses(run)
    if chart is None:
        return None
    criterion = str(run.measured.get("criterion", "")).replace("_", " ")
    return fill("losses", validated="validation_loss" in run.arrays, criterion=criterion, charts=_shown(chart))


def certified(run: StoredRun) -> Markup | None:
    """The eps that is certified at every lambda against the work so far, of a path whose rule lets it fall."""
    chart = charts.certified(run)
    if chart is None:
        return None
    least = float(charts.certified_rows(run.trace)["eps"].min())
    said = paragraph(
        "Each point is a solved λ: from then on every λ was known to be within this much of its optimum. The ",
        term("path"), " could have been stopped at any of them; in the end it was ", number(least), ".",
    )  # fmt: skip
    return said + _shown(chart)


def convergence(run: StoredRun) -> Markup | None:
    """The gap against effective passes and against seconds, for each lambda, from the trace of the solve."""
    chart = charts.convergence(run)
    if chart is None:
        return None
    several = np.unique(run.trace["lambda"]).size > 1
    return fill("convergence", gaps=charts.quantity(run.trace) == "gap", several=several, charts=_shown(chart))


def work(run: StoredRun) -> Markup | None:
    """The work from the start of the path down to each lambda."""
    chart = charts.work(run)
    return None if chart is None else fill("work", charts=_shown(chart))


def _shown(chart: charts.Chart) -> Markup:
    return plots([(panel.words, panel.alone, chart.size) for panel in chart.panels])


def shown_poses(run: StoredRun) -> Markup | None:
    """Test photographs with skeletons, a row each."""
    rows = [
        (f"picture {shown.block + 1}", as_jpeg(partial(poses.draw_row, shown), (9.0, 2.2)))
        for shown in poses.posed(run, 6)
    ]
    return fill("poses", rows=rows) if rows else None


def worst_alignments(run: StoredRun) -> Markup | None:
    """The test sentence pairs with the most wrong or missed links."""
    pairs = alignments.all_pairs(run)
    if not pairs:
        return None
    grids = [
        (
            pair.said,
            pair.in_words,
            Markup(as_svg(partial(alignments.draw_alone, pair), pair.size)),
        )
        for pair in alignments.worst(pairs, 8)
    ]
    perfect = sum(not pair.mistakes for pair in pairs) / len(pairs)
    return fill(
        "alignments", by=run.predicting, perfect=perfect, pairs=len(pairs), scores=alignments.all_scores(pairs),
        colours=alignments.LEGEND, grids=grids,
    )  # fmt: skip


def settings(run: StoredRun) -> Markup | None:
    """The settings of the run, so that it can be repeated."""
    manifest = run.manifest
    if not manifest:
        return None
    facts = {
        "run": name_of(run),
        "key": manifest.get("key"),
        "begun": manifest.get("created"),
        "Python": manifest.get("python"),
    }
    facts |= dict(manifest.get("versions", {}))
    facts |= {
        f"seconds of {name}": f"{stage['seconds']:.1f}"
        for name, stage in manifest.get("stages", {}).items()
        if "seconds" in stage and name != "report"
    }
    facts |= {"view of steps": run.attrs.get("view") or None, "of cached passes": run.attrs.get("cached_view") or None}
    return fill(
        "settings", asked=_flat(manifest.get("science", {})), command=manifest.get("command"), run=name_of(run),
        facts=[(name, value) for name, value in facts.items() if value is not None],
        new=knowledge(run).new_data, commit=manifest.get("commit"),
    )  # fmt: skip


def name_of(run: StoredRun) -> str:
    """The name of the run."""
    return str(run.manifest.get("name", run.run_dir.name))


def _flat(values: Mapping[str, object], prefix: str = "") -> list[tuple[str, object]]:
    """Dotted names and values."""
    out: list[tuple[str, object]] = []
    for name, value in values.items():
        out += _flat(value, f"{prefix}{name}.") if isinstance(value, Mapping) else [(f"{prefix}{name}", value)]
    return out


SECTIONS: Sequence[tuple[str, Content]] = (
    ("In short", story),
    ("How sure: the gap over λ", gaps),
    ("How good: the loss over λ", losses),
    ("How sure, and when: every λ within ε", certified),
    ("How fast: convergence", convergence),
    ("How much work: from the largest λ down", work),
    ("Pictures along the path", pictures.content),
    ("Poses along the path", shown_poses),
    ("The worst alignments", worst_alignments),
    ("The worst test sequences", sequences),
    ("What the weights say", weights),
    ("What is taken for what", classes),
    ("Certificates", certificates),
    ("How it was made", settings),
)
"""Headings and contents."""
