"""Finished runs of a tiny problem, as the pipeline leaves them, to be projected into MLflow; solved without compiling."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from judged import judged

from gapwise.pipeline.rundir import RunDir, write_json
from gapwise.storage.format import FORMAT_VERSION

STAMP = 1_790_000_000_000
"""Milliseconds at which the first exact pass was made."""
PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c6360606060000000050001a5f645400000000049454e44ae426082"
)
"""A PNG of one pixel."""


def finished_run(
    root: Path, *, solver: str = "bcpfw_gap_cache", seed: int = 0, count: int = 5, eps: float = 0.1, **science: Any
) -> RunDir:
    """A complete run directory below `root`: a path of `count` breakpoints, each a third of the one before.

    `science` adds to or replaces groups of the manifest's science. Losses fall to the third breakpoint and rise after it.
    """
    key = f"{solver}{seed}{count}{eps:g}".encode().hex()
    run_dir = root / f"horses_sample-{solver}-{key[:8]}-{seed}"
    (run_dir / "figures").mkdir(parents=True)
    (run_dir / "figures" / "path.png").write_bytes(PIXEL)
    hydra = run_dir / "invocations" / "2026-11-21T03-00-00" / ".hydra"
    hydra.mkdir(parents=True)
    (hydra / "config.yaml").write_text(f"seed: {seed}\n")
    (hydra / "overrides.yaml").write_text(
        f"- +experiment=regpath_horseseg\n- solver={solver}\n- seed={seed}\n- tracking=none\n"
    )
    choices = {
        "dataset": {"name": "horses_sample", "seed": 0, "n_train": 147},
        "solver": {
            "method": "bcfw", "max_passes": "inf", "step": "pairwise" if solver.startswith("bcp") else "fw",
            "cache": {"kind": "gap" if solver.endswith("cache") else "none", "F": 0.25}, "sampling": "gap", "degree": 1.0,
            "averaging": "none",
        },
        "path": {
            "rule": "paper", "eps": eps, "kappa": 0.9, "lambda_min": 0.0, "lambdas": [],
            "lambda": 0.01, "tolerance": 0.1, "relative": False, "warm_start": "keep_dual",
        },
        "seed": seed, **science,
    }  # fmt: skip
    manifest = {
        "key": key, "experiment": "regpath_horseseg", "solver": solver, "science": choices, "where": {},
        "source": {"contents": {"horse.png": "0" * 64}}, "created": "2026-11-21T03:00:00+0000", "commit": "c" * 40,
    }  # fmt: skip
    write_json(run_dir / "manifest.json", manifest)
    write_path(run_dir / "path.zarr", count, seed)
    write_json(run_dir / "result.json", result_of(count, seed))
    return RunDir(run_dir, key)


def columns(count: int, seed: int = 0) -> dict[str, np.ndarray]:
    """One number per breakpoint."""
    j = np.arange(count)
    return {
        "lambda": (1.0 + 0.3 * seed) * 10.0 / 3.0**j, "gap": np.full(count, 0.08), "primal": 0.3 + 0.1 * j,
        "dual": 0.22 + 0.1 * j, "hinge": 0.1 / (1.0 + j), "loss_dual": np.full(count, 0.1), "norm2": 0.01 * (1.0 + j),
        "effective_passes": 2.0 + j + seed, "oracle_calls": 10 * (2 + j + seed), "seconds": 0.1 * (j + 1),
        "lambda_low": (1.0 + 0.3 * seed) * 10.0 / 3.0 ** (j + 1.0), "status": np.zeros(count, np.int8),
        "train_loss": 0.3 / (1.0 + j), "test_loss": 0.2 + 0.05 * (j - 2.0) ** 2 + 0.01 * seed,
        "test_accuracy": 0.8 + 0.01 * j,
    }  # fmt: skip


def write_path(target: Path, count: int, seed: int = 0) -> None:
    """path.zarr with cells: each breakpoint's w, scaled, down to the next one."""
    values_of = columns(count, seed)
    high = np.concatenate([[np.inf], values_of["lambda"]])
    arrays = {
        **{name: (("breakpoint",), values) for name, values in values_of.items()},
        "weights": (("breakpoint", "feature"), np.arange(float(count))[:, None] ** np.arange(3)),
        "cell_interval": (("cell",), np.arange(count + 1)),
        "cell_low": (("cell",), np.append(values_of["lambda"], 0.3 * values_of["lambda"][-1])),
        "cell_high": (("cell",), high),
        "cell_primal": (("cell", "side"), np.array([[0.0, 1.0]] + [[1.0, 0.0]] * count)),
        "cell_scale": (("cell",), high),
    }
    group = zarr.open_group(target, mode="w")
    for name, (dims, values) in arrays.items():
        group.create_array(name, data=values, dimension_names=dims)
    group.attrs.update({
        "format_version": FORMAT_VERSION, "status_meanings": ["CONVERGED"], "n": 147, "d": 3, "eps": 0.1, "kappa": 0.9,
        "rule": "paper", "relative": False, "certified": False, "certainty": "exact",
        "between": False, "dual_point": True, "status": "CONVERGED",
    })  # fmt: skip


def result_of(count: int, seed: int = 0) -> dict[str, Any]:
    """The content of result.json."""
    values_of = columns(count, seed)
    best = int(np.argmin(values_of["test_loss"]))
    fields = ("lambda", "gap", "primal", "dual", "effective_passes", "oracle_calls", "seconds")
    return {
        "status": "CONVERGED", "rule": "paper",
        "problem": {"name": "horses_sample", "n": 147, "d": 3},
        "path": [{name: values_of[name][j].item() for name in fields} for j in range(count)],
        "verify": {
            "certified": True, "epsilon": 0.1, "max_gap": 0.08, "max_rebuild_error": 1e-15, "max_simplex_error": 0.0,
            "certainty": "exact", "dual_point": True,
        },
        "verdict": judged(findings={"largest_gap": 0.08, "met": count, "solved": count}).record(),
        "evaluate": {
            "best_lambda": values_of["lambda"][best].item(), "train_loss": values_of["train_loss"][best].item(),
            "test_loss": values_of["test_loss"][best].item(), "test_accuracy": values_of["test_accuracy"][best].item(),
            "best_breakpoint": best,
        },
    }  # fmt: skip


def trace(count: int = 3, seed: int = 0) -> dict[str, np.ndarray]:
    """The trace of a path: two exact passes at each of `count` lambdas."""
    values_of, row = columns(count, seed), np.arange(2 * count)
    return {
        "breakpoint": row // 2, "lambda": values_of["lambda"][row // 2], "passes": (1.0 + seed) * (1.0 + row),
        "oracle_calls": 5 * (row + 1), "steps": 10 * row, "seconds": 0.1 * row, "timestamp_ms": STAMP + 100 * row,
        "gap": 1.0 / (1 + row), "dual": 0.1 * row, "primal": 0.2 * row,
    }  # fmt: skip


def empty_database(file: Path) -> Path:
    """An MLflow database without runs; making one takes seconds, so tests copy it."""
    from mlflow import MlflowClient

    MlflowClient(tracking_uri=f"sqlite:///{file}").search_experiments()
    return file


def summary_of(runs: Mapping[str, RunDir], **changes: Any) -> dict[str, Any]:
    """The content of a sweep's summary.json, of complete runs by name."""
    content = {
        "key": "sweepkey", "experiment": "regpath_horseseg", "updated_ms": STAMP, "statuses": {"done": len(runs)},
        "command": "/usr/bin/python3 -B -m pipeline -m seed=0,1",
        "common": {"dataset.name": "horses_sample", "path.rule": "paper", "solver.sampling": "gap"},
        "jobs": [{"run": str(run.path), "test_loss": 0.25} for run in runs.values()],
    }  # fmt: skip
    return json.loads(json.dumps({**content, **changes}))
