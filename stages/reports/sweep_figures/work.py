"""Work of paths and grids. `work.png`: effective passes and seconds spent down to each lambda, one line per run."""

from __future__ import annotations

from typing import Any

import numpy as np

from gapwise.stages.reports.curves import Runs
from gapwise.stages.reports.paint import SPARE, figure_in
from gapwise.stages.reports.stored import read_numbers
from gapwise.storage.backend import Location


def make(runs: Runs, folder: Location) -> dict[str, Any]:
    paths = [(name, read_numbers(place)[0]) for name, _, _, place in runs]
    names = list(dict.fromkeys(name for name, _ in paths))
    panels = (("effective_passes", "effective passes"), ("seconds", "seconds of solving"))
    with figure_in(folder / "figures" / "work.png", (10.0, 4.0)) as figure:
        for axes, (column, title) in zip(figure.subplots(1, 2), panels, strict=True):
            for name, arrays in paths:
                total = np.cumsum(arrays[column])
                axes.plot(arrays["lambda"], total, "o-", color=SPARE[names.index(name) % len(SPARE)], label=name)
            axes.set(xscale="log", yscale="log", xlabel="λ", title=f"cumulative {title}")
            axes.invert_xaxis()
        handles, labels = axes.get_legend_handles_labels()
        chosen = dict(zip(labels, handles, strict=True))
        figure.legend(chosen.values(), chosen.keys(), loc="outside right upper")
    table = [
        {"variant": name, "lambdas": int(a["lambda"].size), "passes": float(np.sum(a["effective_passes"])),
         "seconds": float(np.sum(a["seconds"]))}
        for name, a in paths
    ]  # fmt: skip
    text = [f"{row['variant']:<20} {row['passes']:9.1f} passes {row['seconds']:8.2f} s" for row in table]
    return {"figures": ["work.png"], "table": table, "text": text}
