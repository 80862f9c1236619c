"""Sinks: what keeps the states and breakpoints of a walk, as it goes: on disk or an object store, or in memory.

A walk offers its state wherever it could go on from it. The sink decides by clock and bytes which offers are written; each
holds everything that the walk goes on from, so no result depends on that. When `commit` returns, its state and all
breakpoints offered until then are kept, whatever happens to the process (of `MemorySink`: to the walk).
"""

from __future__ import annotations

import copy
import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Protocol, Self

import numpy as np

from gapwise.records import Record
from gapwise.storage.async_commits import AsyncCommits
from gapwise.storage.backend import Location
from gapwise.storage.commits import Commit, CommitStore, Segment
from gapwise.storage.format import FORMAT_VERSION
from gapwise.storage.layout import PATH, ArraySpec, read_group
from gapwise.storage.results import stack

MAX_BUFFERED_BYTES = 64 << 20
"""Bytes of finished breakpoints in memory that trigger a commit."""

MAX_WAITING_BYTES = 1 << 30
"""The same where a commit is in flight: the walk then waits for it."""

KEPT_SECONDS = 0.25
"""Where the way from one offer to the next takes longer, a stop does not wait for the next."""

MAX_TWICE_BYTES = 256 << 20
"""Bytes of a state above which none is held while one is being written; a stop then waits for the next offer."""


class State(Protocol):
    """A state that a walk can go on from."""

    @property
    def specs(self) -> Sequence[tuple[str, tuple[str, ...], str, str]]:
        """Name, dimensions, dtype and meaning of each array."""

    @property
    def arrays(self) -> dict[str, np.ndarray]: ...

    @property
    def attrs(self) -> dict[str, object]: ...

    @property
    def trace(self) -> np.ndarray:
        """The trace up to this state, (rows, columns)."""


class Solved(Protocol):
    """A finished breakpoint."""

    @property
    def nbytes(self) -> int:
        """Bytes of its arrays."""

    def record(self) -> Record:
        """Its numbers and arrays under the names of `layout.PATH`."""


class Beside(Protocol):
    """What is written before each commit, which records where it is: snapshots."""

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""

    def commit(self) -> Sequence[Mapping[str, object]]:
        """Write what is in memory; returns what the commit has to record."""


Pack = Callable[[], State]


class CommitSink:
    """Commits to a `CommitStore`, large states on a thread; a context manager.

    Parameters
    ----------
    store : CommitStore
    every_seconds : float
        Least time between commits.
    snapshots : Beside, optional
        Written with each commit.
    committed : callable
        Called with the trace of a state when it is committed.
    """

    def __init__(
        self,
        store: CommitStore,
        every_seconds: float = 30.0,
        snapshots: Beside | None = None,
        committed: Callable[[np.ndarray], None] = lambda trace: None,
    ) -> None:
        self.store, self.every_seconds, self.snapshots, self.committed = store, every_seconds, snapshots, committed
        self.finished: list[Solved] = []
        """Breakpoints that no commit has."""
        self.last_commit = time.monotonic()
        self._commits = AsyncCommits(store)
        self._last_offer: float | None = None
        self._held: State | None = None
        self._nbytes = 0  # of the last state that was written

    def __enter__(self) -> Self:
        self.last_commit = time.monotonic()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        """Wait for the commit in flight; after a KeyboardInterrupt end it as soon as can be."""
        self._commits.__exit__(kind, error, tb)

    def load(self) -> Commit | None:
        """The last committed state, which later commits follow; None if there is none. StateError as `CommitStore.load`."""
        return self.store.load()

    def offer(self, pack: Pack, breakpoints: Sequence[Solved]) -> bool:
        """A state that may be committed, and the breakpoints since the last offer.

        Returns whether this state is committed (or being written) or held in memory. States that follow each other quickly
        are not held: packing them would take as long as the way between them. Nor are large ones while one is being written,
        so that memory has the state twice and not three times.
        """
        free, now = self._commits.free, time.monotonic()
        self.finished.extend(breakpoints)
        buffered = sum(b.nbytes for b in self.finished) + (self.snapshots.nbytes if self.snapshots else 0)
        due = not 0.0 <= now - self.last_commit < self.every_seconds  # also commit if the clock was set back
        far = self._last_offer is None or not 0.0 <= now - self._last_offer < KEPT_SECONDS
        self._last_offer, self._held = now, None
        taken = buffered > MAX_WAITING_BYTES or (free and (due or buffered > MAX_BUFFERED_BYTES))
        if taken:
            self._commits.settle()  # before there is one more copy of the state in memory
            self._store(pack(), wait=False)
        elif far and (free or self._nbytes <= MAX_TWICE_BYTES):
            self._held = pack()
        return taken or self._held is not None

    def commit(self, pack: Pack | None = None, breakpoints: Sequence[Solved] = ()) -> None:
        """Commit the state of `pack`, or the last offer if it is held; returns when that is done."""
        self._commits.settle()
        self.finished.extend(breakpoints)
        state = self._held if pack is None else pack()
        if state is not None:
            self._store(state, wait=True)

    def end(self, breakpoints: Sequence[Solved]) -> None:
        """Take the breakpoints since the last offer, which need no commit; returns when nothing is being written."""
        self._commits.settle()
        self.finished.extend(breakpoints)
        self._held = None

    @property
    def segments(self) -> list[Location]:
        """The committed breakpoints, in groups."""
        return [self.store.folder / segment["name"] for segment in self.store.segments]

    def uncommitted(self) -> dict[str, np.ndarray] | None:
        """The breakpoints that no commit has, as arrays of `layout.PATH`; None if there are none."""
        return stack([b.record() for b in self.finished]) if self.finished else None

    def columns(self, names: tuple[str, ...]) -> dict[str, np.ndarray]:
        """Numbers of all breakpoints, in the order in which they were solved."""
        parts: list[Mapping[str, np.ndarray]] = [read_group(segment, names)[0] for segment in self.segments]
        last = self.uncommitted()
        parts += [] if last is None else [last]
        return {name: np.concatenate([part[name] for part in parts]) if parts else np.empty(0) for name in names}

    def _store(self, state: State, wait: bool) -> None:
        """Commit a state, with the breakpoints finished so far; nothing takes these again."""
        finished = tuple(self.finished)

        def segment() -> Segment:
            return Segment(stack([b.record() for b in finished]), {"format_version": FORMAT_VERSION})

        beside = [] if self.snapshots is None else list(self.snapshots.commit())
        self._nbytes = sum(array.nbytes for array in state.arrays.values())
        self._commits.commit(
            [ArraySpec(*spec) for spec in state.specs],
            state.arrays,
            {"format_version": FORMAT_VERSION, **state.attrs, "snapshots": beside},
            segment if finished else None,
            nbytes=self._nbytes + sum(b.nbytes for b in finished),
            then=lambda: self.committed(state.trace),
            wait=wait,
        )
        self.finished.clear()
        self._held = None
        self.last_commit = time.monotonic()


class MemorySink:
    """Keeps all breakpoints, and the last committed state, in this process.

    Parameters
    ----------
    every_seconds : float
        Least time between commits; infinite: only what `commit` is called for.
    """

    def __init__(self, every_seconds: float = math.inf) -> None:
        self.every_seconds = every_seconds
        self.breakpoints: list[Solved] = []
        """All that were offered, in the order in which they were solved."""
        self._state: State | None = None
        self._committed = 0
        self._last_commit = time.monotonic()

    def __enter__(self) -> Self:
        self._last_commit = time.monotonic()
        return self

    def __exit__(self, *error: object) -> None:
        """Nothing is in flight."""

    def load(self) -> Commit | None:
        """The last committed state, as a store would give it back; None if there is none. Later offers are forgotten."""
        del self.breakpoints[self._committed :]
        if self._state is None:
            return None
        return Commit(copy.deepcopy(self._state.arrays), json.loads(json.dumps(self._state.attrs)), [])

    def offer(self, pack: Pack, breakpoints: Sequence[Solved]) -> bool:
        """As `CommitSink.offer`; no state is held that is not committed."""
        self.breakpoints.extend(breakpoints)
        due = not 0.0 <= time.monotonic() - self._last_commit < self.every_seconds
        if due:
            self.commit(pack)
        return due

    def commit(self, pack: Pack | None = None, breakpoints: Sequence[Solved] = ()) -> None:
        """As `CommitSink.commit`."""
        self.breakpoints.extend(breakpoints)
        if pack is not None:
            self._state = pack()
            self._committed, self._last_commit = len(self.breakpoints), time.monotonic()

    def end(self, breakpoints: Sequence[Solved]) -> None:
        """Take the breakpoints since the last offer."""
        self.breakpoints.extend(breakpoints)

    def columns(self, names: tuple[str, ...]) -> dict[str, np.ndarray]:
        """Numbers of all breakpoints, in the order in which they were solved."""
        records, dtypes = [b.record() for b in self.breakpoints], {spec.name: spec.dtype for spec in PATH}
        return {name: np.array([record[name] for record in records], dtypes[name]) for name in names}
