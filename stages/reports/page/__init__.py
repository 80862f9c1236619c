"""The report: one HTML file per run that explains it to a person, with everything it shows inside and no network.

Charts are SVG; all text of users and data is escaped by the templates, and the page's content security policy lets only its
own script run.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from markupsafe import Markup

from gapwise.stages.reports.html import fill
from gapwise.stages.reports.page.terms import glossary
from gapwise.storage.backend import Location
from gapwise.storage.files import aside, publish

FILE = "report.html"
ASSETS = Path(__file__).parent / "assets"


def write_page(target: Location, title: str, parts: Sequence[tuple[str, Markup]]) -> Location:
    """Write a page of sections, (title, content) each, as one file without outside parts; returns `target`."""
    script = _asset("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; base-uri 'none'; "
        "form-action 'none'"
    )
    page = fill(
        "page", policy=policy, title=title, style=Markup(_asset("page.css")), script=Markup(script),
        parts=[{"slug": _slug(name), "title": name, "content": content} for name, content in parts],
        glossary=glossary("".join(content for _, content in parts)),
    )  # fmt: skip
    target.parent.mkdir(parents=True, exist_ok=True)
    aside(target).write_text(page, encoding="utf-8", newline="\n")
    publish(target)
    return target


@cache
def _asset(name: str) -> str:
    return (ASSETS / name).read_text(encoding="utf-8")


def _slug(name: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in name.lower())
