"""The report for people, report.html. A run is complete without it: if it cannot be made, the log says why."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from gapwise.pipeline.stage_graph import Stage

if TYPE_CHECKING:
    from gapwise.pipeline.export import Export
    from gapwise.pipeline.job import Job

log = logging.getLogger("gapwise")


def run(job: Job) -> dict[str, object]:
    from gapwise.pipeline.errors import one_line
    from gapwise.storage.features import open_features

    try:
        from gapwise.stages.report import write_report

        return {"report": write_report(job.dir.path, open_features(job.features_path)).name}
    except Exception as error:
        log.warning("the report could not be made: %s; gapwise report tries again", one_line(error))
        log.debug("the report could not be made", exc_info=True)
        return {"error": one_line(error)}


def export(to: Export) -> None:
    """The page, and the numbers of the model that leaves home: that of the refit, if there is one."""
    from gapwise.pipeline.rundir import read_json
    from gapwise.storage.format import model_folder

    file = to.run / "report.html"
    if file.is_file():
        to.file("report.html")
    metrics, refitted = read_json(model_folder(to.run) / "metrics.json"), model_folder(to.run) != to.run
    lam = metrics["lambda"] if refitted else metrics["best_lambda"]
    to.json("served.json", {"lambda": lam, "refit": refitted, "test_loss": metrics["test_loss"]})


STAGE = Stage(
    "report",
    run,
    outputs=("report.html",),
    export=export,
)
