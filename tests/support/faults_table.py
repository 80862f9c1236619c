"""What can go wrong and what comes of it: the faults of `tests/faults`, and the table of the README that they make."""

from __future__ import annotations

SAME = "the same bits"
"""Every number equals that of an undisturbed run, but for what a clock measured."""

FAULTS: dict[str, tuple[str, str]] = {
    "kill": ("SIGKILL at random moments, in every stage", SAME),
    "kill in a commit": ("SIGKILL at a file operation of a commit", SAME),
    "signal": ("SIGTERM, Ctrl-C", f"committed, exit 143, 130; then {SAME}"),
    "full disk": ("disk full: making features, in a commit", f"exit 1; with room again {SAME}"),
    "quota": ("no file may grow beyond a few kB (RLIMIT_FSIZE)", f"exit 1; without the limit {SAME}"),
    "read-only": ("run directory read-only", f"exit 1, a complete run still answers; writable again {SAME}"),
    "chunk": ("a file of the newest generation flipped, cut, gone", f"warning, one generation back; {SAME}"),
    "head": ("HEAD gone, garbage, flipped", f"warning; {SAME}"),
    "generation gone": ("HEAD names a generation that is gone", f"warning, one generation back; {SAME}"),
    "all generations": ("both generations damaged", f"exit 1; with state/ deleted {SAME}"),
    "segment": ("a finished breakpoint of state/ damaged", f"exit 1; with state/ deleted {SAME}"),
    "anywhere": ("one bit flipped in any file", f"{SAME}, or exit 1 with a word on what to do"),
    "features": ("a file of the features flipped, cut, gone", f"warning, made again; {SAME}"),
    "result": ("path.zarr, verify.json, result.json damaged", f"warning, made again; {SAME}"),
    "manifest": ("manifest.json flipped, garbage, gone", f"warning, made again; {SAME}"),
    "two processes": ("two processes on one run", f"the second: exit 1, names the first; the first: {SAME}"),
    "features of two": ("two runs that make the same features at once", f"made once, the other waits; {SAME}"),
    "worker": ("a worker process dies, in a gap pass or making features", SAME),
    "all workers": ("all worker processes die, again and again", f"exit 1; the same command again {SAME}"),
    "MLflow": ("MLflow's database locked, corrupt, its server away", f"warning; {SAME}; `run.stage=sync` shows it"),
    "clock": ("clocks jump by hours, to and fro", SAME),
    "time": ("`solver.max_seconds` over before a λ is solved", f"exit 1; with more seconds {SAME}"),
}
"""Name, as the tests cite it: (what happens, what comes of it)."""


def markdown() -> str:
    """The README's table."""
    rows = "".join(f"| {what} | {outcome} |\n" for what, outcome in FAULTS.values())
    return f"| what happens | what comes of it |\n|---|---|\n{rows}"
