"""Evaluate: task loss and the structure's own measures at every lambda, on training, test and, if any, validation blocks.

The best lambda is picked here: summaries, reports, refits and exports read it. Validation blocks pick it, by the loss or
another criterion, and the test loss there is an estimate of what new data will show. Without them it is the lambda of the
best test value: the best in hindsight.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import count

import numpy as np

from gapwise.records import Record
from gapwise.stages.choice.criteria import criterion_of
from gapwise.stages.choice.grid import different_models, end_of, in_between
from gapwise.stages.choice.rules import LOSS, PICKS, selected, standard_error
from gapwise.stages.model.measures import measured, nothing_learnt
from gapwise.stages.model.predict import predict
from gapwise.stages.model.predictions import write_predictions
from gapwise.stages.problems import build
from gapwise.stages.problems.held_out import VALIDATION
from gapwise.stages.problems.parallel import HERE, Spread
from gapwise.stages.problems.protocol import Problem
from gapwise.storage.backend import Location
from gapwise.storage.features import open_features
from gapwise.storage.files import write_json
from gapwise.storage.mixture import read_mixture, weights_at
from gapwise.storage.results import add_losses, weights_of

SPLITS = ("train", "test", VALIDATION)
ERROR = f"{VALIDATION}_standard_error"
"""Name of the standard error, over blocks, of the mean validation loss."""


def evaluate(
    features: Location,
    run_dir: Location,
    *,
    train_between: bool = False,
    criterion: str = LOSS,
    pick: str = PICKS[0],
    spread: Spread = HERE,
    report: Callable[[int, int, str], None] = lambda done, total, task: None,
) -> Record:
    """Measure every breakpoint; writes train_loss, test_loss, ... into ``path.zarr`` and ``metrics.json``, with validation
    blocks also validation_loss and validation_standard_error.

    Labels of the test split at the best lambda are kept in ``predictions.npz``, and for people in ``predictions/``.

    If the model also changes between breakpoints (a two-sided path), BETWEEN lambdas of each interval are measured as well,
    and all lambdas together are written as evaluated_lambda, evaluated_train_loss, ... Each different model is decoded once.

    Parameters
    ----------
    train_between : bool
        Whether training blocks are decoded between breakpoints, too. Without it, measures on them are NaN there, except at
        the best lambda: there are often four times as many training blocks as others, and no choice rests on them.
    criterion : str
        What lambda is chosen by: the loss, or a measure of the structure (`criteria`).
    pick : str
        The rule of `choice.PICKS` by which values on the validation split pick lambda. Only the loss has a standard error
        over blocks, which "one_se" needs.

    Returns
    -------
    dict
        The `evaluate` part of ``result.json``: best_lambda (picked on the validation split, or best on the test split if
        there is none; the larger lambda on ties), its losses, and the structure's measures there; criterion, if it is not
        the loss; also the loss of labelling everything 0, and of the most frequent training label; best_edge, "low", "end"
        or "high", if that lambda is the last on this side (`choice.Edge`). With a validation split also picked_by,
        validation_blocks and hindsight_lambda, the best on the test split; least_lambda, if the best validation value lies
        elsewhere; and one_se_lambda with its losses, if the loss is the criterion.

    Raises
    ------
    ValueError
        If all values to choose by are NaN, or "one_se" is to pick by another criterion than the loss.
    """
    store = open_features(features)
    name = store.meta["structure"]
    splits = [split for split in SPLITS if split != VALIDATION or store.has(split)]
    arrays = {split: store.arrays(split) for split in splits}
    problems = {split: build(name, arrays[split], store.meta) for split in splits}
    mixture = read_mixture(run_dir / "path.zarr")
    path, between = mixture.arrays, in_between(mixture)
    weights, model = weights_of(run_dir / "path.zarr"), weights_at(run_dir / "path.zarr")
    solved = path["lambda"].size
    lams = np.append(path["lambda"], between)
    total = lams.size
    first, of_row = different_models(mixture, between)
    measures: list[dict[str, float]] = [{} for _ in range(first.size)]
    done = count(1)

    def weights_of_row(k: int) -> np.ndarray:
        return weights(k) if k < solved else model(float(lams[k]))

    def measure_split(m: int, w: np.ndarray, split: str, inner: Spread) -> None:
        _, losses, values = measured(problems[split], arrays[split], store.meta, w, split, inner)
        measures[m] |= values
        if split == VALIDATION:
            measures[m][ERROR] = standard_error(losses)

    def measure_model(m: int, inner: Spread) -> None:
        w = weights_of_row(int(first[m]))
        for split in splits:
            if split != "train" or first[m] < solved or train_between:
                measure_split(m, w, split, inner)
        report(next(done), first.size, "evaluate")

    spread.points(measure_model, first.size)
    order = np.argsort(-lams, kind="stable") if between.size else np.arange(total)
    columns = _columns(measures, of_row)
    by = criterion_of("criterion", criterion, name)
    chosen = hindsight = selected("least", lams, by.losses(columns[f"test_{by.name}"]), None, end_of([path]))
    of_choice: Record = {}
    if VALIDATION in splits:
        values, errors = by.losses(columns[f"{VALIDATION}_{by.name}"]), columns[ERROR] if by.is_loss else None
        chosen = selected(pick, lams, values, errors, end_of([path]))
        of_choice = {
            **chosen.record(lams),
            "picked_on": VALIDATION,
            "validation_blocks": problems[VALIDATION].n,
            **({} if chosen.one_se is None else _simplest(chosen.one_se, lams, columns)),
            "hindsight_lambda": float(lams[hindsight.picked]),
            f"hindsight_test_{by.name}": float(columns[f"test_{by.name}"][hindsight.picked]),
        }
    best = chosen.picked
    if "train_loss" not in measures[of_row[best]]:
        measure_split(int(of_row[best]), weights_of_row(best), "train", spread)
        columns = _columns(measures, of_row)
    add_losses(
        run_dir / "path.zarr",
        {key: values[:solved] for key, values in columns.items()},
        {key: values[order] for key, values in {"lambda": lams, **columns}.items()} if between.size else {},
    )
    labels, _ = predict(problems["test"], weights_of_row(best), spread, "test")
    write_predictions(run_dir, problems["test"], arrays["test"], store.meta, labels)
    result: Record = {
        "best_lambda": float(lams[best]),
        **({} if by.is_loss else {"criterion": by.name}),
        "best_breakpoint": best if best < solved else int(np.sum(path["lambda"] >= lams[best])) - 1,
        **{key: float(values[best]) for key, values in columns.items()},
        **nothing_learnt(problems["train"], problems["test"], arrays["test"], store.meta),
    }
    result |= of_choice or ({} if chosen.edge is None else {"best_edge": chosen.edge.value})
    write_json(run_dir / "metrics.json", result)
    return result


def _columns(measures: list[dict[str, float]], of_row: np.ndarray) -> dict[str, np.ndarray]:
    """Measures of the models as one float64 array (rows,) each; NaN where a model was not measured."""
    return {key: np.array([measures[m].get(key, math.nan) for m in of_row]) for key in measures[0]}


def _simplest(row: int, lams: np.ndarray, columns: dict[str, np.ndarray]) -> Record:
    """The one-standard-error choice and its losses."""
    losses = {f"one_se_{split}_loss": float(columns[f"{split}_loss"][row]) for split in (VALIDATION, "test")}
    return {"one_se_lambda": float(lams[row]), **losses}


def warm_up(problem: Problem) -> None:
    """Compile or load every function that evaluate calls."""
    predict(problem, np.zeros(problem.d))
