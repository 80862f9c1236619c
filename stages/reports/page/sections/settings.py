"""What the run was asked for, so that it can be made again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from gapwise.stages.reports.page.html import definitions
from gapwise.stages.reports.page.stored import ReportedRun

ORDER = 90
TITLE = "How it was made"


def applies(run: ReportedRun) -> bool:
    return bool(run.manifest)


def content(run: ReportedRun) -> Markup:
    found = run.manifest
    facts = {"run": run.name, "key": found.get("key"), "begun": found.get("created"), "Python": found.get("python")}
    facts |= dict(found.get("versions", {}))
    facts |= {
        f"seconds of {name}": f"{stage['seconds']:.1f}"
        for name, stage in found.get("stages", {}).items()
        if "seconds" in stage and name != "report"
    }
    asked = definitions(dict(_flat(run.science)))
    text = Markup(
        "<details><summary>Settings</summary>{}</details><details><summary>Versions and times</summary>{}</details>"
    )
    return text.format(asked, definitions({name: value for name, value in facts.items() if value is not None}))


def _flat(values: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    """Dotted names and values."""
    out = []
    for name, value in values.items():
        out += _flat(value, f"{prefix}{name}.") if isinstance(value, Mapping) else [(f"{prefix}{name}", value)]
    return out
