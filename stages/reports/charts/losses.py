"""The losses: mean task loss on training, test and validation blocks, with the lambda that was chosen marked.

Without validation blocks that is the lambda of least test loss; with them, there is also a band of one standard error around
their loss, and the choice of the one-standard-error rule.
"""

from __future__ import annotations

import numpy as np

from gapwise.stages.choice import choose
from gapwise.stages.reports.paint import BLUE, GREEN, GREY, ORANGE
from gapwise.stages.reports.stored import StoredRun
from gapwise.stages.reports.vega import Chart, Panel, Row, Spec, axis, lambda_axis, tooltip
from gapwise.storage.layout import EVALUATED

SPLITS = {"train": BLUE, "validation": GREEN, "test": ORANGE}


def applies(run: StoredRun) -> bool:
    """False before evaluation, and for a single lambda, whose losses would be two dots."""
    return "test_loss" in run.arrays and run.arrays["lambda"].size > 1


def chart(run: StoredRun) -> Chart:
    prefix = EVALUATED if f"{EVALUATED}lambda" in run.arrays else ""
    arrays = {name.removeprefix(prefix): values for name, values in run.arrays.items() if name.startswith(prefix)}
    lam, error = arrays["lambda"], arrays.get("validation_standard_error")
    losses = {split: arrays[f"{split}_loss"] for split in SPLITS if f"{split}_loss" in arrays}
    wide: list[Row] = [
        {"lambda": lam[k], **{split: loss[k] for split, loss in losses.items() if not np.isnan(loss[k])}}
        for k in range(lam.size)
    ]
    y = axis("loss", "mean task loss", {"zero": True})
    layers: list[Spec] = []
    chosen = "validation" if "validation" in losses else "test"
    loss = losses[chosen]
    if error is not None and chosen == "validation":
        best, simple = choose(lam, loss, error)
        for k in range(lam.size):
            wide[k] |= {"least": loss[k] - error[k], "most": loss[k] + error[k]}
        layers.append({
            "mark": {"type": "area", "color": GREEN, "opacity": 0.15},
            "encoding": {"x": lambda_axis(), "y": {**y, "field": "least"}, "y2": {"field": "most"}},
        })  # fmt: skip
        layers += _marked(float(lam[simple]), f"one standard error:\nλ = {lam[simple]:.3g}", GREEN, [2, 3])
    else:
        best = int(np.argmin(loss))
    layers += _marked(float(lam[best]), "", GREY, [5, 4])
    layers += _lines(lam, [*losses], y)
    layers.append({
        "data": {"values": [{"lambda": lam[best], "loss": loss[best]}]},
        "mark": {"type": "point", "shape": "diamond", "size": 150, "filled": True, "opacity": 1, "color": SPLITS[chosen]},
        "encoding": {"x": lambda_axis(), "y": y},
    })  # fmt: skip
    title = f"least test loss {loss[best]:.3g} at λ = {lam[best]:.3g}"
    if chosen == "validation":
        title = f"λ = {lam[best]:.3g} chosen on validation blocks: test loss {losses['test'][best]:.3g}"
    words = f"Mean task loss at each λ on the {' and '.join(losses)} blocks; the diamond marks the best λ."
    return Chart((Panel("losses", words, layers, {"data": {"values": wide}}),), title)


def _lines(lam: np.ndarray, splits: list[str], y: Spec) -> list[Spec]:
    """A line for each split, and on a page all losses of the lambda below the pointer."""
    colour = {"domain": splits, "range": [SPLITS[split] for split in splits]}
    shown = [*tooltip({"lambda": "λ"}), *tooltip({split: f"{split} loss" for split in splits}, ".4~f")]
    near = {"type": "point", "on": "pointermove", "nearest": True, "fields": ["lambda"], "clear": "pointerout"}
    return [
        {"transform": [{"fold": splits, "as": ["split", "loss"]}, {"filter": "isValid(datum.loss)"}],
         "mark": {"type": "line", "strokeWidth": 2, "point": {"size": 30} if lam.size <= 100 else False},
         "encoding": {"x": lambda_axis(), "y": y, "color": {"field": "split", "type": "nominal", "scale": colour}}},
        {"mark": {"type": "rule", "color": GREY}, "params": [{"name": "near", "select": near}],
         "encoding": {"x": lambda_axis(), "tooltip": shown,
                      "opacity": {"condition": {"param": "near", "empty": False, "value": 0.7}, "value": 0}}},
    ]  # fmt: skip


def _marked(lam: float, words: str, colour: str, dash: list[int]) -> list[Spec]:
    """A vertical line at one lambda, with its name."""
    data = {"values": [{"lambda": lam, "words": words}]}
    text = {"type": "text", "align": "right", "dx": -4, "y": "height", "dy": -20, "lineBreak": "\n", "color": colour}
    return [
        {"data": data, "mark": {"type": "rule", "color": colour, "strokeDash": dash}, "encoding": {"x": lambda_axis()}},
        {"data": data, "mark": text, "encoding": {"x": lambda_axis(), "text": {"field": "words"}}},
    ]
