"""Errors of the solver in the words of Python's arguments: it names the keys of a configuration."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

WORDS = {
    "path=grid or path=single": "lam as a number or a list",
    "path=grid|single": "lam as a number or a list",
    "path=regpath": 'lam="path"',
    "path: bounds must": 'lam="path": bounds must',
    "path: at w = 0": 'lam="path": at w = 0',
    "solver.method: ": "solver: ",
}
"""What a configuration says, and what an argument says."""


def in_words(message: str) -> str:
    """`message` with the names of arguments in the place of those of a configuration."""
    for key, argument in WORDS.items():
        message = message.replace(key, argument)
    return message


@contextlib.contextmanager
def library_words() -> Iterator[None]:
    """Raise a ValueError of the solver in the words of Python's arguments."""
    try:
        yield
    except ValueError as error:
        said = in_words(str(error))
        if type(error) is not ValueError or said == str(error):
            raise
        raise ValueError(said) from error
