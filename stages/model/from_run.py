"""The model of a run at one lambda: its weights as the path certifies them, after what the run left has been checked."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from gapwise.records import Facts
from gapwise.stages.certify.verdict import verdict_in
from gapwise.stages.datasets import reader_of
from gapwise.stages.model.facts import check_features
from gapwise.stages.model.model import Model, allowing, versions
from gapwise.storage.backend import DamagedError, Location, location
from gapwise.storage.features import Features, features_of
from gapwise.storage.files import output_checksum, read_json, tree_checksum
from gapwise.storage.format import REFIT, check_format
from gapwise.storage.integrity import unsealed
from gapwise.storage.mixture import model_at

BEST = "best"
"""The lambda that the run's evaluation chose; the model of all training blocks, if the run has made it."""
CHECKED = (
    "the weights are the mixture of solved weights that the path's cells say, read again after they were written; without "
    "data at hand, no gap was recomputed"
)
"""What `certificate` says was checked of a run's model."""


def model_of(
    run: str | Location,
    lam: float | str = BEST,
    *,
    trust: bool = False,
    oracle: str | type | None = None,
    refit: Location | None = None,
) -> Model:
    """The model of a run at `lam`: any lambda that its path certifies, or "best", the one its evaluation chose.

    `trust` and `oracle` are those of `load_model`. `refit`: a folder in which a cross-validation has solved this lambda
    again on the run's features.

    Raises
    ------
    FileNotFoundError
        If there is no run, no solved path, or its features are gone.
    ValueError
        If the path ends above `lam`, if what the run left has changed since, or another version of Gapwise wrote it.
    """
    folder = location(run)
    if not (folder / "manifest.json").is_file():
        raise FileNotFoundError(f"{folder}: neither a run (it has no manifest.json) nor a model (no model.json)")
    manifest = unsealed(read_json(folder / "manifest.json"), folder / "manifest.json")
    check_format(manifest, folder / "manifest.json")
    stages = manifest["stages"]
    if "solve" not in stages:
        raise FileNotFoundError(
            f"{folder}: the run is not solved yet; repeat its command, which goes on where it stopped"
        )
    for stage, name in (("solve", "path.zarr"), ("verify", "verify.json"), ("evaluate", "metrics.json")):
        _check(folder, name, stages.get(stage, {}).get("outputs", {}).get(name))
    best = lam == BEST
    if best:
        if "evaluate" not in stages:
            raise ValueError(f"{folder}: not evaluated yet, so it has no best lambda; give a number, or finish the run")
        lam = float(read_json(folder / "metrics.json")["best_lambda"])
    refitted = best and REFIT in stages
    if refitted:
        lam = float(read_json(folder / REFIT / "metrics.json")["lambda"])
    within = refit or (folder / REFIT if refitted else folder)
    for output, checksum in stages[REFIT].get("outputs", {}).items() if refitted else ():
        _check(folder, output, checksum)
    stored = model_at(within / "path.zarr", float(lam), as_solved=best or refit is not None)
    features = _features(folder, stages)
    meta = {name: value for name, value in features.meta.items() if name not in ("files", "format_version")}
    file = within / "verify.json"
    verdict = verdict_in(read_json(file), file) if "verify" in stages else None
    certificate = {
        "gap": stored.gap,
        "eps": float(stored.attrs["eps"]),
        "relative": bool(stored.attrs["relative"]),
        "certainty": stored.attrs["certainty"] if verdict is None else verdict.sense,
        "verified": verdict is not None,
        "certified": verdict is not None and verdict.at_lambda(float(lam), stored.gap, stored.allowed).certified,
        "checked": CHECKED,
    }
    outputs = dict(stages[REFIT if refitted else "solve"].get("outputs", {}))
    if refit is not None:
        outputs[REFIT] = tree_checksum(refit / "path.zarr")
    origin = {
        "run": manifest["name"],
        "key": manifest["key"],
        "digest": _digest(outputs, features.meta["files"]),
        "asked": BEST if best else float(lam),
        "rule": stored.attrs["rule"],
        "versions": versions(),
    }
    check_features(meta, stored.weights.size, features.path / "meta.json")
    model = Model(
        float(lam),
        stored.weights,
        certificate,
        meta,
        features.shared(),
        origin,
        source=str(features.path / "meta.json"),
    )
    return allowing(model, trust=trust, oracle=oracle)


def _digest(solved: Facts, files: Facts) -> str:
    """Of what the solve left and of the features, by their checksums."""
    return hashlib.sha256(json.dumps([dict(solved), dict(files)], sort_keys=True).encode()).hexdigest()


def _check(run: Location, name: str, checksum: str | None) -> None:
    """Raise DamagedError unless an output of a run has the checksum that its manifest gives; None: there is no output."""
    if checksum is None:
        return
    if output_checksum(run, name) != checksum:
        raise DamagedError(
            f"{run / name}: changed since the run wrote it; repeat the command of the run, which makes it again"
        )


def features_of_run(run: str | Location) -> Features:
    """The features of a run; FileNotFoundError if they are gone."""
    folder = location(run)
    return _features(folder, unsealed(read_json(folder / "manifest.json"), folder / "manifest.json")["stages"])


def example_of(run: str | Location) -> Any:
    """One raw input of a run's test split; None if its features do not keep any."""
    features = features_of_run(run)
    try:
        new = reader_of(features.meta["dataset"]).stored_input(features.arrays("test"), features.meta)
    except KeyError as error:
        raise DamagedError(f"{features.path}: its arrays do not fit {features.meta['dataset']}: no {error}") from error
    return None if new is None else new.example


def _features(run: Location, stages: Facts) -> Features:
    """The features of a run; FileNotFoundError if they are gone."""
    features = features_of(run, stages["featurize"])
    if features is None:
        raise FileNotFoundError(
            f"{stages['featurize']['path']}: the features of {run} are gone; repeat the command of the run with "
            "run.until=featurize, which makes them again"
        )
    return features
