"""The faults that `tests/faults` injects and their outcomes: the tables of `storage/README.md`."""

from __future__ import annotations

SAME = "the same bits"
"""Every number equals that of an undisturbed run, except what a clock measured."""

FAULTS: dict[str, tuple[str, str]] = {
    "kill": ("SIGKILL at random moments, in every stage", SAME),
    "kill in a commit": ("SIGKILL at a file operation of a commit", SAME),
    "kill behind": ("SIGKILL while a commit is written behind the solve", SAME),
    "signal": ("SIGTERM, Ctrl-C", f"committed, exit 143 or 130; then {SAME}"),
    "signal behind": (
        "SIGTERM, Ctrl-C while a commit is written behind the solve",
        f"that and the last state committed, exit 143 or 130; then {SAME}",
    ),
    "full disk": ("disk full, while making features or in a commit", f"exit 1; with room again {SAME}"),
    "quota": ("no file may grow beyond a few kB (RLIMIT_FSIZE)", f"exit 1; without the limit {SAME}"),
    "read-only": ("run directory read-only", f"exit 1, but a complete run still answers; writable again {SAME}"),
    "chunk": ("a file of the newest generation corrupt, truncated or missing", f"warning, one generation back; {SAME}"),
    "head": ("HEAD missing, garbage, or with a flipped bit", f"warning; {SAME}"),
    "generation gone": ("HEAD names a generation that is missing", f"warning, one generation back; {SAME}"),
    "all generations": ("both generations damaged", f"exit 1; with state/ deleted {SAME}"),
    "segment": ("a finished breakpoint of state/ damaged", f"exit 1; with state/ deleted {SAME}"),
    "features": ("a file of the features corrupt, truncated or missing", f"warning, made again; {SAME}"),
    "features read-only": ("the same where the folder of features cannot be written", f"exit 1; writable again {SAME}"),
    "result": (
        "path.zarr, its losses, trace.zarr, verify.json, metrics.json, predictions.npz, predictions/, report.html or "
        "result.json damaged or missing, or a figure missing, also when all was done",
        f"warning, made again; {SAME}",
    ),
    "linked lock": ("a symbolic link in the place of a lock", f"exit 1, its target untouched; without the link {SAME}"),
    "linked scratch": ("symbolic links in the places of temporary files", f"replaced, their targets untouched; {SAME}"),
    "linked output": (
        "symbolic links in the places of results, state and figures to somebody else's files",
        f"warning or replaced, their targets untouched; {SAME}",
    ),
    "manifest": ("manifest.json corrupt, garbage or missing", f"warning, made again; {SAME}"),
    "thousand": (
        "any file flipped, overwritten, cut, gone or a link, a kill, or caught tampering (below): 1,000 drawn",
        f"{SAME}, or exit 1 and a message that says what to delete, then {SAME}",
    ),
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


BY_VERIFY, BELIEVED = "caught by verify", "not caught"
RESEALED: dict[str, tuple[str, str]] = {
    "numbers": (
        "path.zarr: `lambda`, `lambda_low`, `gap`, `primal`, `dual`, `hinge`, `loss_dual`, `norm2`",
        f"{BY_VERIFY}: recomputed from the supports",
    ),
    "weights": ("path.zarr: `weights`", f"{BY_VERIFY}: recomputed from the supports"),
    "supports": (
        "path.zarr: `support_alpha`, `support_label`, `support_offset`, `label_offset`",
        f"{BY_VERIFY}: other numbers follow from them, or none",
    ),
    "cells": ("path.zarr: `cell_*`, the model between breakpoints", f"{BY_VERIFY}: it is not the rule's"),
    "attributes": (
        "attributes of path.zarr: `rule`, `eps`, `n`, `d`, `key`, `seed`, `relative`, `kappa`, `lambda_min`, "
        "`method`, `status`, `certified`, `dual_point`, `between`, `own_primal`",
        f"{BY_VERIFY}: compared with the configuration and the problem",
    ),
    "top": (
        "attributes of path.zarr: `hinge_at_zero`, `psi_norm2`, `lam_top`",
        f"{BY_VERIFY}: recomputed at w = 0; above `lam_top` it is not the rule's model",
    ),
    "breakpoint": ("path.zarr: a breakpoint taken out", f"{BY_VERIFY}: no breakpoint covers its lambdas"),
    "unusable": (
        "path.zarr: an array or attribute missing or unreadable",
        f"{BY_VERIFY}: exit 1 that names it",
    ),
    "complete": (
        "any of these in a complete run",
        "caught once verify.json is deleted; until then a complete run is taken at its word",
    ),
    "segment": (
        "state/: numbers, weights and supports of a finished breakpoint",
        f"{BY_VERIFY}: it is part of path.zarr then",
    ),
    "start": ("state/: `hinge_at_zero`, `psi_norm2`", f"{BY_VERIFY}: recomputed at w = 0"),
    "state": (
        "state/: arrays that do not fit the problem, losses, missing or unreadable parts, another configuration",
        "caught when the run resumes, losses by verify",
    ),
    "features": (
        "features of training blocks, after the solve",
        f"{BY_VERIFY}: the certificates do not hold for these data; with features/ deleted they are made again",
    ),
    "made again": (
        "result.json, verify.json, metrics.json, the losses, predictions.npz",
        f"{BELIEVED}, as a complete run is taken at its word; with verify.json deleted all of them are made again",
    ),
    "point": (
        "state/: gaps, random generator, counters, another labelling of the same block",
        f"{BELIEVED}: they say where the solve goes on. It ends with another path, whose certificates verify recomputes",
    ),
    "measured": (
        "`seconds`, `effective_passes`, `oracle_calls`, `status` of a breakpoint, `block_gap`, `support_loss`, `psi_scale`, "
        "trace.zarr",
        f"{BELIEVED}: counted or measured once; no certificate rests on them",
    ),
    "manifest": (
        "manifest.json: experiment, science, time, host, versions",
        f"{BELIEVED}: descriptions; runs are found and checked by their key",
    ),
    "features before": (
        "features of training blocks, before the solve",
        f"{BELIEVED}: the path is certified for the features as they are; features/ deleted: made from the raw data",
    ),
    "test features": (
        "features of test blocks, before evaluate",
        f"{BELIEVED}: losses are measured on the features as they are",
    ),
}
"""What is changed, with every checksum made again so that it matches: (what, outcome)."""


def markdown() -> str:
    """The first table of `storage/README.md`."""
    rows = "".join(f"| {fault} | {outcome} |\n" for fault, outcome in FAULTS.values())
    return f"| what happens | outcome |\n|---|---|\n{rows}"


def resealed_markdown() -> str:
    """The second table of `storage/README.md`."""
    rows = "".join(f"| {fault} | {outcome} |\n" for fault, outcome in RESEALED.values())
    return f"| changed | with its checksums made again |\n|---|---|\n{rows}"
