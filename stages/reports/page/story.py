"""What was trained, in two sentences, what is proven about it, and the most important numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from markupsafe import Markup

from gapwise.stages.certify.verdict import Verdict
from gapwise.stages.choice.rules import LOSS, Edge, baseline, picked_in_words
from gapwise.stages.problems import capabilities
from gapwise.stages.problems.capabilities import Capabilities
from gapwise.stages.reports.html import fill, number
from gapwise.stages.reports.page.terms import with_terms
from gapwise.stages.reports.stored import StoredRun

COSTS = ("cost", "balanced", "block_weight")
"""Names of arrays and facts that give errors different costs."""
MEASURES = ("error", "accuracy", "f1", "iou")
"""How the names of measures end that are shown."""


def story(run: StoredRun) -> Markup:
    """Task, data, lambdas, method and work; what is proven; the lambda to take, and on what grounds; a few numbers."""
    attrs, measured, lam = run.attrs, run.measured, run.arrays["lambda"]
    nothing_learnt = baseline(measured)
    criterion = str(measured.get("criterion", LOSS)).replace("_", " ")
    lams = {"count": lam.size, "first": lam[0], "last": lam[-1], "most": lam.max(), "least": lam.min()}
    data = run.manifest.get("science", {}).get("dataset", {}).get("name", "the data")
    return fill(
        "story", task=knowledge(run).learns, data=str(data), whole=run.can.certifies_path(),
        n=f"{attrs['n']:,}" if "n" in attrs else "", d=f"{attrs['d']:,}" if "d" in attrs else "",
        lams={name: value if name == "count" else number(float(value)) for name, value in lams.items()},
        method=run.manifest.get("solver", attrs.get("method", "")), calls=_total(run, "oracle_calls", ",.0f"),
        passes=_total(run, "effective_passes", ",.1f"), seconds=_total(run, "seconds", ",.1f"), verdict=verdict(run),
        best=number(measured["best_lambda"]) if "best_lambda" in measured else None,
        test_loss=number(measured.get("test_loss")), loss=loss_in_words(run),
        baseline=nothing_learnt and (nothing_learnt[0], number(nothing_learnt[1])),
        criterion=criterion if "criterion" in measured else "", validated="validation_loss" in run.arrays, tiles=_tiles(run),
        refit={name: number(run.refitted[name]) for name in ("test_loss", "gap")} if run.refitted else None,
        why=picked_in_words(measured, f"{criterion} on validation examples"),
        edge=Edge(measured["best_edge"]).words if "best_edge" in measured else "",
    )  # fmt: skip


def knowledge(run: StoredRun) -> Capabilities:
    """What the structure says of itself; without features the defaults."""
    return capabilities(run.structure) if run.structure else Capabilities()


def loss_in_words(run: StoredRun) -> str:
    """What the loss of one example is, as the end of a sentence; empty without features."""
    if not run.structure:
        return ""
    losses = knowledge(run).losses
    named = str(run.meta.get("loss") or next(iter(losses), ""))
    words = losses.get(named, "what the oracle defines as the loss of a labelling")
    known = {Path(file).stem for file in run.meta.get("files", ())} | {*run.test_blocks}
    costs = any(run.meta.get(name) or name in known for name in COSTS)
    return f"{words}, each error weighted by its own cost" if costs else words


def verdict(run: StoredRun) -> Markup:
    """What is proven about the run and what is not, in a few sentences with their terms explained."""
    return in_words(run.verdict) if run.verified else Markup("Nothing has been verified yet.")


def in_words(verdict: Verdict) -> Markup:
    """The words of the verdict, and the numbers behind them where all certificates hold."""
    said = f"{verdict.words[:1].upper()}{verdict.words[1:]}."
    if verdict.certified:
        share = " of the objective" if verdict.relative and verdict.of_path else ""
        of_dual = " of the dual objective" if verdict.relative and not verdict.of_path else ""
        said += (
            f" Separate code rebuilt every solution. The largest duality gap is {number(verdict.largest_gap)}{share},"
        )
        said += f" and ε {number(verdict.allowed)}{of_dual} was allowed."
        if verdict.proven is not None:
            said += " The max-oracle is approximate, so these gaps are upper-bounded; it is proven optimal on "
            said += f"{number(verdict.proven, '.1%')} of the blocks."
    return with_terms(said)


def _total(run: StoredRun, name: str, form: str) -> str:
    if name not in run.arrays:
        return "–"
    total = float(np.sum(run.arrays[name]))
    return number(total, form if total == 0.0 or total >= 1.0 else ".2g")


def _tiles(run: StoredRun) -> list[tuple[str, str]]:
    """Number and name of a few facts."""
    measured = run.measured
    nothing_learnt = baseline(measured)
    shown = [
        ("best λ" if run.arrays["lambda"].size > 1 else "λ", measured.get("best_lambda")),
        ("test loss", (run.refitted or measured).get("test_loss")),
        ("train loss", measured.get("train_loss")),
        (f"test loss, {nothing_learnt[0]}", nothing_learnt[1]) if nothing_learnt else ("", None),
        ("test loss before the refit", measured.get("test_loss") if run.refitted else None),
        ("largest gap", run.verdict.largest_gap if run.verified else None),
    ]
    shown += [
        (name.removeprefix("test_").replace("_", " "), value)
        for name, value in {**measured, **run.refitted}.items()
        if name.startswith("test_") and name.endswith(MEASURES)
    ]
    return [(number(value), name) for name, value in shown[:9] if value is not None]
