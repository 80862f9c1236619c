"""What was trained, in two sentences, and the numbers one looks for first."""

from __future__ import annotations

import numpy as np
from markupsafe import Markup

from gapwise.stages.reports.page.html import joined, number, paragraph
from gapwise.stages.reports.page.stored import ReportedRun
from gapwise.stages.reports.page.terms import term
from gapwise.stages.reports.page.verdict import verdict

ORDER = 10
TITLE = "In short"
LEARNS = {
    "chain": "label sequences",
    "matching": "align the words of sentences",
    "segmentation": "segment images into object and background",
    "potts": "label the regions of images",
    "multiclass": "tell classes apart",
    "multiclass_sparse": "tell classes apart",
}
"""What models of each structure learn to do."""


def applies(run: ReportedRun) -> bool:
    return True


def content(run: ReportedRun) -> Markup:
    return paragraph(trained(run)) + paragraph(verdict(run), best(run)) + tiles(run)


def trained(run: ReportedRun) -> Markup:
    """The first sentence: task, data, lambdas, method, work."""
    arrays, attrs = run.arrays, run.attrs
    text = Markup(
        "A structured SVM learned to {task} from the {n} training {blocks} of <em>{data}</em>, with {d} {features}, {lams}. "
        "The method, <em>{method}</em>, needed {calls} calls of the {oracle} ({passes} {effective}) and {seconds} seconds."
    )
    return text.format(
        task=LEARNS.get(run.structure, "predict structured objects"),
        n=f"{attrs['n']:,}" if "n" in attrs else "", blocks=term("block", "examples"), data=run.dataset,
        d=f"{attrs['d']:,}" if "d" in attrs else "", features=term("feature", "features"), lams=which(run),
        method=run.manifest.get("solver", attrs.get("method", "")), calls=total(run, "oracle_calls", ",.0f"),
        oracle=term("max-oracle"), passes=total(run, "effective_passes", ",.1f"),
        effective=term("effective pass", "effective passes"), seconds=total(run, "seconds", ",.1f"),
    ) if arrays else Markup("")  # fmt: skip


def total(run: ReportedRun, name: str, form: str) -> str:
    return number(float(np.sum(run.arrays[name])), form) if name in run.arrays else "–"


def which(run: ReportedRun) -> Markup:
    """The lambdas the run is about."""
    lam = run.arrays["lambda"]
    strength = term("regularization λ")
    if run.can.certifies_path:
        text = Markup("for every strength of {} at once: {} {} from {} down to {} stand for the whole {}")
        many = term("breakpoint", "breakpoints" if lam.size > 1 else "breakpoint")
        return text.format(strength, lam.size, many, number(lam[0]), number(lam[-1]), term("path"))
    if lam.size == 1:
        return Markup("for the {} = {}").format(strength, number(lam[0]))
    return Markup("for {} values of {} from {} down to {}").format(
        lam.size, strength, number(lam.max()), number(lam.min())
    )


def best(run: ReportedRun) -> Markup:
    """The lambda to take, and on what grounds."""
    found = run.measured
    if "best_lambda" not in found:
        return Markup("")
    if "validation_loss" in run.arrays:
        text = Markup(" By {} on validation data, λ = {} is best; its loss on test data is {}.")
        return text.format(term("loss"), number(found["best_lambda"]), number(found.get("test_loss")))
    if run.arrays["lambda"].size == 1:
        return Markup(" Its mean {} on test data is {}.").format(term("loss"), number(found.get("test_loss")))
    text = Markup(
        " The least mean {} on test data, {}, is that of λ = {}. It was picked on these data, so new data will show a "
        "little more."
    )
    return text.format(term("loss"), number(found.get("test_loss")), number(found["best_lambda"]))


def tiles(run: ReportedRun) -> Markup:
    """Number and name of a few facts."""
    found = run.measured
    shown = [
        ("best λ" if run.arrays["lambda"].size > 1 else "λ", found.get("best_lambda")),
        ("test loss", found.get("test_loss")),
        ("train loss", found.get("train_loss")),
        ("largest gap", run.verdict.largest_gap if run.verified else None),
    ]
    words = ("error", "accuracy", "f1", "iou")
    shown += [
        (name.removeprefix("test_").replace("_", " "), value)
        for name, value in found.items()
        if name.startswith("test_") and name.endswith(words)
    ]
    tile = Markup('<div class="tile"><b>{}</b><span>{}</span></div>')
    return Markup('<div class="tiles">{}</div>').format(
        joined(tile.format(number(value), name) for name, value in shown[:8] if value is not None)
    )
