"""Cross-validation: one loss a fold at every lambda of a common grid, from the folds' whole paths, and the choice of lambda.

Every fold has a path of its own, with breakpoints of its own; each certifies a model at every lambda, so that losses of all
folds can be compared at the same lambdas. The standard error of their mean is that over folds. Lambda is chosen on them, and
the loss that the path of all training data has there on the test blocks, which had no say, is the estimate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from gapwise.records import Facts, Record
from gapwise.stages.choice.criteria import Criterion, criterion_of
from gapwise.stages.choice.grid import common_grid, end_of
from gapwise.stages.choice.held_out import Held, of_each
from gapwise.stages.choice.rules import LOSS, PICKS, Edge, picked_in_words, selected, standard_error
from gapwise.stages.problems.held_out import VALIDATION
from gapwise.storage.backend import DamagedError, Location
from gapwise.storage.features import open_features
from gapwise.storage.files import read_json, write_json
from gapwise.storage.paths import open_path

FOLDS_OF = {LOSS: "fold_losses"}
"""What a result calls the values of the folds; else fold_ and the name of the criterion."""


@dataclass(frozen=True)
class FinishedRun:
    """A run and the features it was solved on."""

    key: str
    run: Location
    features: Location


def values_at(
    done: FinishedRun,
    split: str,
    lams: np.ndarray,
    by: Criterion,
    report: Callable[[int, int], None] = lambda done, total: None,
) -> np.ndarray:
    """What `Held.values` says, (lambdas, columns), of the models that the run's path certifies at `lams`."""
    held, path = Held.stored(done.features, split), open_path(done.run)
    models = (path.weights_at(lam).values for lam in lams.tolist())
    return of_each(models, lambda w: held.values(w, by), lambda count: report(count, lams.size))


def fold_means(
    done: FinishedRun, lams: np.ndarray, by: Criterion, file: Location, report: Callable[[int, int], None]
) -> list[float]:
    """The criterion on a fold's validation blocks at every lambda; stored in `file`, so that it is computed once."""
    asked, name = {"key": done.key, "lambda": lams.tolist()}, f"validation_{by.name}"
    try:
        means_of = read_json(file) if file.is_file() else {}
    except DamagedError:
        means_of = {}
    known = isinstance(means_of, dict) and {name: means_of.get(name) for name in asked} == asked and name in means_of
    if not isinstance(means_of, dict) or not known:
        means_of = {**asked, name: values_at(done, VALIDATION, lams, by, report).mean(axis=1).tolist()}
        write_json(file, means_of)
    return list(means_of[name])


def cross_validated(
    folds: Sequence[FinishedRun],
    whole: FinishedRun,
    folder: Location,
    report: Callable[[int, int, str], None] = lambda done, total, task: None,
    criterion: str = LOSS,
    pick: str = PICKS[0],
) -> Record:
    """Choose lambda on `folds`, by a rule of `choice.PICKS`, and measure the path of `whole`, of all training blocks, there.

    Returns
    -------
    dict
        JSON-able: ``lambda``, ``validation_loss``, ``standard_error`` (lambdas,), ``fold_losses`` (folds, lambdas);
        best_edge (`choice.Edge`), if there is one; best_lambda, which `pick` picks, and one_se_lambda with the mean loss and
        its standard error there; the test loss of `whole` at both, each with its standard error over test blocks;
        least_lambda, if the best mean lies elsewhere. With another criterion its name takes the place of the loss, as in
        ``validation_chunk_f1``, and there is its test value, too.
    """
    paths = [open_path(done.run) for done in (*folds, whole)]
    lams = common_grid(paths)
    by = criterion_of("criterion", criterion, open_features(whole.features).meta["structure"])

    def values_of(k: int, fold: FinishedRun) -> list[float]:
        return fold_means(fold, lams, by, folder / f"fold-{k}.json", lambda row, rows: report(row, rows, f"fold {k}"))

    values = np.array([values_of(k, fold) for k, fold in enumerate(folds)])
    means = values.mean(axis=0)
    errors = np.array([standard_error(column) for column in values.T])
    chosen = selected(pick, lams, by.losses(means), errors, end_of(paths))
    best, simple = chosen.picked, chosen.one_se
    assert simple is not None  # means of folds have standard errors
    test = values_at(whole, "test", lams[[best, simple]], Criterion())
    measured = {}
    if not by.is_loss:
        both = values_at(whole, "test", lams[[best, simple]], by)[:, 0].tolist()
        measured = {
            "criterion": by.name,
            **dict(zip((f"best_test_{by.name}", f"one_se_test_{by.name}"), both, strict=True)),
        }
    return {
        **chosen.record(lams),
        "folds": len(folds),
        "lambda": lams.tolist(),
        f"validation_{by.name}": means.tolist(),
        "standard_error": errors.tolist(),
        FOLDS_OF.get(by.name, f"fold_{by.name}"): values.tolist(),
        **measured,
        **_at("best", by, lams, means, errors, best, test[0]),
        **_at("one_se", by, lams, means, errors, simple, test[1]),
        "run": str(whole.run),
        "fold_runs": [str(done.run) for done in folds],
    }


def _at(
    name: str, by: Criterion, lams: np.ndarray, means: np.ndarray, errors: np.ndarray, row: int, test: np.ndarray
) -> dict[str, float]:
    return {
        f"{name}_lambda": float(lams[row]),
        f"{name}_validation_{by.name}": float(means[row]),
        f"{name}_standard_error": float(errors[row]),
        f"{name}_test_loss": float(np.mean(test)),
        f"{name}_test_standard_error": standard_error(test),
    }


def columns_of(chosen: Facts) -> tuple[str, np.ndarray, np.ndarray]:
    """The name of the criterion in a result, its means (lambdas,), and its values (folds, lambdas)."""
    name = chosen.get("criterion", LOSS)
    return name, np.array(chosen[f"validation_{name}"]), np.array(chosen[FOLDS_OF.get(name, f"fold_{name}")])


def table(chosen: Facts) -> list[dict[str, float]]:
    """One row a lambda: the mean criterion on validation blocks, its standard error, and every fold's value."""
    name, means, values = columns_of(chosen)
    return [
        {
            "lambda": chosen["lambda"][j],
            f"validation_{name}": means[j],
            "standard_error": chosen["standard_error"][j],
            **{f"fold_{k}": own[j] for k, own in enumerate(values)},
        }
        for j in range(len(chosen["lambda"]))
    ]


def lines(chosen: Facts) -> list[str]:
    """What a person reads first."""
    by = Criterion(chosen.get("criterion", LOSS))

    def value(name: str, quantity: str) -> str:
        error = chosen[f"{name}_{'test_standard_error' if quantity == 'test_loss' else 'standard_error'}"]
        return f"{chosen[f'{name}_{quantity}']:.3g} ± {error:.2g}"

    out = []
    for head, name, why in (
        ("best", "best", picked_in_words(chosen, f"mean {by.words} of {chosen['folds']} folds")),
        ("simpler", "one_se", "the largest within one standard error"),
    ):
        where = f"λ {chosen[f'{name}_lambda']:.3g} ({why}: {value(name, f'validation_{by.name}')})"
        there = f"test loss there {value(name, 'test_loss')}"
        if not by.is_loss:
            there += f", {by.words} {chosen[f'{name}_test_{by.name}']:.3g}"
        out.append(f"{head:>8}  {where} · {there}")
    if "best_edge" in chosen:
        out.append(f"{'':>8}  the best λ lies {Edge(chosen['best_edge']).words}")
    return [*out, f"{'model':>8}  gapwise export {chosen['run']} --lambda {chosen['best_lambda']:.6g} -o model"]
