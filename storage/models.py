"""A model in a folder of its own, which needs neither the run that it comes from nor its data.

``model.json`` holds facts, a checksum of itself, and the checksums of all arrays: ``weights.npy`` and ``shared/*.npy``, all
plain .npy files. The folder is written aside and then published, so it is whole or not there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from gapwise.records import Record
from gapwise.storage.backend import DamagedError, Location
from gapwise.storage.files import read_json, refuse_others, replaced, write_json
from gapwise.storage.format import FORMAT_VERSION, check_format
from gapwise.storage.integrity import checked_array, checksums, sealed, unsealed

FILE, KIND = "model.json", "gapwise model"
WEIGHTS, SHARED = "weights.npy", "shared/"


class StoredModel(NamedTuple):
    """What a model's folder holds."""

    facts: Record
    weights: np.ndarray
    """(d,), float64"""
    shared: dict[str, np.ndarray]
    """Shared arrays of the feature store by name: vocabularies, codebooks."""


def is_model(folder: Location) -> bool:
    """Whether there is a model in `folder`, damaged or not."""
    return (folder / FILE).is_file()


def write_model(
    folder: Location, facts: Mapping[str, object], weights: np.ndarray, shared: Mapping[str, np.ndarray]
) -> None:
    """Write a model, in the place of another one if there is one, once its weights read again as they were given.

    Parameters
    ----------
    facts : mapping
        JSON-able; ``kind``, ``format_version``, ``files`` and ``seal`` are added.

    Raises
    ------
    ValueError
        If something else lies at `folder`, or something besides a model in it; it stays as it is.
    DamagedError
        If the weights written are not those given; what lies at `folder` stays as it is.
    """
    refuse_others(folder, FILE, "a model", {FILE, WEIGHTS, SHARED.rstrip("/")}.__contains__)
    with replaced(folder) as made:
        (made / SHARED).mkdir(parents=True)
        np.save(made / WEIGHTS, np.ascontiguousarray(weights, np.float64), allow_pickle=False)
        for name, array in shared.items():
            np.save(made / SHARED / f"{name}.npy", np.ascontiguousarray(array), allow_pickle=False)
        check_written(np.load(made / WEIGHTS, allow_pickle=False), weights, folder)
        files = checksums(made)
        write_json(made / FILE, sealed({"kind": KIND, "format_version": FORMAT_VERSION, **facts, "files": files}))


def check_written(read: np.ndarray, weights: np.ndarray, target: Location) -> None:
    """Raise DamagedError unless the weights read again, `read`, are those that were to be written for `target`."""
    if not np.array_equal(read, np.asarray(weights, np.float64)):
        raise DamagedError(f"{target}: the written weights differ from the model's; it was not replaced, try again")


def read_model(folder: Location) -> StoredModel:
    """Read a model and compare every file with its checksum; nothing is written.

    Raises
    ------
    FileNotFoundError
        If there is no model.
    DamagedError
        If a file is missing or not what was written; names it.
    ValueError
        If another version of Gapwise wrote it.
    """
    if not is_model(folder):
        raise FileNotFoundError(f"{folder}: no model here, there is no {FILE}")
    where = folder / FILE
    facts = unsealed(read_json(where), where)
    if facts.get("kind") != KIND or not isinstance(facts.get("files"), dict) or WEIGHTS not in facts["files"]:
        raise DamagedError(f"{where}: does not describe a model; export it again")
    check_format(facts, where)
    arrays = {name: _read(folder, name, expected) for name, expected in facts["files"].items()}
    weights = arrays.pop(WEIGHTS)
    if weights.dtype != np.float64 or weights.ndim != 1 or not np.isfinite(weights).all():
        raise DamagedError(f"{folder / WEIGHTS}: expected a row of finite float64 numbers; export the model again")
    return StoredModel(
        facts, weights, {name.removeprefix(SHARED).removesuffix(".npy"): array for name, array in arrays.items()}
    )


def _read(folder: Location, name: str, expected: Mapping[str, object]) -> np.ndarray:
    if not (name == WEIGHTS or name.startswith(SHARED)):
        raise DamagedError(f"{folder / FILE}: names the file {name}, which is none of a model's")
    return checked_array(folder, name, expected)
