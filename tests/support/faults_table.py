"""The faults that `tests/faults` injects and their outcomes: the table of `storage/README.md`."""

from __future__ import annotations

SAME = "the same bits"
"""Every number equals that of an undisturbed run, except what a clock measured."""

FAULTS: dict[str, tuple[str, str]] = {
    "kill": ("SIGKILL at random moments, in every stage", SAME),
    "kill in a commit": ("SIGKILL at a file operation of a commit", SAME),
    "signal": ("SIGTERM, Ctrl-C", f"committed, exit 143 or 130; then {SAME}"),
    "full disk": ("disk full, while making features or in a commit", f"exit 1; with room again {SAME}"),
    "quota": ("no file may grow beyond a few kB (RLIMIT_FSIZE)", f"exit 1; without the limit {SAME}"),
    "read-only": ("run directory read-only", f"exit 1, but a complete run still answers; writable again {SAME}"),
    "chunk": ("a file of the newest generation corrupt, truncated or missing", f"warning, one generation back; {SAME}"),
    "head": ("HEAD missing, garbage, or with a flipped bit", f"warning; {SAME}"),
    "generation gone": ("HEAD names a generation that is missing", f"warning, one generation back; {SAME}"),
    "all generations": ("both generations damaged", f"exit 1; with state/ deleted {SAME}"),
    "segment": ("a finished breakpoint of state/ damaged", f"exit 1; with state/ deleted {SAME}"),
    "anywhere": ("one bit flipped in any file", f"{SAME}, or exit 1 and a message that says what to do"),
    "features": ("a file of the features corrupt, truncated or missing", f"warning, made again; {SAME}"),
    "result": (
        "path.zarr, its losses, verify.json, metrics.json or result.json damaged or missing, also when all was done",
        f"warning, made again; {SAME}",
    ),
    "manifest": ("manifest.json corrupt, garbage or missing", f"warning, made again; {SAME}"),
    "two processes": ("two processes on one run", f"the second exits with 1 and names the first; the first: {SAME}"),
    "features of two": ("two runs make the same features at once", f"made once, the other waits; {SAME}"),
    "worker": ("a worker process dies, in a gap pass or while making features", SAME),
    "all workers": ("all worker processes die, repeatedly", f"exit 1; the same command again {SAME}"),
    "MLflow": (
        "MLflow's database locked or corrupt, its server away",
        f"warning; {SAME}; `run.stage=sync` logs it later",
    ),
    "clock": ("clocks jump by hours, forwards and back", SAME),
    "time": ("`solver.max_seconds` runs out before a λ is solved", f"exit 1; with more seconds {SAME}"),
}
"""Name, as the tests cite it: (what happens, outcome)."""


def markdown() -> str:
    """The table of `storage/README.md`."""
    rows = "".join(f"| {what} | {outcome} |\n" for what, outcome in FAULTS.values())
    return f"| what happens | outcome |\n|---|---|\n{rows}"
