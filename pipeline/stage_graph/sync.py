"""Logs to MLflow what the run directory contains, whatever was logged before: run.stage=sync."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gapwise.pipeline.stage_graph import Stage

if TYPE_CHECKING:
    from gapwise.pipeline.config.settings import Settings
    from gapwise.pipeline.job import Job


def check(settings: Settings) -> None:
    from gapwise.pipeline.errors import ConfigError

    if settings.tracking.kind == "none":
        raise ConfigError("run.stage: sync shows a run in MLflow, which tracking=none turns off; leave that out")


def run(job: Job) -> dict[str, object]:
    from gapwise.pipeline.result import complete

    job.tracker.sync("FINISHED" if complete(job.dir, job.settings) else "KILLED")
    return {}


STAGE = Stage("sync", run, in_flow=False, computes=False, check=check)
