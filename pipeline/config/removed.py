"""What earlier versions had, and what to do instead: keys, values, presets and commands that are refused with a hint."""

from __future__ import annotations

from collections.abc import Mapping

from gapwise.pipeline.errors import ConfigError

REMOVED = {
    # commands
    "completion": "gapwise --help lists commands, and gapwise ls runs",
    "status": "gapwise show does its work",
    # the group path
    "path.kind": "for regpath write nothing, for the others path=heuristic, path=grid or path=single",
}
"""What to do instead, by command, key (``path.kind``), value (``solver.method=eg``) or preset (``solver=eg``).

Values are written as in YAML: ``true``, ``false``.
"""


def hint(name: str) -> str | None:
    """One line for a name that is gone, to be printed or raised; None for other names."""
    return f"{name}: was removed; {REMOVED[name]}" if name in REMOVED else None


def check_removed(values: Mapping[str, object], section: str = "") -> None:
    """ConfigError for the first of `values` that is gone, by its key or by its value.

    Parameters
    ----------
    values : mapping
        A composed configuration, or one of its groups; groups inside it are looked through.
    section : str
        The key of that group.
    """
    for name, value in values.items():
        key = f"{section}.{name}" if section else str(name)
        if isinstance(value, Mapping):
            check_removed(value, key)
            continue
        word = str(value).lower() if isinstance(value, bool) else str(value)
        if says := hint(key) or hint(f"{key}={word}"):
            raise ConfigError(says)
