"""The sections of a run's report, one file each, found by discovery; see `stages.reports.page.Section`."""

from pkgutil import extend_path

__path__ = extend_path(__path__, __name__)  # a folder on PYTHONPATH with the same tree adds parts
