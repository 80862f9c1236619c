"""The features that runs of a sweep share: made once, before the runs, on all cores."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence

from gapwise.pipeline.compute.local import Compute
from gapwise.pipeline.config.settings import Settings
from gapwise.pipeline.interrupt import Interrupted, Stop
from gapwise.pipeline.run import locations
from gapwise.pipeline.stage_graph.featurize import make_features
from gapwise.pipeline.sweep.plan import Planned


def prepare(jobs: Sequence[Planned], stop: Stop) -> None:
    """Make the features that runs share, once, on all cores. Each run reports its own errors, so none are raised here."""
    made = set()
    for job in jobs:
        assert job.settings is not None
        path = locations(job.settings, job.source)[1]
        if path not in made and not stop():
            made.add(path)
            with contextlib.suppress(ValueError, OSError, RuntimeError, Interrupted):
                make_shared(job.settings, job.source, stop)


def make_shared(settings: Settings, source: Mapping[str, object], stop: Stop) -> None:
    """Make the features of these settings, unless they are there."""
    _, path, key = locations(settings, source)
    with Compute(settings.compute, stop) as compute, stop.at_once():
        make_features(settings, source, path, key, compute, lambda done, total, activity: stop.check())


def count_blocks(settings: Settings, source: Mapping[str, object]) -> int:
    """Number of training blocks, of features that are there."""
    from gapwise.stages.featurize import open_problem

    return int(open_problem(locations(settings, source)[1], "train").n)
