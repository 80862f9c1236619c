"""Commits that are written behind the solve: on a thread, one at a time, while the next steps are made.

A commit of a large state is begun at a rebase point and complete some seconds later. Until then the generation before it is
the committed one, and whatever happens to the process, a resume finds one of the two. The thread writes through
`CommitStore.commit`, so what lies on the disk, and in which order it comes there, is that of any commit.

An error of the thread is raised where the main thread next asks whether the commit is complete, and what follows a commit
(`then`) is called there, never by the thread. Nothing is in flight when the ``with`` block ends.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType

import numpy as np

from gapwise.records import Facts
from gapwise.storage.commits import CommitStore, Segment
from gapwise.storage.layout import ArraySpec

BEHIND_BYTES = 8 << 20
"""States of fewer bytes are written at once, by the caller: they take less time than anyone notices."""

Then = Callable[[], None]


class CommitsBehind:
    """The commits of one solve; a context manager.

    Parameters
    ----------
    store : CommitStore
        Loaded, or of a new run. While a commit is in flight nothing else may use it.
    """

    def __init__(self, store: CommitStore) -> None:
        self.store = store
        self._flight: _Flight | None = None
        self._error: BaseException | None = None

    def __enter__(self) -> CommitsBehind:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        """Wait for the commit in flight; after a KeyboardInterrupt end it as soon as can be, before it moves HEAD."""
        if kind is None or (error is not self._error and issubclass(kind, Exception)):
            self.settle()
        elif self._flight is not None:
            self._flight.give_up()
            self._flight = None

    @property
    def free(self) -> bool:
        """Whether no commit is in flight; one that has been written since is completed as by `settle`."""
        if self._flight is not None and not self._flight.is_alive():
            self.settle()
        return self._flight is None

    def settle(self) -> None:
        """Wait for the commit in flight, if there is one, and call its `then`.

        Raises
        ------
        StateError, OSError, ...
            What `CommitStore.commit` raised in the thread; then the generation before is still the committed one. Raised
            again at each further call, since a later commit would lack the segment of this one.
        """
        flight = self._flight
        if flight is not None:
            flight.join()
            self._flight, self._error = None, flight.error
        if self._error is not None:
            raise self._error
        if flight is not None:
            flight.then()

    def commit(
        self,
        specs: Sequence[ArraySpec],
        arrays: Mapping[str, np.ndarray],
        attrs: Facts,
        segment: Callable[[], Segment] | None,
        *,
        nbytes: int,
        then: Then,
        wait: bool = False,
    ) -> None:
        """Commit a state and the breakpoints finished since the last one, after the commit in flight is settled.

        Parameters
        ----------
        specs, arrays, attrs
            As of `CommitStore.commit`. Nobody else may write to the arrays, or to what is in `attrs`.
        segment : callable, optional
            Makes the argument of `CommitStore.commit` of that name; called by whoever writes.
        nbytes : int
            Bytes of all arrays, those of the segment included.
        then : callable
            Called by the main thread when the commit is complete: before `commit` returns, in `free` or in `settle`.
        wait : bool
            Return when the commit is complete, whatever its size.

        Raises
        ------
        StateError, OSError, ...
            As `settle`; and, of a commit that is complete on return, as `CommitStore.commit`.
        """
        self.settle()

        def write(go_on: Callable[[], None]) -> None:
            self.store.commit(specs, arrays, attrs, None if segment is None else segment(), go_on)

        if wait or nbytes < BEHIND_BYTES:
            write(lambda: None)
            then()
        else:
            self._flight = _Flight(write, then)
            self._flight.start()


class _GivenUp(Exception):
    """Ends a commit that nobody waits for."""


class _Flight(threading.Thread):
    """The thread of one commit."""

    def __init__(self, write: Callable[[Callable[[], None]], None], then: Then) -> None:
        super().__init__(name="commit")
        self.then = then
        self.error: BaseException | None = None
        self._write: Callable[[Callable[[], None]], None] | None = write
        self._given_up = threading.Event()

    def run(self) -> None:
        write, self._write = self._write, None
        assert write is not None
        try:
            write(self._go_on)
        except BaseException as error:
            self.error = error

    def give_up(self) -> None:
        """End the commit before its next array or file, and wait for that; HEAD may have moved already."""
        self._given_up.set()
        with contextlib.suppress(RuntimeError):  # interrupted even before it began
            self.join()

    def _go_on(self) -> None:
        if self._given_up.is_set():
            raise _GivenUp
