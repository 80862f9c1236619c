"""Features of the data set, shared by all runs on it and stored beside the run directories."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from gapwise.pipeline.stage_graph import Stage

if TYPE_CHECKING:
    from gapwise.pipeline.compute.local import Compute
    from gapwise.pipeline.config.settings import Settings
    from gapwise.pipeline.export import Export
    from gapwise.pipeline.job import Job
    from gapwise.storage.backend import Location


def run(job: Job) -> dict[str, object]:
    source = job.dir.manifest["source"]
    make_features(job.settings, source, job.features_path, job.features_key, job.compute, job.report)
    return {"key": job.features_key, "path": str(job.features_path)}


def make_features(
    settings: Settings,
    source: Mapping[str, object],
    path: Location,
    key: str,
    compute: Compute,
    report: Callable[[int, int, str], None],
) -> None:
    """Make the features of a data set at `path` unless they are there; waits while another process makes them.

    Nothing is kept if the raw data are no longer `source`, what the key was computed from. Features in a folder that cannot
    be written, such as a mounted object store, are used as they are; ValueError if they are damaged or not there.
    """
    from gapwise.pipeline.data import refuse_others
    from gapwise.stages.featurize import featurize
    from gapwise.storage.files import locked, writable

    if not writable(path.parent):
        use_as_they_are(path)
        return

    def waiting(holder: str) -> None:
        report(0, 0, f"waiting for the features that {holder} is making")

    with locked(path.with_name(f"{path.name}.lock"), waiting):
        featurize(
            settings.dataset,
            path,
            key=key,
            map_blocks=compute.map_blocks,
            report=report,
            unchanged=lambda: refuse_others(settings, source),
            whole=path.with_name(
                f"{settings.dataset['name']}-{_without_validation(settings).features_key(source)[:8]}"
            ),
        )


def use_as_they_are(path: Location) -> None:
    """ValueError, which says what to do, unless undamaged features are at `path`, in a folder that cannot be written."""
    from gapwise.storage.features import damaged, is_complete

    unwritable = f"{path.parent} cannot be written"
    if not is_complete(path):
        raise ValueError(
            f"{path}: no features here, and {unwritable}; make them elsewhere (run.until=featurize) and copy them there, or "
            "let their owner's group write here (umask 002)"
        )
    if damage := damaged(path):
        raise ValueError(
            f"{path}: {damage}; {unwritable}, so they cannot be made again here; somebody may be making them now"
        )


def _without_validation(settings: Settings) -> Settings:
    """The same with all blocks for training; a reader's own validation blocks are in its `source`, so those differ."""
    dataset = {name: value for name, value in settings.dataset.items() if name != "validation"}
    return dataclasses.replace(settings, dataset=dataset)


def export(to: Export) -> None:
    from gapwise.pipeline.rundir import read_json

    meta = read_json(to.features / "meta.json")
    to.json("features.json", {name: value for name, value in meta.items() if isinstance(value, str | int | float)})


STAGE = Stage("featurize", run, every_invocation=True, export=export)
