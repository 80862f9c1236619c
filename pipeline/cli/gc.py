"""``gapwise gc``: what may go from a folder of runs, with sizes; removed with --yes and not before."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from gapwise.pipeline.cli import Command
from gapwise.pipeline.overview.states import add_root, add_run
from gapwise.pipeline.overview.tables import as_json, size, table

if TYPE_CHECKING:
    from gapwise.storage.backend import Location

LINK = "a symbolic link, which is never followed; remove the link yourself, or name its target"


def arguments(parser: argparse.ArgumentParser) -> None:
    add_run(parser, "runs", nargs="*", help="also remove these runs, in whatever state they are")
    add_root(parser)
    parser.add_argument("--yes", action="store_true", help="remove what is listed (default: list it only)")
    parser.add_argument("--json", action="store_true", help="one object: root, removed, bytes, items")


def run(asked: argparse.Namespace) -> int:
    from gapwise.pipeline.overview.find import all_named, root_of
    from gapwise.pipeline.overview.rubbish import remove_all, rubbish

    if links := [word for word in asked.runs if Path(word).is_symlink()]:
        raise ValueError(f"{links[0]}: {LINK}")
    named = [_may_go(path) for path in all_named(asked.runs, asked.root)]
    root = _local(named[0].parent if named and asked.root is None else root_of(asked.root))
    if any(path.parent != root for path in named):
        raise ValueError(f"{root}: the runs to remove lie in several folders; name the runs of one folder at a time")
    entries = list(rubbish(root, named))
    sizes = [entry.bytes for entry in entries]
    kept = [why for _, why in remove_all(root, entries, named)] if asked.yes else [""] * len(entries)
    listed = list(zip(entries, sizes, kept, strict=True))
    total = sum(nbytes for _, nbytes, reason in listed if not reason)
    if asked.json:
        items = [
            {"path": str(entry.path), "bytes": nbytes, "kind": entry.kind, "why": entry.why, "kept": reason}
            for entry, nbytes, reason in listed
        ]
        print(as_json({"root": str(root), "removed": asked.yes, "bytes": total, "items": items}))
        return 0
    if not entries:
        print(f"nothing to remove in {root}")
        return 0
    rows = [
        (size(nbytes), str(entry.path.relative_to(root)), entry.why, _note(reason)) for entry, nbytes, reason in listed
    ]
    print("\n".join(table(rows, right=(0,))))
    print(f"{size(total)} removed" if asked.yes else f"{size(total)} in all; nothing is removed yet: add --yes")
    return 0


def _note(reason: str) -> str:
    return f"KEPT: {reason}" if reason else ""


def _local(root: Location) -> Path:
    if not isinstance(root, Path):
        raise ValueError(
            f"{root}: expected a folder of this machine; objects of a store are removed with its own tools"
        )
    return root


def _may_go(path: Location) -> Path:
    """A run that was named, as a path of this machine; ValueError if a process works on it or it is a link."""
    from gapwise.storage.files import holder

    run = _local(path)
    if run.is_symlink():
        raise ValueError(f"{run}: {LINK}")
    if (user := holder(run / "lock")) is not None:
        raise ValueError(f"{run} is in use by {user}; stop it first")
    return run


COMMAND = Command("Cleans up after runs: lists what may go, and removes it with --yes.", arguments, run)
