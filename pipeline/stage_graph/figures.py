"""The run's figures, drawn again: run.stage=figures. A plain run draws them at the end of evaluate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gapwise.pipeline.stage_graph import Stage

if TYPE_CHECKING:
    from gapwise.pipeline.job import Job


def run(job: Job) -> dict[str, object]:
    from gapwise.stages.reports.figures import draw
    from gapwise.storage.features import open_features

    made = draw(job.dir.path, open_features(job.features_path), tuple(job.settings.figures.formats))
    return {"figures": [path.name for path in made]}


STAGE = Stage("figures", run, needs=("evaluate",), in_flow=False)
