"""The weights of a chain by name, at the best lambda."""

from __future__ import annotations

import numpy as np
from markupsafe import Markup

from gapwise.stages.datasets.arrays.rows import Label
from gapwise.stages.model.named_weights import NamedWeights, named_weights
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
    labels = [named.labels[k] for k in np.argsort(-met, kind="stable")[:LABELS].tolist()]
    sides = [[label, _joined(named, label, False), _joined(named, label, True)] for label in labels]
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


def _joined(weights: NamedWeights, label: Label, against: bool) -> str:
    features = weights.top_features(label, FEATURES, against=against)
    return " · ".join(f"{feature.attribute} {number(feature.weight, '+.2f')}" for feature in features)


def _ends(weights: NamedWeights) -> list[tuple[object, object, str]]:
    pairs = weights.transitions()
    shown = pairs if len(pairs) <= 2 * PAIRS else pairs[:PAIRS] + pairs[-PAIRS:]
    return [(pair.before, pair.after, number(pair.weight, "+.3f")) for pair in shown]
