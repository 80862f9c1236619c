"""The largest lambda of a path whose lambdas a rule finds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gapwise.pipeline.errors import ConfigError
from gapwise.pipeline.stage_graph import Stage
from gapwise.stages.choice.rules import LOSS

if TYPE_CHECKING:
    from gapwise.pipeline.export import Export
    from gapwise.pipeline.job import Job


def run(job: Job) -> dict[str, object]:
    from gapwise.stages.init_path import init_path

    if job.settings.run.criterion != LOSS:
        _refuse_unmeasured(job)
    job.start = init_path(job.train, job.settings.path, job.spread)
    return {} if job.start is None else {"lambda": float(job.start.lam)}


def _refuse_unmeasured(job: Job) -> None:
    """Raise ConfigError before anything is solved if the data do not have the measure that is to choose lambda."""
    from gapwise.stages.choice.criteria import criterion_of, refuse_unmeasured
    from gapwise.stages.featurize import open_problem
    from gapwise.stages.problems.held_out import VALIDATION
    from gapwise.storage.features import open_features

    features, key = open_features(job.features_path), "run.criterion"
    name, split = features.meta["structure"], VALIDATION if features.has(VALIDATION) else "test"
    by = criterion_of(key, job.settings.run.criterion, name)
    try:
        refuse_unmeasured(key, by, open_problem(job.features_path, split), features.arrays(split), name)
    except ValueError as error:
        raise ConfigError(str(error)) from None


def export(to: Export) -> None:
    from gapwise.pipeline.rundir import read_json

    facts = read_json(to.run / "manifest.json")["stages"]["init_path"]
    to.json("init_path.json", {name: value for name, value in facts.items() if name != "seconds"})


STAGE = Stage("init_path", run, export=export)
