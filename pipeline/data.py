"""What a run computes from: the contents of its raw data and the version of their reader, never where they are."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from gapwise.pipeline.config.settings import Settings, on_this_machine
from gapwise.stages.choice.criteria import criterion_of
from gapwise.stages.datasets import DataError, open_dataset, version_of
from gapwise.storage.contents import contents


def source_of(settings: Settings) -> dict[str, object]:
    """The part of a key that the raw data make up: digests of all files that featurize reads, and the reader's version.

    Raises
    ------
    ValueError
        If the reader, an option or `run.criterion` is unknown or wrong.
    OSError
        If a file cannot be read.
    """
    reader = open_dataset(settings.dataset["name"], settings.dataset)
    criterion_of("run.criterion", settings.run.criterion, reader.structure)
    known = Path(on_this_machine(settings.run.root)) / "features"
    code = version_of(settings.dataset["name"], reader.structure)
    return {**reader.source(), "reader": code, "contents": contents(reader.files(), known)}


def refuse_others(settings: Settings, source: Mapping[str, object]) -> None:
    """Raise DataError if the raw data are no longer `source`."""
    now = source_of(settings)
    if json.loads(json.dumps(now)) != json.loads(json.dumps(dict(source))):
        raise DataError("the raw data were changed while they were read; nothing is kept, give the command again")
