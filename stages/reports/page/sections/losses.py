"""The losses over lambda, on every split that was measured."""

from __future__ import annotations

from typing import Any

import numpy as np
from markupsafe import Markup

from gapwise.stages.reports.page.charts import BLUE, GREEN, GREY, ORANGE, axis, frame, lambda_axis
from gapwise.stages.reports.page.html import chart, paragraph
from gapwise.stages.reports.page.stored import ReportedRun
from gapwise.stages.reports.page.terms import term
from gapwise.storage.layout import EVALUATED

ORDER = 30
TITLE = "How good: the loss over λ"
SPLITS = {"train": BLUE, "validation": GREEN, "test": ORANGE}


def applies(run: ReportedRun) -> bool:
    """False before evaluation, and for a single lambda, whose losses are in the table."""
    return "test_loss" in run.arrays and run.arrays["lambda"].size > 1


def content(run: ReportedRun) -> Markup:
    arrays = run.arrays
    prefix = EVALUATED if f"{EVALUATED}lambda" in arrays else ""
    lam = arrays[f"{prefix}lambda"]
    there = [split for split in SPLITS if f"{prefix}{split}_loss" in arrays]
    wide = [
        {"lambda": lam[k], **{split: arrays[f"{prefix}{split}_loss"][k] for split in there}} for k in range(lam.size)
    ]
    encoding: dict[str, Any] = {
        "x": lambda_axis(), "y": axis("loss", "mean task loss", {"zero": True}),
        "color": {"field": "split", "type": "nominal",
                  "scale": {"domain": there, "range": [SPLITS[split] for split in there]}},
    }  # fmt: skip
    shown = [
        {"field": "lambda", "title": "λ", "type": "quantitative", "format": ".4~g"},
        *({"field": split, "title": f"{split} loss", "type": "quantitative", "format": ".4~f"} for split in there),
    ]
    near = {
        "name": "near",
        "select": {"type": "point", "on": "pointermove", "nearest": True, "fields": ["lambda"], "clear": "pointerout"},
    }  # fmt: skip
    layers: list[dict[str, Any]] = [
        {"transform": [{"fold": there, "as": ["split", "loss"]}],
         "mark": {"type": "line", "strokeWidth": 2, "point": {"size": 34} if lam.size <= 100 else False},
         "encoding": encoding},
        {"mark": {"type": "rule", "color": GREY}, "params": [near],
         "encoding": {"x": lambda_axis(), "tooltip": shown,
                      "opacity": {"condition": {"param": "near", "empty": False, "value": 0.7}, "value": 0}}},
    ]  # fmt: skip
    if (best := run.measured.get("best_lambda")) is not None:
        chosen = "validation" if "validation" in there else "test"
        k = int(np.argmin(np.abs(np.log(lam) - np.log(best))))
        layers.append({
            "data": {"values": [{"lambda": best, "loss": arrays[f"{prefix}{chosen}_loss"][k]}]},
            "mark": {"type": "point", "shape": "diamond", "size": 180, "filled": True, "opacity": 1,
                     "color": SPLITS[chosen]},
            "encoding": {"x": lambda_axis(), "y": encoding["y"]},
        })  # fmt: skip
    words = f"Mean task loss at each λ on the {' and '.join(there)} blocks; the diamond marks the best λ."
    said = paragraph(
        "The mean ", term("loss"), " of the predictions. Towards the left the model is too simple; towards the right it "
        "follows the training data ever more closely, and where the losses part, it has begun to learn them by heart.",
    )  # fmt: skip
    return said + chart("losses", frame(layers, data={"values": wide}), words)
