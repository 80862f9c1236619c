"""The version of everything on disk and of every key; results of another version are refused."""

from __future__ import annotations

from collections.abc import Mapping

FORMAT_VERSION = 4
"""Raise it when the meaning or the form of what a stage writes changes."""

MEASURES = ("train_*", "test_*", "validation_*", "evaluated_*")
"""Names of all arrays that evaluate adds to a path.zarr: `layout.LOSSES` and a structure's own."""


def check_format(attrs: Mapping[str, object], where: object) -> None:
    """ValueError unless `attrs`, read from `where`, say the present version."""
    version = attrs.get("format_version")
    if version != FORMAT_VERSION:
        raise ValueError(
            f"{where}: format version {version}, expected {FORMAT_VERSION}; read it with the version of Gapwise that wrote "
            "it, or delete it and repeat the command"
        )
