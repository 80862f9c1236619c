"""The certificates of a run as a table."""

from __future__ import annotations

import numpy as np
from markupsafe import Markup

from gapwise.stages.reports.html import number, paragraph, table
from gapwise.stages.reports.page.story import verdict
from gapwise.stages.reports.page.terms import term
from gapwise.stages.reports.stored import StoredRun

ROWS = 5000
"""Most breakpoints in the table; longer paths are in path.zarr."""


def certificates(run: StoredRun) -> Markup:
    """What is proven, and one row per breakpoint."""
    arrays = run.arrays
    losses = [name for name in ("train", "validation", "test") if f"{name}_loss" in arrays]
    heads: list[object] = [
        "",
        "λ",
        "objective",
        term("duality gap", "gap"),
        "gap / objective",
        "kind of gap",
        term("effective pass", "passes"),
        term("max-oracle", "oracle calls"),
        "seconds",
        "status",
    ]
    heads += [Markup("{} {}").format(split, term("loss")) for split in losses]
    count = arrays["lambda"].size
    best = run.measured.get("best_lambda")
    marked = None if best is None else int(np.argmin(np.abs(np.log(arrays["lambda"]) - np.log(best))))
    rows = [_cells(run, k, losses) for k in range(min(count, ROWS))]
    if best is not None and marked is not None and best != arrays["lambda"][marked]:
        marked = int(np.sum(arrays["lambda"][: len(rows)] > best))
        rows.insert(marked, _between(run, best, losses, len(heads)))
    rest = "" if count <= ROWS else f" The first {ROWS:,} of {count:,} are shown; all are in path.zarr."
    note = "" if marked is None else " The marked row is the best λ."
    said = paragraph(verdict(run)) + paragraph(
        "One row per ", term("breakpoint"), ", by falling λ." if run.can.certifies_path() else ".", note, rest
    )  # fmt: skip
    return said + table(heads, rows, marked=marked, caption="Every λ that was solved")


def _between(run: StoredRun, best: float, losses: list[str], width: int) -> list[object]:
    """The row of a best lambda that was not solved: the model there is one between two solved ones."""
    measured = [number(run.measured.get(f"{split}_loss"), ".4f") for split in losses]
    empty: list[object] = ["–"] * (width - 3 - len(losses))
    return ["", number(best, ".4g"), *empty, "between two", *measured]


def _cells(run: StoredRun, k: int, losses: list[str]) -> list[object]:
    """The row of breakpoint `k`."""
    arrays, attrs = run.arrays, run.attrs
    kind = run.verdict.sense
    gap, primal = float(arrays["gap"][k]), float(arrays["primal"][k])
    names = attrs.get("status_meanings", [])
    code = int(arrays["status"][k]) if "status" in arrays else -1
    return [
        k + 1, number(float(arrays["lambda"][k]), ".4g"), number(primal, ".4g"), number(gap),
        number(gap / primal, ".3g") if primal > 0.0 else "–",
        "none" if np.isnan(gap) else kind if k else term(kind),
        number(float(arrays["effective_passes"][k]), ".2f"),
        f"{int(arrays['oracle_calls'][k]):,}" if "oracle_calls" in arrays else "–",
        number(float(arrays["seconds"][k]), ".2f"), names[code] if 0 <= code < len(names) else "–",
        *(number(float(arrays[f"{split}_loss"][k]), ".4f") for split in losses),
    ]  # fmt: skip
