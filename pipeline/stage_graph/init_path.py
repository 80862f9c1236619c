"""The largest lambda of a path whose lambdas a rule finds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gapwise.pipeline.stage_graph import Stage

if TYPE_CHECKING:
    from gapwise.pipeline.export import Export
    from gapwise.pipeline.job import Job


def run(job: Job) -> dict[str, object]:
    from gapwise.stages.init_path import init_path

    job.start = init_path(job.train, job.settings.path, job.spread)
    return {} if job.start is None else {"lambda": float(job.start.lam)}


def export(to: Export) -> None:
    from gapwise.pipeline.rundir import read_json

    facts = read_json(to.run / "manifest.json")["stages"]["init_path"]
    to.json("init_path.json", {name: value for name, value in facts.items() if name != "seconds"})


STAGE = Stage("init_path", run, needs=("featurize",), export=export)
