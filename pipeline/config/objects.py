"""Plain values as instances of dataclasses, by OmegaConf; the same values again cost a copy, as in sweeps of many runs."""

from __future__ import annotations

import copy
import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from omegaconf import OmegaConf

MOST = 4096
"""Results that are kept."""
Options = TypeVar("Options")


def as_object(schema: Options, given: Mapping[str, object]) -> Options:
    """`given` over the values of `schema`, an instance of its dataclass; OmegaConfBaseException names a wrong key."""
    return copy.deepcopy(cast(Options, _made(_Asked(type(schema), f"{schema!r} {given!r}", schema, given))))


@dataclass(frozen=True)
class _Asked:
    """Two are equal if the class and the text of all values are."""

    kind: type
    text: str
    schema: Any = field(compare=False)
    given: Mapping[str, object] = field(compare=False)


@functools.lru_cache(maxsize=MOST)
def _made(asked: _Asked) -> object:
    return OmegaConf.to_object(OmegaConf.merge(OmegaConf.structured(asked.schema), asked.given))
