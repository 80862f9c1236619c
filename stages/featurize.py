"""Featurize: from raw data to the memory-mapped feature store that all solvers share."""

from __future__ import annotations

import logging
from collections.abc import Callable

from gapwise.records import Facts
from gapwise.stages.choice.held_out import SplittingSink, divide, divisible
from gapwise.stages.datasets import MapBlocks, Report, open_dataset, version_of
from gapwise.stages.problems import build
from gapwise.stages.problems.held_out import VALIDATION, HeldOut
from gapwise.stages.problems.protocol import Problem
from gapwise.storage.backend import Location
from gapwise.storage.features import FeatureWriter, damaged, is_complete, open_features

log = logging.getLogger("gapwise")


def featurize(
    dataset: Facts,
    target: Location,
    *,
    key: str,
    map_blocks: MapBlocks,
    report: Report,
    unchanged: Callable[[], None] = lambda: None,
    whole: Location | None = None,
) -> None:
    """Make the feature store `target` unless it exists undamaged.

    Parameters
    ----------
    dataset : mapping
        The resolved `dataset` group of the configuration, with `validation` in its normal form (`HeldOut.of`).
    key : str
        Identifies data and options; stored with the features.
    unchanged : callable
        Called when all is read, before anything is kept; raises DataError if the raw data are no longer those of `key`.
    whole : Path or UrlPath, optional
        Where the same features without a validation split may be; if they are, theirs are divided and not made again.

    Raises
    ------
    DataError
        If the raw data cannot be used; names split and block if the structure refuses it. Nothing is left behind.
    """
    if is_complete(target):
        damage = damaged(target)
        if damage is None:
            return
        log.warning("%s: %s; the features are made again", target, damage)
    reader, wanted = open_dataset(dataset["name"], dataset), dataset.get(VALIDATION)
    store = None if whole is None or HeldOut.of(wanted) is None else divisible(whole)
    with FeatureWriter(target) as writer:
        sink = SplittingSink(writer, reader.structure, HeldOut.of(wanted))
        facts = reader.featurize(sink, map_blocks, report) if store is None else divide(store, writer, sink, report)
        facts = sink.finish(facts)
        code = version_of(dataset["name"], reader.structure)
        facts = {"key": key, "dataset": dataset["name"], "reader": code, "structure": reader.structure, **facts}
        if wanted is not None:
            facts[VALIDATION] = wanted
        # `derived` has checked every block, so that opening the store need not read all of it again
        writer.meta = {**facts, "checked": True}
        unchanged()


def open_problem(features: Location, split: str, hold: bool = False) -> Problem:
    """The problem over one split of a feature store; arrays stay memory-mapped unless `hold` asks for `Features.held`."""
    store = open_features(features)
    return build(store.meta["structure"], store.held(split) if hold else store.arrays(split), store.meta)
