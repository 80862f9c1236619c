"""Tampering after which every checksum matches again, by the row of `faults_table.RESEALED` that says what comes of it."""

from __future__ import annotations

from tampering import (
    Tamper,
    attribute,
    entry,
    feature,
    field,
    generation_of,
    predictions,
    segment_of,
    trace_of,
    unreadable,
    without,
    without_breakpoint,
)

NUMBERS = ("lambda", "lambda_low", "gap", "primal", "dual", "hinge", "loss_dual", "norm2")
SUPPORTS = ("support_alpha", "support_label", "support_offset", "label_offset")
CELLS = ("cell_interval", "cell_low", "cell_high", "cell_primal", "cell_scale")
ASKED = (
    *("rule", "eps", "n", "d", "key", "seed", "relative", "kappa", "lambda_min", "method", "status"),
    *("certified", "dual_point", "between", "own_primal"),
)
TOP = ("hinge_at_zero", "psi_norm2", "lam_top")

CAUGHT_IN_PATH: dict[str, dict[str, Tamper]] = {
    "numbers": {name: entry(name) for name in NUMBERS},
    "weights": {"weights": entry("weights")},
    "supports": {name: entry(name) for name in SUPPORTS},
    "cells": {name: entry(name) for name in CELLS},
    "attributes": {name: attribute(name) for name in ASKED},
    "top": {name: attribute(name) for name in TOP},
    "breakpoint": {"the second": without_breakpoint},
    "unusable": {
        "array gone": without("block_gap"),
        "weights gone": without("weights"),
        "cells gone": without("cell_low"),
        "attribute gone": without("hinge_at_zero"),
        "unreadable": unreadable("gap"),
        "weights unreadable": unreadable("weights"),
        "status": entry("status", change=lambda codes: codes + 100),
        "version": attribute("format_version"),
    },
}
"""Of a path that is solved: the command fails in verify, and with path.zarr deleted it makes the path again from state/."""

CAUGHT_IN_STATE: dict[str, dict[str, Tamper]] = {
    "segment": {name: entry(name, segment_of) for name in (*NUMBERS, "weights", *SUPPORTS)},
    "start": {name: attribute("start", name, where=generation_of) for name in ("hinge_at_zero", "psi_norm2")},
    "state": {
        "alpha": entry("support_alpha", generation_of),
        "losses": entry("support_loss", generation_of, lambda losses: 0.9 * losses),
        "offsets": entry("support_offset", generation_of),
        "array gone": without("block_gap", generation_of),
        "attribute gone": without("start", generation_of),
        "generator": attribute("method", "rng", where=generation_of, change=lambda rng: {}),
        "unreadable": unreadable("support_alpha", generation_of),
        "segment's array gone": without("block_gap", segment_of),
        "segment unreadable": unreadable("gap", segment_of),
        "method": attribute("method", "name", where=generation_of),
        "configuration": field("state/HEAD.json", "identity", "path.eps"),
    },
}
"""Of a run stopped half-way: the command fails, at once or in verify, and with what it names deleted it solves again."""

MADE_AGAIN: dict[str, Tamper] = {
    "answer": field("result.json", "path", 1, "gap"),
    "verification": field("verify.json", "max_gap"),
    "metrics": field("metrics.json", "test_loss"),
    "losses": entry("test_loss"),
    "predictions": predictions,
    "answer without path": field("result.json", "path", change=lambda path: []),
}
"""Of a complete run: not seen by the command, and made again once verify.json is deleted."""

BELIEVED: dict[str, dict[str, Tamper]] = {
    "measured": {
        **{name: entry(name) for name in ("seconds", "effective_passes", "oracle_calls", "block_gap", "support_loss")},
        "status": entry("status"),
        "psi_scale": attribute("psi_scale"),
        "trace": entry("trace", trace_of),
    },
    "manifest": {
        name: field("manifest.json", name, change=lambda value: {} if isinstance(value, dict) else "other")
        for name in ("experiment", "science", "created", "command", "host", "versions")
    },
    "test features": {"labels": feature("test/labels")},
}
"""Of a solved path: believed, because nothing recomputes it."""

FEATURES: dict[str, Tamper] = {"labels": feature("train/labels"), "attributes": feature("train/ids")}
"""Of the features of training blocks."""

POINTS: dict[str, Tamper] = {
    "generator": attribute(
        *("method", "rng", "state", "state"), where=generation_of, change=lambda state: str(int(state) + 2)
    ),
    "breakpoint's calls": attribute("method", "counts", "initial_calls", where=generation_of),
}
"""Of a state: another point of the same problem, which a solve goes on from."""
