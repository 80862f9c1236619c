"""The settings of the run, so that it can be repeated."""

from __future__ import annotations

from collections.abc import Mapping

from markupsafe import Markup

from gapwise.stages.reports.page.engine import fill
from gapwise.stages.reports.page.stored import ReportedRun

ORDER = 90
TITLE = "How it was made"

NEW = {"chain": "new.txt", "segmentation": "pictures/", "potts": "pictures/"}
"""What new data of a structure usually are."""


def applies(run: ReportedRun) -> bool:
    return bool(run.manifest)


def content(run: ReportedRun) -> Markup:
    manifest = run.manifest
    facts = {
        "run": run.name,
        "key": manifest.get("key"),
        "begun": manifest.get("created"),
        "Python": manifest.get("python"),
    }
    facts |= dict(manifest.get("versions", {}))
    facts |= {
        f"seconds of {name}": f"{stage['seconds']:.1f}"
        for name, stage in manifest.get("stages", {}).items()
        if "seconds" in stage and name != "report"
    }
    facts |= {"view of steps": run.attrs.get("view") or None, "of cached passes": run.attrs.get("cached_view") or None}
    known = [(name, value) for name, value in facts.items() if value is not None]
    return fill(
        "settings", asked=_flat(run.science), facts=known, command=manifest.get("command"), run=run.name,
        new=NEW.get(run.structure, "NEW_DATA"), commit=manifest.get("commit"),
    )  # fmt: skip


def _flat(values: Mapping[str, object], prefix: str = "") -> list[tuple[str, object]]:
    """Dotted names and values."""
    out: list[tuple[str, object]] = []
    for name, value in values.items():
        out += _flat(value, f"{prefix}{name}.") if isinstance(value, Mapping) else [(f"{prefix}{name}", value)]
    return out
