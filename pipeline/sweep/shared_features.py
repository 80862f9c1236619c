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
from gapwise.storage.backend import Location
from gapwise.storage.files import read_json
from gapwise.storage.results import read_path


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


def count_blocks(settings: Settings, source: Mapping[str, object], stop: Stop) -> int:
    """Number of training blocks: what a finished run recorded where the features are gone, else of the features.

    So a sweep whose runs are all there is shown without them. Features that are there, or that no run has used, are checked
    or made.
    """
    from gapwise.stages.featurize import open_problem
    from gapwise.storage.features import is_complete

    _, path, key = locations(settings, source)
    known = None if is_complete(path) else _recorded(path.parent.parent, key)
    if known is not None:
        return known
    make_shared(settings, source, stop)
    return int(open_problem(path, "train").n)


def _recorded(root: Location, key: str) -> int | None:
    """Number of training blocks of the features with this key, from any run below `root` that solved something on them."""
    for manifest in root.glob("*/manifest.json"):
        with contextlib.suppress(ValueError, OSError, KeyError):
            if (read_json(manifest) or {})["stages"]["featurize"]["key"] == key:
                return int(read_path(manifest.parent / "path.zarr", ())[1]["n"])
    return None
