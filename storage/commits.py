"""Committed generations of a solve's state: what was committed is never lost.

``state/`` holds generations ``g000045.zarr``, each with a sidecar ``g000045.json`` (checksum, configuration, format
version, segments), and ``HEAD.json``, a copy of the newest sidecar. Finished breakpoints go into segments
``s000007.zarr``, which are written once; a sidecar lists the segments of its generation. A commit publishes the
generation and its sidecar durably and only then moves HEAD. It keeps one older generation to fall back on if the newest
is damaged.

On an object store every object but HEAD is written once, under a name that no other process uses, and HEAD moves last,
from the version that this process saw last. So a process that has lost its lease can commit nothing more.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gapwise.records import Facts, Record
from gapwise.storage.backend import ChangedError, Location
from gapwise.storage.files import (
    aside,
    listed,
    make_directory,
    once,
    publish,
    read_json,
    remove,
    remove_leftovers,
    tree_checksum,
    write_json,
)
from gapwise.storage.format import FORMAT_VERSION
from gapwise.storage.integrity import below, sealed, unsealed
from gapwise.storage.layout import ArraySpec, path_specs, read_group, write_group
from gapwise.storage.pointer import Pointer

log = logging.getLogger("gapwise.storage")


class StateError(RuntimeError):
    """Committed state that cannot be used; the message says which file, why, and what to do."""


@dataclass(frozen=True)
class Commit:
    """A generation as it was committed."""

    arrays: dict[str, np.ndarray]
    attrs: Record
    segments: list[Location]


class Segment(NamedTuple):
    """Finished breakpoints, stacked, and the attributes of their group."""

    arrays: dict[str, np.ndarray]
    attrs: Facts


class CommitStore:
    """The ``state/`` directory of one run.

    Parameters
    ----------
    folder : Path or UrlPath
        Made if absent.
    identity : mapping
        The resolved configuration that determines the numbers, flat; a state with another one is an error that lists the
        differing keys.
    """

    def __init__(self, folder: Location, identity: Mapping[str, object]) -> None:
        self.folder = folder
        self.identity = {str(k): _plain(v) for k, v in identity.items()}
        self.generation = 0
        self.segments: list[dict[str, str]] = []
        self._head = Pointer(folder / "HEAD.json")

    def load(self) -> Commit | None:
        """The newest committed generation, or None; leftovers of a killed commit are removed.

        Raises
        ------
        StateError
            If the state is of another format version or configuration, or if no generation is intact.
        """
        if not self.folder.is_dir():
            return None
        remove_leftovers(self.folder)
        candidates = self._candidates()
        if not candidates and not any(self.folder.glob("*.json")):
            self._drop_after(0)  # killed in its first commit
            return None
        problems = [] if candidates else ["every record of one is damaged"]
        for sidecar in candidates:
            self._check_identity(sidecar)
            damage = self._damage(sidecar)
            if damage is None:
                return self._open(sidecar, fell_back=bool(problems), problems=problems)
            problems.append(damage)
        raise StateError(
            f"{self.folder}: no committed generation is intact ({'; '.join(problems)}). "
            "Restore the directory from a copy, or delete it to solve again from the beginning."
        )

    def commit(
        self,
        specs: Sequence[ArraySpec],
        arrays: Mapping[str, np.ndarray],
        attrs: Facts,
        segment: Segment | None,
        go_on: Callable[[], None] = lambda: None,
    ) -> None:
        """Commit a state and, if there are any, the breakpoints that were finished since the last commit.

        Parameters
        ----------
        specs : sequence of ArraySpec
            The arrays of the state; `arrays` has all of them.
        go_on : callable
            Called before each array and each file; raises an error to end the commit there.

        Raises
        ------
        StateError
            If another process has moved HEAD, on an object store: nothing of this commit is kept.
        OSError
            If the disk is full, the directory read-only ...: the previous generation is still the committed one.
        """
        make_directory(self.folder)
        number = self.generation + 1
        segments = list(self.segments)
        if segment is not None:
            path = once(self.folder / f"s{number:06d}.zarr")
            write_group(aside(path), path_specs(segment.arrays), *segment, go_on)
            segments.append({"name": path.name, "checksum": tree_checksum(aside(path))})
            go_on()
            publish(path)
        path = once(self.folder / f"g{number:06d}.zarr")
        write_group(aside(path), tuple(specs), arrays, attrs, go_on)
        sidecar = sealed(
            {
                "format_version": FORMAT_VERSION,
                "generation": number,
                "name": path.name,
                "checksum": tree_checksum(aside(path)),
                "segments": segments,
                "identity": self.identity,
            }
        )
        go_on()
        publish(path)
        go_on()
        write_json(path.with_suffix(".json"), sidecar)
        go_on()
        try:
            self._head.write(sidecar)
        except ChangedError as error:
            raise StateError(
                f"{self.folder}: another process has taken this run over and committed since; this process ends here, and "
                "the same command continues from the other's state"
            ) from error
        self.generation, self.segments = number, segments
        self._prune(keep_from=number - 1)

    # -- parts --------------------------------------------------------------------------------------------------------
    def _path(self, sidecar: Facts) -> Location:
        return below(self.folder, sidecar.get("name", f"g{sidecar['generation']:06d}.zarr"))

    def _candidates(self) -> list[Record]:
        """Sidecars, the best first: HEAD, then older ones. Generations past an intact HEAD were never committed."""
        sidecars: dict[int, Record] = {}
        for file in listed(self.folder, "g*.json"):
            try:
                sidecar = unsealed(read_json(file), file)
                sidecars[int(sidecar["generation"])] = sidecar
            except (ValueError, KeyError, TypeError) as error:
                log.warning("%s: damaged (%s); ignored", file, error)
        head_file = self.folder / "HEAD.json"
        try:
            head = unsealed(self._head.read(), head_file)
            newest = int(head["generation"])
            sidecars[newest] = head
        except FileNotFoundError:
            if sidecars:
                log.warning("%s is missing; falling back on the newest generation that is intact", head_file)
            newest = max(sidecars, default=0)
        except (ValueError, KeyError, TypeError) as error:
            log.warning("%s: damaged (%s); falling back on the newest generation that is intact", head_file, error)
            newest = max(sidecars, default=0)
        return [sidecars[number] for number in sorted(sidecars, reverse=True) if number <= newest]

    def _check_identity(self, sidecar: Facts) -> None:
        version = sidecar.get("format_version")
        if version != FORMAT_VERSION:
            raise StateError(
                f"{self.folder}: the state has format version {version}, this program writes {FORMAT_VERSION}. "
                "Finish the run with the program that began it, or move the directory away to start anew."
            )
        other = sidecar.get("identity", {})
        keys = sorted(k for k in {*other, *self.identity} if other.get(k) != self.identity.get(k))
        if keys:
            pairs = ", ".join(f"{k}: {other.get(k)!r} there, {self.identity.get(k)!r} here" for k in keys)
            raise StateError(
                f"{self.folder}: the state belongs to another configuration ({pairs}). "
                "Move the directory away to start anew."
            )

    def _damage(self, sidecar: Facts) -> str | None:
        parts = [(self._path(sidecar).name, sidecar["checksum"])]
        parts += [(segment["name"], segment["checksum"]) for segment in sidecar["segments"]]
        for name, checksum in parts:
            if not below(self.folder, name).is_dir():
                return f"{name} is missing"
            if tree_checksum(self.folder / name) != checksum:
                return f"{name} does not match its checksum"
        return None

    def _open(self, sidecar: Facts, fell_back: bool, problems: list[str]) -> Commit:
        if fell_back:
            log.warning("%s: %s; going on from generation %d", self.folder, "; ".join(problems), sidecar["generation"])
        self.generation, self.segments = int(sidecar["generation"]), list(sidecar["segments"])
        self._drop_after(self.generation)
        arrays, attrs = read_group(self._path(sidecar))
        return Commit(arrays, attrs, [self.folder / segment["name"] for segment in self.segments])

    def _drop_after(self, number: int) -> None:
        """Remove generations and segments past `number`: never committed, or damaged."""
        listed = {segment["name"] for segment in self.segments}
        for path in self.folder.glob("[gs]??????.*"):
            if int(path.name[1:7]) > number and path.name not in listed:
                remove(path)

    def _prune(self, keep_from: int) -> None:
        for path in self.folder.glob("g??????.*"):
            if int(path.name[1:7]) < keep_from:
                remove(path)


def _plain(value: object) -> object:
    """What a value looks like after a round trip through JSON."""
    if isinstance(value, tuple | list):
        return [_plain(v) for v in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
