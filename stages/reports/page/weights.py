"""The weights of a chain by name, at the best lambda."""

from __future__ import annotations

import numpy as np
from markupsafe import Markup
from pandas import DataFrame

from gapwise.stages.model.named_weights import NamedWeights, named_weights, strongest
from gapwise.stages.reports.html import number, paragraph, table
from gapwise.stages.reports.stored import StoredRun
from gapwise.storage.mixture import model_at

LABELS, FEATURES, PAIRS = 12, 5, 8
"""Most labels, those that the test split has most often; attributes for each and against it; transitions at either end."""


def weights(run: StoredRun) -> Markup | None:
    """Attributes and transitions of most weight; None for other structures, attributes without names, no best lambda."""
    if run.structure != "chain" or "vocabulary" not in run.test_blocks or "best_lambda" not in run.measured:
        return None
    lam = float(run.refitted["lambda"] if run.refitted else run.measured["best_lambda"])
    w = model_at(run.served / "path.zarr", lam, as_solved=True).weights
    assert run.features is not None
    named = named_weights(run.meta, run.features.shared(), w)
    met = np.bincount(run.truth[0], minlength=len(named.labels))[: len(named.labels)]
    of_attributes = named._replace(pairs=named.pairs[:0]).frame
    sides = []
    for k in np.argsort(-met, kind="stable")[:LABELS].tolist():
        own = strongest(of_attributes[of_attributes["label"] == named.labels[k]], "weight", FEATURES)
        sides.append([named.labels[k], _joined(own[own["weight"] > 0.0]), _joined(own[own["weight"] < 0.0][::-1])])
    heads = ("label", "speaks for it", "speaks against it")
    return Markup("").join(
        [
            paragraph(
                "The score of a label at a token is the sum of the weights of its attributes and of a transition."
            ),
            table(heads, sides, caption=f"Attributes of most weight, λ = {number(lam)}"),
            table(("before", "after", "weight"), _ends(named), caption="Transitions of largest and of least weight"),
        ]
    )


def _joined(rows: DataFrame) -> str:
    pairs = zip(rows["attribute"], rows["weight"], strict=True)
    return " · ".join(f"{attribute} {number(weight, '+.2f')}" for attribute, weight in pairs)


def _ends(weights: NamedWeights) -> list[tuple[object, object, str]]:
    order = np.argsort(-weights.pairs, axis=None, kind="stable").tolist()
    shown = order if len(order) <= 2 * PAIRS else order[:PAIRS] + order[-PAIRS:]
    cells = (divmod(cell, len(weights.labels)) for cell in shown)
    return [(weights.labels[a], weights.labels[b], number(float(weights.pairs[a, b]), "+.3f")) for a, b in cells]
