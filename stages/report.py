"""Report: one HTML file per run that explains it to a person, with everything it shows inside and no network.

A page is its sections, one file each in `reports.page.sections`, found by discovery.
"""

from __future__ import annotations

import logging
import pkgutil
from importlib import import_module
from typing import Protocol, cast

from markupsafe import Markup

from gapwise.stages.reports.page import FILE, write_page
from gapwise.stages.reports.page import sections as package
from gapwise.stages.reports.page.engine import fill
from gapwise.stages.reports.page.stored import ReportedRun
from gapwise.storage.backend import Location
from gapwise.storage.features import Features

log = logging.getLogger("gapwise")


class Section(Protocol):
    """What a file of `sections` defines."""

    ORDER: int
    """Sections are shown by rising order."""
    TITLE: str

    def applies(self, run: ReportedRun) -> bool:
        """Whether the run has what the section shows."""

    def content(self, run: ReportedRun) -> Markup:
        """The section below its heading."""


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
    run = ReportedRun(run_dir, features)
    title = f"{run.name}: report"
    return write_page(run_dir / FILE if target is None else target, title, sections_of(run))


def sections_of(run: ReportedRun) -> list[tuple[str, Markup]]:
    """(title, content) of all sections that apply; the content of a section that fails is its error."""
    _ = run.arrays  # the one thing that no section can do without
    sections = []
    for section in known_sections():
        try:
            if section.applies(run):
                sections.append((section.TITLE, section.content(run)))
        except Exception as error:  # a part must not take the rest with it
            log.warning("report: %s: %s: %s", section.TITLE, type(error).__name__, error)
            log.debug("report: %s", section.TITLE, exc_info=True)
            sections.append((section.TITLE, fill("missing", kind=type(error).__name__, error=error)))
    return sections


def known_sections() -> list[Section]:
    """All sections in their order."""
    names = sorted(module.name for module in pkgutil.iter_modules(package.__path__))
    sections = [cast(Section, import_module(f"{package.__name__}.{name}")) for name in names]
    return sorted(sections, key=lambda section: section.ORDER)
