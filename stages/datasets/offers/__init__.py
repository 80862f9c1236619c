"""What a reader's module offers besides ``open``, as data: `offered_by` alone looks at the names that a module defines.

A name that a module does not define has the default of its field. `stages.datasets` says what each name means. What takes
new input from files is found by `stages.datasets.inputs`, whose text is part of the keys of all runs of pictures.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from types import ModuleType
from typing import Any

Function = Callable[..., Any]
"""A function of a reader's module, which checks what it is given."""


@dataclass(frozen=True)
class Offered:
    """The optional names of a reader's module: constants are in capitals there.

    Parameters
    ----------
    where, later : tuple of str
        Options that only say where files are; options that count only if they are not null.
    needs : tuple of str
        Packages that are imported only while data are read.
    validation : mapping
        The values of `dataset.validation` that the reader itself understands, each with the options it reads only then.
    code : tuple of str
        Keys that lead to the name of a user's own class or command in the facts of features.
    joined : bool
        Whether validation blocks of the reader's own can join the training blocks for a refit.
    picture : (height, width), optional
        Of the picture whose pixels are the first features.
    encoder : function (meta, shared) -> `stages.datasets.Encoder`, optional
    specimen : function (options, sink) -> facts, optional
    truth : function (new, meta) -> names of labels, optional
    """

    where: tuple[str, ...] = ()
    later: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    validation: Mapping[str, tuple[str, ...]] | None = None
    code: tuple[str, ...] = ()
    joined: bool = True
    picture: tuple[int, int] | None = None
    encoder: Function | None = None
    specimen: Function | None = None
    truth: Function | None = None


CONSTANTS = ("where", "later", "needs", "validation", "code", "joined", "picture")
NAMES = ("where", "later", "needs", "code")
"""Fields that are tuples of names."""


def offered_by(module: ModuleType) -> Offered:
    """The record of a reader's module; ValueError if a name is not what it must be."""
    defined = vars(module)
    names = {field.name: field.name.upper() if field.name in CONSTANTS else field.name for field in fields(Offered)}
    record = Offered(**{field: defined[name] for field, name in names.items() if name in defined})
    for field in NAMES:
        value = vars(record)[field]
        if not (isinstance(value, tuple) and all(isinstance(name, str) for name in value)):
            raise ValueError(f"{module.__name__}: {names[field]}: expected a tuple of names, got {value!r}")
    for field, name in names.items():
        if field not in CONSTANTS and name in defined and not callable(defined[name]):
            raise ValueError(f"{module.__name__}: {name}: expected a function, got {defined[name]!r}")
    return record
