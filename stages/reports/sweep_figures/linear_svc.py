"""Multiclass solutions beside LIBLINEAR's: `linear_svc.md`, a table, and no picture.

scikit-learn's LinearSVC(multi_class="crammer_singer", fit_intercept=False) minimises n C times our objective where
lambda = 1 / (n C) and all costs are 1 (`stages.problems.multiclass`). It is trained here, once for each lambda, on the
features of the runs with tol=1e-6, and its objective is compared with the certified ones. LinearSVC certifies nothing.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from gapwise.stages.reports.curves import Runs
from gapwise.stages.reports.stored import read_numbers
from gapwise.stages.reports.tables import markdown, write_csv
from gapwise.storage.backend import Location
from gapwise.storage.features import features_of
from gapwise.storage.files import aside, publish, read_json

TOL = 1e-6
Row = dict[str, Any]


def make(runs: Runs, folder: Location) -> dict[str, Any]:
    table = [row for _, row in sorted(_rows(runs).items())]
    text = _lines(table)
    aside(folder / "linear_svc.md").write_text("\n".join(text) + "\n", encoding="utf-8")
    publish(folder / "linear_svc.md")
    write_csv(folder / "linear_svc.csv", table)
    return {"figures": [], "table": table, "text": text}


def objective(x: np.ndarray, truth: np.ndarray, w: np.ndarray, lam: float) -> float:
    """P(w) of Crammer and Singer with all costs 1; x (n, D), truth (n,), w (K, D)."""
    scores, rows = x @ w.T, np.arange(len(x))
    margins = 1.0 + scores - scores[rows, truth][:, None]
    margins[rows, truth] = 0.0
    return 0.5 * lam * float(np.sum(w * w)) + float(np.mean(margins.max(axis=1)))


def linear_svc(x: np.ndarray, truth: np.ndarray, lam: float, tol: float) -> tuple[float, np.ndarray]:
    """(CPU seconds, weights (K, D)) of LinearSVC; x (n, D) float64, truth (n,) with every class in it."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.svm import LinearSVC

    C, most = 1.0 / (len(x) * lam), 1_000_000
    svm = LinearSVC(multi_class="crammer_singer", fit_intercept=False, C=C, tol=tol, max_iter=most, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        begun = time.process_time()
        svm.fit(x, truth)
        return time.process_time() - begun, svm.coef_


def _rows(runs: Runs) -> dict[tuple[Any, ...], Row]:
    """One row per run, by falling lambda and tolerance."""
    trained: dict[tuple[str, float], tuple[float, float]] = {}
    found: dict[tuple[Any, ...], Row] = {}
    for number, (variant, lam, seed, place) in enumerate(runs):
        arrays, attrs = read_numbers(place)
        value, eps = float(arrays["lambda"][-1]), float(attrs["eps"])
        facts = read_json(place / "manifest.json")["stages"]["featurize"]
        if (facts["key"], value) not in trained:
            trained[facts["key"], value] = _trained(place, facts, value)
        seconds, theirs = trained[facts["key"], value]
        ours = float(arrays["primal"][-1])
        found[-value, -eps, number] = {
            "variant": variant, "lambda": lam or f"{value:g}", "value": value, "seed": seed, "tolerance": eps,
            "primal": ours, "gap": float(arrays["gap"][-1]), "seconds": float(np.sum(arrays["seconds"])),
            "linear_svc": theirs, "linear_svc_seconds": seconds, "apart": (ours - theirs) / theirs,
        }  # fmt: skip
    return found


def _trained(place: Location, facts: Row, lam: float) -> tuple[float, float]:
    """(CPU seconds, objective) of LinearSVC on the features of a run."""
    features = features_of(place, facts)
    if features is None:
        raise FileNotFoundError(
            f"{facts['path']}: the features of {place} are gone; run.stage=featurize makes them again"
        )
    if features.meta["structure"] != "multiclass":
        raise ValueError(f"sweep.figure=linear_svc: is for the structure multiclass, not {features.meta['structure']}")
    arrays = features.arrays("train")
    x, truth = np.asarray(arrays["x"], np.float64), np.asarray(arrays["labels"])
    seconds, w = linear_svc(x, truth, lam, TOL)
    return seconds, objective(x, truth, w, lam)


def _lines(table: Sequence[Row]) -> list[str]:
    cells = [["λ", "solver", "(P − D)/D ≤", "P", "gap", "seconds", f"LinearSVC, tol {TOL:g}", "CPU s", "(P − its)/its"]]
    for row in table:
        cells.append([
            row["lambda"], row["variant"], f"{row['tolerance']:g}", f"{row['primal']:.9g}", f"{row['gap']:.1e}",
            f"{row['seconds']:.2f}", f"{row['linear_svc']:.9g}", f"{row['linear_svc_seconds']:.1f}", f"{row['apart']:.1e}",
        ])  # fmt: skip
    return markdown(cells)
