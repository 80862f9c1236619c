"""The report: one HTML file per run that explains it to a person, with everything it shows inside and no network.

A page is its sections, one file each in `sections`, found by discovery. Charts are drawn by Vega-Lite, which is inlined; all
text of users and data is escaped by the templates, and the page's content security policy lets only its own two scripts run.
"""

from __future__ import annotations

import base64
import hashlib
import logging
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from markupsafe import Markup

from gapwise.stages.reports.page.engine import fill
from gapwise.stages.reports.page.library import vega
from gapwise.stages.reports.page.terms import glossary
from gapwise.storage.backend import Location
from gapwise.storage.files import aside, publish

FILE = "report.html"
ASSETS = Path(__file__).parent / "assets"
log = logging.getLogger("gapwise")


def write_page(target: Location, title: str, parts: Sequence[tuple[str, Markup]]) -> Location:
    """Write a page of sections, (title, content) each, as one file without outside parts; returns `target`."""
    scripts = [vega(), _asset("page.js")]
    allowed = " ".join(f"'sha256-{_digest(script)}'" for script in scripts)
    policy = f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src {allowed}; base-uri 'none'; "
    page = fill(
        "page", policy=f"{policy}form-action 'none'", title=title, style=Markup(_asset("page.css")),
        parts=[{"slug": _slug(name), "title": name, "content": content} for name, content in parts],
        glossary=glossary("".join(content for _, content in parts)),
        library=Markup(scripts[0]), script=Markup(scripts[1]),
    )  # fmt: skip
    target.parent.mkdir(parents=True, exist_ok=True)
    aside(target).write_text(page, encoding="utf-8", newline="\n")
    publish(target)
    return target


@cache
def _asset(name: str) -> str:
    return (ASSETS / name).read_text(encoding="utf-8")


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _slug(name: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in name.lower())
