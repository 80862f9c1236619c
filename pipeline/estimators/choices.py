"""From an estimator's plain parameters to the options of the solver and of the path; errors name the parameter."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from typing import TypeAlias, TypeGuard

import numpy as np

from gapwise.stages.choice.rules import CHOOSING_EPS
from gapwise.stages.solver.options import MethodOptions, PathOptions

Lambdas: TypeAlias = float | str | Iterable[float]
"""Values of `lam`."""

Seed: TypeAlias = int | np.random.RandomState | None
"""Values of `random_state`."""

AUTO, PER_BLOCK, PATH = "auto", "1/n", "path"
"""Values of `lam` besides numbers: chosen on held-out blocks along a path; one over the number of blocks; the whole path."""
FEWEST = 10
"""Fewest blocks of which some can be held out to choose a lambda: two of them, by default."""

PRESETS = {True: "bcpfw_gap_cache", False: "accelerated"}
"""The preset of "auto": for a path, and for given lambdas."""
FEWEST_CALLS = "expensive_oracle"
"""The preset of "auto" where an oracle call is Python."""


def refuse(name: str, value: object, expected: str) -> ValueError:
    """The error of a parameter that cannot be used."""
    return ValueError(f"{name}: expected {expected}, got {value!r}")


def is_number(value: object) -> TypeGuard[float]:
    """Whether `value` is a real number, and no bool."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def solver_options(
    name: str, *, path: bool, max_passes: float | None, max_seconds: float | None, calls_python: bool = False
) -> MethodOptions:
    """Options of the preset `name` of ``conf/solver``; "auto": `accelerated` for given lambdas, else `bcpfw_gap_cache`.

    With `calls_python` "auto" is `expensive_oracle`, which takes the fewest oracle calls.

    Raises
    ------
    ValueError
        If there is no such preset, its method has no dual point and so no certificate, or a limit is no number > 0.
    """
    from gapwise.pipeline.config.presets import solver_preset, solver_presets

    limits: dict[str, float] = {}
    for key, value in (("max_passes", max_passes), ("max_seconds", max_seconds)):
        if value is not None:
            if not is_number(value) or not value > 0:
                raise refuse(key, value, "a number > 0, or None for no limit")
            limits[key] = float(value)
    known = solver_presets()
    own = FEWEST_CALLS if calls_python else PRESETS[path]
    asked = own if name == "auto" else name
    options = solver_preset(asked) if asked in known else None
    if options is None or not options.certifies:
        certified = [preset for preset in known if solver_preset(preset).certifies]
        raise refuse("solver", name, f"auto, {', '.join(certified)}")
    passes, seconds = limits.get("max_passes", options.max_passes), limits.get("max_seconds", options.max_seconds)
    options = dataclasses.replace(options, max_passes=passes, max_seconds=seconds)
    options.check()
    return options


def is_word(lam: object, word: str) -> bool:
    """Whether `lam` is this word."""
    return isinstance(lam, str) and lam == word


def asked_lambda(lam: Lambdas, validation: float | int | None, n: int) -> Lambdas:
    """What `lam` says for `n` blocks: "auto" is "1/n" if none of them can be held out; ValueError for unknown words."""
    if isinstance(lam, str) and lam not in (AUTO, PER_BLOCK, PATH):
        raise refuse("lam", lam, f"a number > 0, {AUTO!r}, {PER_BLOCK!r} or {PATH!r}")
    if not is_word(lam, AUTO):
        return lam
    if validation is None:
        raise refuse(
            "validation",
            validation,
            f"a share between 0 and 1 or a number of folds, as lam={AUTO!r} chooses on held-out blocks",
        )
    return lam if n >= FEWEST else PER_BLOCK


def path_options(lam: object, *, n: int, tolerance: float, eps: float | None) -> PathOptions:
    """Options of one lambda, a list of lambdas (a grid), or the path; ValueError names the parameter.

    Parameters
    ----------
    n : int
        Number of training blocks.
    tolerance : float
        On gap / dual at given lambdas.
    eps : float or None
        On the gap itself, and in place of `tolerance` if it is given.
    """
    if eps is not None and not (is_number(eps) and 0 < eps < math.inf):
        raise refuse("eps", eps, "a number > 0, or None")
    if not (is_number(tolerance) and 0 < tolerance < math.inf):
        raise refuse("tolerance", tolerance, "a number > 0")
    if is_word(lam, PATH):
        return PathOptions(eps=CHOOSING_EPS if eps is None else float(eps))
    goal = PathOptions(rule="single", tolerance=float(tolerance if eps is None else eps), relative=eps is None)
    if is_word(lam, PER_BLOCK):
        return dataclasses.replace(goal, lam=1.0 / n)
    if is_number(lam) and 0 < lam < math.inf:
        return dataclasses.replace(goal, lam=float(lam))
    if isinstance(lam, Iterable) and not isinstance(lam, str):
        lams = sorted((float(value) for value in lam), reverse=True)
        options = dataclasses.replace(goal, rule="grid", lambdas=lams)
        try:
            options.check()
        except ValueError as error:
            raise ValueError(f"lam: {error}") from error
        return options
    raise refuse("lam", lam, f"a number > 0, {PER_BLOCK!r} or {PATH!r}")


def seed_of(random_state: object) -> int:
    """The seed of a solve: an integer itself; None or a RandomState draws one."""
    if isinstance(random_state, int | np.integer) and not isinstance(random_state, bool) and random_state >= 0:
        return int(random_state)
    from sklearn.utils import check_random_state

    return int(check_random_state(random_state).randint(2**31 - 1))


def workers_of(n_jobs: int | None) -> int:
    """Number of threads, as scikit-learn counts: None is 1, -1 all cores, -2 all but one."""
    from gapwise.pipeline.config.run_options import default_workers

    if n_jobs is None:
        return 1
    if not is_number(n_jobs) or n_jobs == 0 or n_jobs != int(n_jobs):
        raise refuse("n_jobs", n_jobs, "a whole number other than 0, or None")
    return int(n_jobs) if n_jobs > 0 else max(1, default_workers() + 1 + int(n_jobs))
