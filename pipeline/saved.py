"""What an interrupted command says of the work that is saved, as it lies on the disk."""

from __future__ import annotations

from gapwise.pipeline.errors import INTERRUPTED_WORDS
from gapwise.records import Record
from gapwise.storage.backend import Location
from gapwise.storage.format import REFIT
from gapwise.storage.summary import committed, record


def interruption(saved: str, nothing: str = "nothing was saved yet") -> str:
    """The last line of an interrupted command; `saved` is empty if nothing is, which the words `nothing` then say."""
    if not saved:
        return f"{INTERRUPTED_WORDS}{nothing}. Rerun the same command to begin again."
    return f"{INTERRUPTED_WORDS}progress saved: {saved}. Rerun the same command to resume."


def saved_of_run(run: Location) -> str:
    """The stages of a run that are done, and how far the next one has committed; empty if nothing is saved."""
    done = _stages(run)
    said = [*done]
    if "solve" not in done:
        if commit := _commit(run / "state"):
            said.append(f"solve up to λ #{int(commit['counts'].get('breakpoint', 0)) + 1}")
    elif REFIT not in done and _commit(run / REFIT / "state"):
        said.append("a part of refit")
    return ", ".join(said)


def _stages(run: Location) -> Record:
    try:
        return dict((record(run / "manifest.json") or {}).get("stages", {}))
    except (OSError, ValueError, TypeError):
        return {}


def _commit(state: Location) -> Record | None:
    """The last commit; None where nothing is committed or it cannot be read."""
    try:
        return committed(state)
    except (OSError, ValueError, KeyError, TypeError):
        return None
