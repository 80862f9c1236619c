"""Report: one HTML file per run that explains it to a person, with everything it shows inside and no network."""

from __future__ import annotations

import logging

from markupsafe import Markup

from gapwise.stages.reports.html import fill
from gapwise.stages.reports.page import FILE, write_page
from gapwise.stages.reports.page.sections import SECTIONS, name_of
from gapwise.stages.reports.stored import StoredRun
from gapwise.storage.backend import Location
from gapwise.storage.features import Features

log = logging.getLogger("gapwise")


def write_report(run_dir: Location, features: Features | None, target: Location | None = None) -> Location:
    """Write the report of the run in `run_dir`, of which at least the solve stage is done; returns the file.

    Parameters
    ----------
    features : Features or None
        Those of the run; without them pictures, examples and class names are left out.
    target : Path or UrlPath, optional
        The file to write; ``run_dir/report.html`` if it is not given.

    Raises
    ------
    FileNotFoundError
        If there is no solved path yet.
    """
    run = StoredRun(run_dir, features)
    title = f"{name_of(run)}: report"
    return write_page(run_dir / FILE if target is None else target, title, sections_of(run))


def sections_of(run: StoredRun) -> list[tuple[str, Markup]]:
    """(title, content) of all sections that apply; the content of a section that fails is its error."""
    _ = run.arrays  # the one thing that no section can do without
    sections = []
    for title, content in SECTIONS:
        try:
            if (made := content(run)) is not None:
                sections.append((title, made))
        except Exception as error:  # a part must not take the rest with it
            log.warning("report: %s: %s: %s", title, type(error).__name__, error)
            log.debug("report: %s", title, exc_info=True)
            sections.append((title, fill("missing", kind=type(error).__name__, error=error)))
    return sections
