"""Numbers, ages, sizes and tables as the commands print them."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Sequence


def number(value: object, form: str = ".3g") -> str:
    """A float in few digits; anything else as it is; a dash for what is not known."""
    if value is None or value in ("", "nan") or value != value:
        return "–"
    if not isinstance(value, float):
        return str(value)
    return format(value, form) if math.isfinite(value) else str(value)


SKEW = 60.0
"""Seconds by which clocks of machines may differ without a word."""


def duration(seconds: float) -> str:
    """42 s, 7 min, 2.5 h, 3 days."""
    for size, unit in ((86400.0, "days"), (3600.0, "h"), (60.0, "min")):
        if seconds >= 2 * size or (size == 60.0 and seconds >= 100):
            return f"{seconds / size:.1f} {unit}" if seconds < 10 * size else f"{seconds / size:.0f} {unit}"
    return f"{max(seconds, 0.0):.0f} s"


def ago(then: float | None, now: float | None = None) -> str:
    """How long ago `then` was, in seconds since the epoch; a dash if that is not known.

    A time that is more than `SKEW` ahead, because a clock was set back or another machine's differs, is said to be ahead.
    """
    if then is None:
        return "–"
    passed = (time.time() if now is None else now) - then
    return f"{duration(-passed)} ahead" if passed < -SKEW else f"{duration(passed)} ago"


def size(bytes: int) -> str:
    """1.2 MB; powers of 1,000."""
    for scale, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if bytes >= scale:
            return f"{bytes / scale:.1f} {unit}"
    return f"{bytes} B"


def table(rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> list[str]:
    """Rows as lines with aligned columns, those numbered in `right` to the right; the first row is the heading."""
    wide = [max(map(len, column)) for column in zip(*rows, strict=True)]
    out = []
    for row in rows:
        cells = [
            cell.rjust(w) if k in right else cell.ljust(w) for k, (cell, w) in enumerate(zip(row, wide, strict=True))
        ]
        out.append("  ".join(cells).rstrip())
    return out


def as_json(value: object) -> str:
    """For --json: two spaces deep; infinities and NaN, which JSON lacks, as text."""
    return json.dumps(_finite(value), indent=2, ensure_ascii=False, default=str, allow_nan=False)


def _finite(value: object) -> object:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {str(name): _finite(item) for name, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list | tuple) else value
