"""The losses: mean task loss on training, test and validation blocks, with the lambda that was chosen marked.

With validation blocks, there is also a band of one standard error around their loss, and the choice of the
one-standard-error rule.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gapwise.stages.reports.bounds import shown_lambdas
from gapwise.stages.reports.loss_words import baseline
from gapwise.stages.reports.paint import BLUE, GREEN, GREY, ORANGE
from gapwise.stages.reports.stored import StoredRun
from gapwise.stages.reports.vega import Chart, Panel, Row, Spec, axis, lambda_axis, level, tooltip
from gapwise.storage.layout import EVALUATED

LOW, MIDDLE = 0.35, 0.6
"""Share of the axis below which a loss leaves no room for words under it, and where these stand instead."""
SPLITS = {"train": BLUE, "validation": GREEN, "test": ORANGE}


def applies(run: StoredRun) -> bool:
    """False before evaluation, and for a single lambda, whose losses would be two dots."""
    return "test_loss" in run.arrays and "best_lambda" in run.measured and run.arrays["lambda"].size > 1


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
    x = lambda_axis(shown_lambdas(run.arrays, run.attrs))
    layers: list[Spec] = []
    top = max(float(np.nanmax(values)) for values in losses.values())
    if (nothing_learnt := baseline(run.measured)) is not None:
        words, value = nothing_learnt
        layers, top = level(value, words), max(top, value)
    chosen = "validation" if "validation" in losses else "test"
    loss = losses[chosen]
    by = run.measured.get("criterion")
    best = int(np.argmin(np.abs(np.log(lam / run.measured["best_lambda"]))))
    if error is not None:
        for k in range(lam.size):
            wide[k] |= {"least": loss[k] - error[k], "most": loss[k] + error[k]}
        layers.append({
            "mark": {"type": "area", "color": GREEN, "opacity": 0.15},
            "encoding": {"x": x, "y": {**y, "field": "least"}, "y2": {"field": "most"}},
        })  # fmt: skip
    if (simple := run.measured.get("one_se_lambda")) is not None:
        low = run.measured["one_se_validation_loss"] < LOW * top
        layers += _marked(
            simple, f"one standard error:\nλ = {simple:.3g}", x, GREEN, [2, 3], MIDDLE * top if low else None
        )
    layers += _marked(float(lam[best]), "", x, GREY, [5, 4])
    layers += _lines(lam, losses, x, y, top)
    layers.append({
        "data": {"values": [{"lambda": lam[best], "loss": loss[best]}]},
        "mark": {"type": "point", "shape": "diamond", "size": 150, "filled": True, "opacity": 1, "color": SPLITS[chosen]},
        "encoding": {"x": x, "y": y},
    })  # fmt: skip
    how = "" if by is None else f" by {by.replace('_', ' ')}"
    title = f"least test loss {loss[best]:.3g} at λ = {lam[best]:.3g}"
    if chosen == "validation":
        title = f"λ = {lam[best]:.3g} chosen{how} on validation examples: test loss {losses['test'][best]:.3g}"
    elif by is not None:
        title = f"λ = {lam[best]:.3g} chosen{how} on test examples: loss {loss[best]:.3g}"
    *first, last = losses
    names = f"{', '.join(first)} and {last}" if first else last
    words = f"Mean task loss at each λ on the {names} examples; the diamond marks the best λ."
    return Chart((Panel("losses", words, layers, {"data": {"values": wide}}),), title)


def _lines(lam: np.ndarray, losses: Mapping[str, np.ndarray], x: Spec, y: Spec, top: float) -> list[Spec]:
    """A line for each split, named at its end, and on a page all losses of the lambda below the pointer."""
    splits = [*losses]
    colour = {"domain": splits, "range": [SPLITS[split] for split in splits]}
    shown = [*tooltip({"lambda": "λ"}), *tooltip({split: f"{split} loss" for split in splits}, ".4~f")]
    near = {"type": "point", "on": "pointermove", "nearest": True, "fields": ["lambda"], "clear": "pointerout"}
    coloured = {"field": "split", "type": "nominal", "scale": colour, "legend": None}
    return [
        {"transform": [{"fold": splits, "as": ["split", "loss"]}, {"filter": "isValid(datum.loss)"}],
         "mark": {"type": "line", "strokeWidth": 2, "point": {"size": 30} if lam.size <= 100 else False},
         "encoding": {"x": x, "y": y, "color": coloured}},
        {"data": {"values": ends(lam, losses, top)},
         "mark": {"type": "text", "align": "left", "baseline": "middle", "dx": 7},
         "encoding": {"x": x, "y": {**y, "field": "level"}, "text": {"field": "split"}, "color": coloured}},
        {"mark": {"type": "rule", "color": GREY}, "params": [{"name": "near", "select": near}],
         "encoding": {"x": x, "tooltip": shown,
                      "opacity": {"condition": {"param": "near", "empty": False, "value": 0.7}, "value": 0}}},
    ]  # fmt: skip


def ends(lam: np.ndarray, losses: Mapping[str, np.ndarray], top: float) -> list[Row]:
    """Where the name of each line stands: at its last value, moved up as far as the names below it need.

    `top` is the largest value on the axis.
    """
    least = 0.07 * top
    rows: list[Row] = []
    for split in sorted(losses, key=lambda split: float(losses[split][np.isfinite(losses[split])][-1])):
        (known,) = np.nonzero(np.isfinite(losses[split]))
        level = float(losses[split][known[-1]])
        if rows:
            level = max(level, float(str(rows[-1]["level"])) + least)
        rows.append({"split": split, "lambda": float(lam[known[-1]]), "level": level})
    return rows


def _marked(lam: float, words: str, x: Spec, colour: str, dash: list[int], level: float | None = None) -> list[Spec]:
    """A vertical line at one lambda, named at the loss `level`, or at the bottom: losses of larger lambdas are high."""
    data = {"values": [{"lambda": lam, "words": words, "level": level}]}
    height: Spec = {} if level is None else {"y": {"field": "level", "type": "quantitative"}}
    text = {
        "type": "text",
        "align": "right",
        "baseline": "line-bottom",
        "dx": -4,
        **({"dy": -18, "y": "height"} if level is None else {}),
        "lineBreak": "\n",
        "color": colour,
    }
    return [
        {"data": data, "mark": {"type": "rule", "color": colour, "strokeDash": dash}, "encoding": {"x": x}},
        {"data": data, "mark": text, "encoding": {"x": x, **height, "text": {"field": "words"}}},
    ]
