"""Methods that several structures share. Problems are NamedTuples, which numba knows and which inherit nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

Structure = TypeVar("Structure")


def takes(source: type, *names: str) -> Callable[[type[Structure]], type[Structure]]:
    """Decorate a problem class: it gets these methods and properties of `source`, whose fields they read.

    AttributeError if `source` lacks one; TypeError if the class has one of its own.
    """

    def decorate(structure: type[Structure]) -> type[Structure]:
        for name in names:
            if name in vars(structure):
                raise TypeError(f"{structure.__name__}: {name} is its own, and is taken from {source.__name__}")
            setattr(structure, name, getattr(source, name))
        return structure

    return decorate
