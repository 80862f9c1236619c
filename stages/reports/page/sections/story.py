"""What was trained, in two sentences, and the most important numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from markupsafe import Markup

from gapwise.stages.choice.rules import LOSS, picked_in_words
from gapwise.stages.reports.loss_words import COSTS, baseline, loss_in_words
from gapwise.stages.reports.page.engine import fill
from gapwise.stages.reports.page.html import number
from gapwise.stages.reports.page.stored import ReportedRun
from gapwise.stages.reports.page.verdict import verdict

ORDER = 10
TITLE = "In short"
LEARNS = {
    "chain": "label sequences",
    "matching": "align the words of sentences",
    "segmentation": "segment images into object and background",
    "potts": "label the regions of images",
    "multiclass": "tell classes apart",
}
"""What models of each structure learn to do."""


def applies(run: ReportedRun) -> bool:
    return True


def content(run: ReportedRun) -> Markup:
    """Task, data, lambdas, method and work; what is proven; the lambda to take, and on what grounds; a few numbers."""
    attrs, measured, lam = run.attrs, run.measured, run.arrays["lambda"]
    nothing_learnt = baseline(measured)
    criterion = str(measured.get("criterion", LOSS)).replace("_", " ")
    lams = {"count": lam.size, "first": lam[0], "last": lam[-1], "most": lam.max(), "least": lam.min()}
    return fill(
        "story", task=LEARNS.get(run.structure, "predict structured objects"), data=run.dataset,
        whole=run.can.certifies_path(), n=f"{attrs['n']:,}" if "n" in attrs else "",
        d=f"{attrs['d']:,}" if "d" in attrs else "",
        lams={name: value if name == "count" else number(float(value)) for name, value in lams.items()},
        method=run.manifest.get("solver", attrs.get("method", "")), calls=total(run, "oracle_calls", ",.0f"),
        passes=total(run, "effective_passes", ",.1f"), seconds=total(run, "seconds", ",.1f"), verdict=verdict(run),
        best=number(measured["best_lambda"]) if "best_lambda" in measured else None,
        test_loss=number(measured.get("test_loss")),
        loss=loss_in_words(run.structure, run.features.meta, has_costs(run)) if run.structure else "",
        baseline=nothing_learnt and (nothing_learnt[0], number(nothing_learnt[1])),
        criterion=criterion if "criterion" in measured else "", validated="validation_loss" in run.arrays, tiles=tiles(run),
        refit={name: number(run.refitted[name]) for name in ("test_loss", "gap")} if run.refitted else None,
        why=picked_in_words(measured, f"{criterion} on validation examples"),
    )  # fmt: skip


def has_costs(run: ReportedRun) -> bool:
    """Whether errors cost differently: by a matrix of costs or by weights of labels or examples."""
    meta = run.features.meta
    arrays = {Path(file).stem for file in meta.get("files", ())} | {*run.test_blocks}
    return any(meta.get(name) or name in arrays for name in COSTS)


def total(run: ReportedRun, name: str, form: str) -> str:
    return number(float(np.sum(run.arrays[name])), form) if name in run.arrays else "–"


def tiles(run: ReportedRun) -> list[tuple[str, str]]:
    """Number and name of a few facts."""
    measured = run.measured
    nothing_learnt = baseline(measured)
    shown = [
        ("best λ" if run.arrays["lambda"].size > 1 else "λ", measured.get("best_lambda")),
        ("test loss", measured.get("test_loss")),
        ("train loss", measured.get("train_loss")),
        (f"test loss, {nothing_learnt[0]}", nothing_learnt[1]) if nothing_learnt else ("", None),
        ("test loss, refitted", run.refitted.get("test_loss")),
        ("largest gap", run.verdict.largest_gap if run.verified else None),
    ]
    words = ("error", "accuracy", "f1", "iou")
    shown += [
        (name.removeprefix("test_").replace("_", " "), value)
        for name, value in measured.items()
        if name.startswith("test_") and name.endswith(words)
    ]
    return [(number(value), name) for name, value in shown[:9] if value is not None]
