"""Run directories written by hand, with what lists and commands read, so that no test of them has to solve."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

from judged import judged
from shown import result_of

from gapwise.pipeline.rundir import write_json
from gapwise.pipeline.stage_graph import flow
from gapwise.storage.format import FORMAT_VERSION

RESULT = result_of(2)


def fake_run(
    root: Path,
    name: str = "toy-bcfw-00000001",
    *,
    done: tuple[str, ...] | None = None,
    generations: tuple[int, ...] = (4, 5),
    status: str = "CONVERGED",
    features: str = "feedface",
    **science: Any,
) -> Path:
    """A run of the data set "toy": complete, or with the stages in `done` alone; returns its directory.

    Parameters
    ----------
    generations : tuple of int
        Those in state/, the last of which HEAD names.
    features : str
        Key of its features.
    science
        Keys of the configuration, as path_eps=0.1.
    """
    run, key = root / name, name.rsplit("-", 1)[-1]
    asked = {
        "dataset": {"name": "toy"}, "solver": {"method": "bcfw", "max_passes": "inf"},
        "path": {"rule": "paper", "eps": 0.1}, "seed": 0,
    }  # fmt: skip
    for word, value in science.items():
        group, _, inner = word.partition("_")
        asked[group] = {**asked[group], inner: value} if inner else value
    facts: dict[str, dict[str, Any]] = {stage: {"seconds": 10.0} for stage in done or [*flow()]}
    if "featurize" in facts:
        facts["featurize"]["key"] = features
    if "solve" in facts:
        facts["solve"] |= {"status": status, "max_seconds": 60.0}
    manifest = {
        "format_version": FORMAT_VERSION, "key": key, "name": name, "experiment": None, "solver": "bcfw",
        "science": asked, "source": {"contents": {"train.txt": "1"}}, "created": "2026-11-21T10:00:00+0000",
        "command": "python -m pipeline dataset=toy", "host": "h", "versions": {"gapwise": "0"}, "stages": facts,
    }  # fmt: skip
    (run / "invocations" / "2026-11-21T10-00-00").mkdir(parents=True)
    (run / "invocations" / "2026-11-21T10-00-00" / "pipeline.log").write_text(
        "2026-11-21 10:00:00,100 DEBUG stage featurize\n", encoding="utf-8"
    )
    (run / "lock").write_text("")
    write_json(run / "manifest.json", manifest, seal=True)
    for number in generations:
        _commit(run / "state", number)
    if done is None:
        write_json(run / "result.json", _result(key, status), seal=True)
    return run


def _commit(state: Path, number: int) -> None:
    (state / f"g{number:06d}.zarr").mkdir(parents=True)
    attrs = {"method": {"name": "bcfw", "counts": {"lam": 15.9, "breakpoint": number}}}
    (state / f"g{number:06d}.zarr" / "zarr.json").write_text(json.dumps({"attributes": attrs, "node_type": "group"}))
    sidecar = {"generation": number, "name": f"g{number:06d}.zarr", "segments": [{"name": "s000001.zarr"}]}
    (state / "s000001.zarr").mkdir(exist_ok=True)
    for name in (f"g{number:06d}.json", "HEAD.json"):
        write_json(state / name, sidecar, seal=True)


def _result(key: str, status: str) -> dict[str, Any]:
    path = [{**record, "lambda": lam, "status": status} for record, lam in zip(RESULT["path"], (4.0, 2.0), strict=True)]
    return {
        **RESULT, "format_version": FORMAT_VERSION, "key": key, "experiment": None, "status": status, "path": path,
        "problem": {"name": "toy", "n": 10, "d": 3}, "verdict": judged(status=status).record(),
        "evaluate": {"best_lambda": 2.0, "train_loss": 0.1, "test_loss": 0.2},
    }  # fmt: skip


def make_features(root: Path, name: str, age: float = 1e6) -> Path:
    """A feature store of that name, made `age` seconds ago."""
    store = root / "features" / name
    (store / "train").mkdir(parents=True)
    (store / "train" / "x.npy").write_bytes(b"0" * 1000)
    (store / "meta.json").write_text("{}")
    (root / "features" / f"{name}.lock").write_text("")
    os.utime(store / "meta.json", (time.time() - age, time.time() - age))
    return store
