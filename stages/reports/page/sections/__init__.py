"""The sections of a run's report, one file each, found by discovery; see `stages.reports.page.Section`."""

from gapwise.parts import with_parts

__path__ = with_parts(__path__, "sections")
