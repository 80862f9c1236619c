"""Models that leave home: the weights of one lambda with all that it takes to predict, from a run or from a folder.

save_model("runs/…", "best", "chunker")
model = load_model("chunker")
model.predict("He PRP\\nreckons VBZ\\n").named(0)
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from gapwise.stages.calibration import Calibration
from gapwise.stages.calibration import read as read_calibration
from gapwise.stages.confidence import n_best_of, refuse_without_lists, refuse_without_margins, scores_of
from gapwise.stages.datasets import FeatureMap, MapBlocks, tell_known
from gapwise.stages.datasets.arrays.rows import Label
from gapwise.stages.datasets.inputs import label_names, stored_input
from gapwise.stages.datasets.inputs.own_class import code_of, with_code
from gapwise.stages.model_facts import check_features, check_model, fitting
from gapwise.stages.named_weights import Feature, NamedWeights, Transition, named_weights
from gapwise.stages.prediction import Prediction
from gapwise.stages.problems import build, capabilities
from gapwise.stages.problems.trust import only
from gapwise.stages.verdict import verdict_in
from gapwise.storage.backend import DamagedError, Location, location
from gapwise.storage.features import Features, features_of
from gapwise.storage.files import read_json, tree_checksum
from gapwise.storage.format import MEASURES, check_format
from gapwise.storage.integrity import unsealed
from gapwise.storage.layout import CELLS, open_group
from gapwise.storage.mixture import model_at
from gapwise.storage.models import is_model, read_model, write_model
from gapwise.storage.results import read_path, weights_of
from gapwise.storage.served import REFIT

if TYPE_CHECKING:
    from gapwise.stages.explain import Explanation

BEST = "best"
"""The lambda that the run's evaluation chose; the model of all training blocks, if the run has made it."""
CHECKED = (
    "the weights are the mixture of solved weights that the certificate is about, computed by separate code and read again "
    "after they were written; without data at hand, no gap was recomputed"
)
"""What `certificate` says was checked of a run's model."""
NUMBERS = ("lambda", "lambda_low", "gap", "dual", "hinge", "norm2")
"""Arrays of path.zarr that say, beside its cells, which weights a lambda has."""
log = logging.getLogger("gapwise")
VERSIONS = ("gapwise", "numpy", "scipy", "numba", "scikit-image", "opencv-python-headless")


@dataclass(frozen=True)
class Model:
    """Weights at one lambda, and the feature map they belong to.

    Attributes
    ----------
    lambda_ : float
    weights : float64 array, shape (d,)
    certificate : dict
        ``gap`` at this lambda if it was solved itself, else None; ``eps``, which the gap of a certified lambda is at most
        (times the primal value if ``relative``); ``certainty``: exact, upper-bounded or estimate; ``verified``: whether
        independent code has recomputed the certificates of the run; ``certified``: whether this lambda has one; ``checked``:
        what was compared when the model was written (`CHECKED`), or nothing.
    meta : dict
        Facts of the features: ``dataset``, ``structure``, ``d``, names of labels.
    shared : dict
        Arrays of the feature map: vocabularies, codebooks.
    origin : dict
        Name, key and `digest` of the run, the lambda that was asked for, and the versions of what made it.
    allowed : frozenset of str, optional
        Code of one's own that `predict` may run, ``module:Class`` or a command; None: whatever the files name.
    calibration : Calibration, optional
        Turns margins into probabilities, if it was asked for.
    place : str
        The file that says all this, for messages.
    """

    lambda_: float
    weights: np.ndarray = field(repr=False)
    certificate: dict[str, Any]
    meta: dict[str, Any] = field(repr=False)
    shared: dict[str, np.ndarray] = field(repr=False)
    origin: dict[str, Any] = field(repr=False)
    allowed: frozenset[str] | None = field(default=frozenset(), repr=False)
    place: str = field(default="model", repr=False)
    calibration: Calibration | None = field(default=None, repr=False)

    @property
    def code(self) -> str | None:
        """The user's own class or command that made the features, and that predicting runs; None if it takes none."""
        return code_of(self.meta)

    @property
    def labels(self) -> list[str]:
        """Names of the labels; empty if they are only numbers."""
        return label_names(self.meta)

    @cached_property
    def feature_map(self) -> FeatureMap:
        """The feature map of the training data."""
        return FeatureMap(self.meta, self.shared)

    @property
    def named_weights(self) -> NamedWeights:
        """The weights of a chain with the names of attributes and labels; ValueError for other structures."""
        return named_weights(self.meta, self.shared, self.weights)

    def top_features(self, label: Label, k: int = 10, *, against: bool = False) -> list[Feature]:
        """The `k` attributes that speak most for a label of a chain, or against it (`NamedWeights.top_features`)."""
        return self.named_weights.top_features(label, k, against=against)

    def transitions(self) -> list[Transition]:
        """All pairs of neighbouring labels of a chain, by falling weight."""
        return self.named_weights.transitions()

    def explain(self, raw: Any, block: int = 0, entry: int = 0, rival: Label | None = None) -> Explanation:
        """What spoke for the label of one entry of new inputs, and against it: `explain.explain`, with `predict`'s inputs.

        `block`: number of the sequence or example, from 0; `entry`: that of the token. `rival`: the label to compare with.
        """
        from gapwise.stages.explain import explain, names_of

        names = names_of(self.meta, self.shared, self.weights)
        with fitting(self.place), contextlib.nullcontext() if self.allowed is None else only(self.allowed):
            encoded = self.feature_map.encode(raw)
            problem = build(encoded.structure, encoded.arrays, encoded.meta)
            return explain(problem, self.weights, names, block, entry, rival)

    def predict(
        self, raw: Any, map_blocks: MapBlocks | None = None, *, margins: bool = False, n_best: int | None = None
    ) -> Prediction:
        """Labels of new inputs, in the form that the reader of the data set documents for its encoder.

        With `margins` also `Prediction.margins`, and `probabilities` if the model is calibrated; with `n_best` also the best
        labellings of each block, `Prediction.n_best`.

        Attributes that do not occur in training count for nothing: `Prediction.known` says how many do, and if none does, a
        warning says so. A label in the input is ignored. A model that an estimator saved takes what its `predict` takes.

        Raises
        ------
        DataError
            If the input cannot be used; says where.
        UntrustedError
            If it takes code that only the model's files name; `load_model` says how to allow it.
        ValueError
            If the structure has no margins, or does not list its best labellings.
        """
        structure = str(self.meta["structure"])
        if margins:
            refuse_without_margins(structure)
        if n_best is not None:
            refuse_without_lists(structure, n_best)
        with fitting(self.place), contextlib.nullcontext() if self.allowed is None else only(self.allowed):
            return self._predict(raw, map_blocks, margins, n_best)

    def _predict(self, raw: Any, map_blocks: MapBlocks | None, margins: bool, n_best: int | None) -> Prediction:
        encoded = self.feature_map.encode(raw, map_blocks)
        decoded = capabilities(encoded.structure).decoded
        known_margins, listed = None, None
        if decoded is not None:
            labels, label_ptr = decoded(encoded.arrays, encoded.meta, self.weights)
        else:
            from gapwise.stages.predict import predict

            problem = build(encoded.structure, encoded.arrays, encoded.meta)
            label_ptr = problem.label_ptr
            if margins:
                labels, known_margins, _ = scores_of(problem, self.weights)
            else:
                labels, _ = predict(problem, self.weights)
            if n_best is not None:
                listed = n_best_of(problem, self.weights, int(n_best))
        tell_known(encoded.known)
        integers = bool(self.meta.get("integers"))
        return Prediction(
            labels,
            label_ptr,
            self.labels,
            encoded.arrays,
            encoded.known,
            integers,
            known_margins,
            self.calibration,
            listed,
        )

    @property
    def facts(self) -> dict[str, Any]:
        """All but the arrays, JSON-able."""
        fitted = {} if self.calibration is None else {"calibration": self.calibration.facts}
        return {
            "dataset": self.meta["dataset"],
            "structure": self.meta["structure"],
            "lambda": self.lambda_,
            "labels": self.labels,
            "certificate": self.certificate,
            "origin": self.origin,
            "features": self.meta,
            **fitted,
        }

    def save(self, folder: str | Location) -> None:
        """Write the model into a folder of its own; `storage.models.write_model` says what it refuses."""
        write_model(location(folder), self.facts, self.weights, self.shared)


def load_model(
    folder: str | Location, *, trust: bool = False, oracle: str | type | None = None, run: str | Location | None = None
) -> Model:
    """The model in a folder, given as a path or URL; needs neither its run nor raw data, writes nothing and runs nothing.

    Parameters
    ----------
    trust : bool
        Whether predicting may run the class or program of the user's own that the folder names, if it names any.
    oracle : str or type, optional
        The class, ``module:Class``, or the command to predict with instead of the one that the folder names.
    run : str or Location, optional
        The run that the model was exported from: ValueError if the model is not what the run gives.

    Raises
    ------
    FileNotFoundError
        If there is none.
    ValueError
        If it is damaged, or another version of Gapwise wrote it; says which file.
    """
    where = location(folder)
    facts, weights, shared = read_model(where)
    check_model(facts, weights.size, where / "model.json")
    found = Model(
        float(facts["lambda"]), weights, facts["certificate"], dict(facts["features"]), shared, facts["origin"],
        place=str(where / "model.json"), calibration=read_calibration(facts.get("calibration"), where / "model.json"),
    )  # fmt: skip
    if run is not None:
        compare(found, location(run), where)
    return _allowing(found, trust, oracle)


def _allowing(model: Model, trust: bool, oracle: str | type | None) -> Model:
    """`model` with the code of one's own that the user allows, or with his own in its place."""
    if oracle is not None:
        name = oracle if isinstance(oracle, str) else f"{oracle.__module__}:{oracle.__qualname__}"
        return replace(model, meta=with_code(model.meta, name), allowed=frozenset([name]))
    return replace(model, allowed=None if trust else frozenset())


def compare(model: Model, run: Location, where: Location) -> None:
    """Raise DamagedError unless the model at `where` is what the run gives; a run that has changed since is only logged."""
    asked = model.origin.get("asked")
    try:
        theirs = model_of(run, BEST if asked == BEST else model.lambda_)
    except (ValueError, OSError) as error:
        log.warning("%s: not compared with its run: %s", where, error)
        return
    if theirs.origin["digest"] != model.origin.get("digest"):
        log.warning(
            "%s: not compared with its run: %s has changed since, or is another one; export it again", where, run
        )
        return
    same = {
        "lambda": theirs.lambda_ == model.lambda_,
        "weights": np.array_equal(theirs.weights, model.weights),
        "certificate": theirs.certificate == model.certificate,
        "features": json.loads(json.dumps(theirs.meta)) == model.meta
        and theirs.shared.keys() == model.shared.keys()
        and all(np.array_equal(array, model.shared[name]) for name, array in theirs.shared.items()),
    }
    for name, is_same in same.items():
        if not is_same:
            raise DamagedError(f"{where}: its {name} is not what {run} gives; it was changed, export it again")


def save_model(run: str | Location, lam: float | str, folder: str | Location) -> Model:
    """Write the model of a run at `lam`, a number or "best", into `folder`; returns it."""
    model = model_of(run, lam)
    model.save(folder)
    return model


def open_model(where: str | Location, lam: float | str | None = None, *, trust: bool = False) -> Model:
    """The model in a folder, or that of a run at `lam` (None: the best); ValueError if a model has another lambda."""
    place = location(where)
    if not is_model(place):
        return model_of(place, BEST if lam is None else lam, trust=trust)
    found = load_model(place, trust=trust)
    if lam not in (None, BEST, found.lambda_):
        raise ValueError(f"{place}: a model of lambda {found.lambda_:g} only; give the run for lambda {lam:g}")
    return found


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
    CertificateError
        If the weights are not those that the path certifies at `lam`.
    """
    place = location(run)
    if not (place / "manifest.json").is_file():
        raise FileNotFoundError(f"{place}: neither a run (it has no manifest.json) nor a model (no model.json)")
    manifest = unsealed(read_json(place / "manifest.json"), place / "manifest.json")
    check_format(manifest, place / "manifest.json")
    stages = manifest["stages"]
    if "solve" not in stages:
        raise FileNotFoundError(
            f"{place}: the run is not solved yet; repeat its command, which goes on where it stopped"
        )
    for stage, name in (("solve", "path.zarr"), ("verify", "verify.json"), ("evaluate", "metrics.json")):
        _check(place, name, stages.get(stage, {}).get("outputs", {}).get(name))
    best = lam == BEST
    if best:
        if "evaluate" not in stages:
            raise ValueError(f"{place}: not evaluated yet, so it has no best lambda; give a number, or finish the run")
        lam = float(read_json(place / "metrics.json")["best_lambda"])
    refitted = best and REFIT in stages
    if refitted:
        lam = float(read_json(place / REFIT / "metrics.json")["lambda"])
    within = refit or (place / REFIT if refitted else place)
    for output, checksum in stages[REFIT].get("outputs", {}).items() if refitted else ():
        _check(place, output, checksum)
    found = model_at(within / "path.zarr", float(lam), as_solved=best or refit is not None)
    check_weights(within / "path.zarr", float(lam), found.weights, as_solved=best or refit is not None)
    features = _features(place, stages)
    meta = {name: value for name, value in features.meta.items() if name not in ("files", "format_version")}
    file = within / "verify.json"
    verdict = verdict_in(read_json(file), file) if "verify" in stages else None
    certificate = {
        "gap": found.gap,
        "eps": float(found.attrs["eps"]),
        "relative": bool(found.attrs["relative"]),
        "certainty": found.attrs["certainty"] if verdict is None else verdict.sense,
        "verified": verdict is not None,
        "certified": verdict is not None and verdict.at_lambda(float(lam), found.gap, found.allowed).certified,
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
        "rule": found.attrs["rule"],
        "versions": versions(),
    }
    check_features(meta, found.weights.size, features.path / "meta.json")
    model = Model(
        float(lam), found.weights, certificate, meta, features.shared(), origin, place=str(features.path / "meta.json")
    )
    return _allowing(model, trust=trust, oracle=oracle)


def check_weights(path: Location, lam: float, weights: np.ndarray, *, as_solved: bool = False) -> None:
    """Raise CertificateError unless `weights` are the mixture that verify takes the certificate at lambda to be about.

    `as_solved`: at a breakpoint the weights stored there are meant, certified or not.
    """
    from gapwise.stages.certify.audit import (
        CertificateError,
        verifier,
    )  # loads the compiler, which load_model needs not
    from gapwise.stages.certify.served import difference, in_words, known, mixture

    stored = set(open_group(path))
    arrays, attrs = read_path(path, (*NUMBERS, *(spec.name for spec in CELLS if spec.name in stored)))
    here = np.flatnonzero(arrays["lambda"] == lam)
    shares = {int(here[0]): 1.0} if as_solved and here.size else verifier(attrs["rule"]).shares(arrays, attrs, lam)
    expected = known(shares, arrays["lambda"].size)
    fault = "they are given out all the same"
    if expected is not None:
        fault = difference(weights, mixture(expected, weights_of(path), weights.size))
    if fault:
        raise CertificateError(f"{path}: the weights at lambda {lam:.9g} should be {in_words(expected)}, but {fault}")


def _digest(solved: Mapping[str, Any], files: Mapping[str, Any]) -> str:
    """Of what the solve left and of the features, by their checksums."""
    return hashlib.sha256(json.dumps([dict(solved), dict(files)], sort_keys=True).encode()).hexdigest()


def _check(run: Location, name: str, checksum: str | None) -> None:
    """Raise DamagedError unless an output of a run has the checksum that its manifest gives; None: there is no output."""
    if checksum is None:
        return
    path = run / name
    if path.is_dir():
        found = tree_checksum(path, without=MEASURES)
    else:
        found = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
    if found != checksum:
        raise DamagedError(
            f"{path}: changed since the run wrote it; repeat the command of the run, which makes it again"
        )


def features_of_run(run: str | Location) -> Features:
    """The features of a run; FileNotFoundError if they are gone."""
    place = location(run)
    return _features(place, unsealed(read_json(place / "manifest.json"), place / "manifest.json")["stages"])


def example_of(run: str | Location) -> Any:
    """One raw input of a run's test split; None if its features do not keep any."""
    features = features_of_run(run)
    try:
        new = stored_input(features.meta, features.arrays("test"))
    except KeyError as error:
        raise DamagedError(
            f"{features.path}: its arrays are not those of {features.meta['dataset']}: no {error}"
        ) from error
    return None if new is None else new.example


def _features(run: Location, stages: Mapping[str, Any]) -> Features:
    """The features of a run; FileNotFoundError if they are gone."""
    found = features_of(run, stages["featurize"])
    if found is None:
        raise FileNotFoundError(
            f"{stages['featurize']['path']}: the features of {run} are gone; repeat the command of the run with "
            "run.stage=featurize, which makes them again"
        )
    return found


def versions() -> dict[str, str]:
    """Versions of the packages that a model's numbers rest on, as far as they are installed."""
    from importlib.metadata import PackageNotFoundError, version

    found = {}
    for name in VERSIONS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
