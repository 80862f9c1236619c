"""Which code of one's own may run: what the user names, and never what only a file names.

A model or a run says which class or program it was made with. Whoever opens it may not have made it, so commands and
`gapwise.load_model` refuse such a name unless the user trusts the files or gives the name himself. Outside of `only`,
as in a run that the user's own command configures, everything is allowed. A command refuses in all threads of its process,
because threads that a library starts know nothing of what the thread has set that started them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator
from contextvars import ContextVar

Names = frozenset[str] | None
"""Code that may run, by name; None: all code."""

_here: ContextVar[Names] = ContextVar("here")
_everywhere: list[Names] = [None]
"""The last entry holds in threads that have set nothing."""


class UntrustedError(PermissionError):
    """Files name code that the user did not allow; nothing of it was run."""


@contextlib.contextmanager
def only(names: Collection[str] | None = (), *, everywhere: bool = False) -> Iterator[None]:
    """Inside the block, refuse all code of one's own but `names` (``module:Class`` or a command); None: refuse nothing.

    `everywhere`: also in threads that have no such block of their own, as in a process that carries out one command.
    """
    allowed = None if names is None else frozenset(names)
    if everywhere:
        _everywhere.append(allowed)
    before = _here.set(allowed)
    try:
        yield
    finally:
        _here.reset(before)
        if everywhere:
            _everywhere.pop()


def permit(name: str, what: str) -> None:
    """Raise UntrustedError, which says `what` would have been done, unless code of this name is allowed."""
    allowed = _here.get(_everywhere[-1])
    if allowed is not None and name not in allowed:
        raise UntrustedError(
            f"{name!r} is named by these files alone, and using them would {what}; nothing was run. If you trust whoever "
            "made them, give predict --trust; in Python trust=True, or the name itself as oracle=…"
        )
