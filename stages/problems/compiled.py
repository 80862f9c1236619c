"""Compiled drivers: functions over any problem, cached on disk, recompiled when a source they depend on is edited."""

from __future__ import annotations

import functools
import hashlib
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

from stages.problems.protocol import Problem


@functools.cache
def sources_fingerprint(problem_class: type) -> str:
    """Hash of all sources that code compiled for a structure depends on.

    numba's disk cache looks only at the file of the cached function; a driver that closes over this string is compiled
    anew when any file it calls into was edited.
    """
    stages = Path(__file__).parents[1]
    files = sorted(file for room in ("problems", "solver") for file in (stages / room).rglob("*.py"))
    own = Path(inspect.getfile(problem_class))
    digest = hashlib.sha256()
    for file in [*files, *([] if own in files else [own])]:
        digest.update(
            str(file.relative_to(stages) if file in files else file.name).encode() + b"\0" + file.read_bytes()
        )
    return digest.hexdigest()


def driver(build: Callable[[str], Any]) -> Callable[[Problem], Any]:
    """Decorate `build(fingerprint) -> compiled function`; the result maps a problem to the function for its structure.

    The compiled function must close over `fingerprint` (a bare mention is enough): numba hashes closure cells into the
    key of its disk cache.
    """
    cached = functools.cache(build)

    @functools.wraps(build)
    def of(problem: Problem) -> Any:
        return cached(sources_fingerprint(type(problem)))

    return of
