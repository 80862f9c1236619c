"""From an estimator's plain parameters to the options of the solver and of the path; errors name the parameter."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Any

import numpy as np

from gapwise.stages.solver.methods import method_options
from gapwise.stages.solver.options import AccelerationOptions, CacheOptions, MethodOptions, PathOptions

PER_BLOCK, PATH = "1/n", "path"
"""Values of `lam` besides numbers: one over the number of blocks, and the whole path."""

FAMILY = re.compile(r"(bc[pab]?fw)(_permutation|_gap)?(_cache)?")
STEPS = {"bcfw": "fw", "bcpfw": "pairwise", "bcafw": "away", "bcbfw": "best"}
OTHERS: dict[str, dict[str, Any]] = {
    "accelerated": {"method": "accelerated"},
    "multiplane_half": {"method": "multiplane_half", "acceleration": AccelerationOptions(inner_target=0.5)},
    "eg": {"method": "eg"},
    "expensive_oracle": {"method": "accelerated_at_mean"},
    "fasole": {"method": "fasole"},
    "cutting_plane": {"method": "cutting_plane"},
    "cutting_plane_nslack": {"method": "cutting_plane_nslack"},
    "mpbcfw": {"method": "mpbcfw"},
    "mpbcpfw": {"method": "mpbcfw", "step": "pairwise"},
    "fw": {"method": "fw"},
    "fw_fixed_step": {"method": "fw", "line_search": False},
    "bcfw_nols": {"method": "bcfw_nols"},
}
"""Presets outside the family of `FAMILY`; not those without a dual point, for an estimator has a certificate."""
PATH_EPS = 0.1
"""`eps` of a path for which none is given."""


def refuse(name: str, value: Any, expected: str) -> ValueError:
    """The error of a parameter that cannot be used."""
    return ValueError(f"{name}: expected {expected}, got {value!r}")


def is_number(value: Any) -> bool:
    """Whether `value` is a real number, and no bool."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def solver_options(name: str, *, path: bool, max_passes: float | None, max_seconds: float | None) -> MethodOptions:
    """Options of the preset `name` of ``conf/solver``; "auto": `accelerated` for given lambdas, else `bcpfw_gap_cache`.

    Raises
    ------
    ValueError
        If there is no such preset, or a limit is no number > 0.
    """
    limits: dict[str, float] = {}
    for key, value in (("max_passes", max_passes), ("max_seconds", max_seconds)):
        if value is not None:
            if not is_number(value) or not value > 0:
                raise refuse(key, value, "a number > 0, or None for no limit")
            limits[key] = float(value)
    if name == "auto":
        name = "bcpfw_gap_cache" if path else "accelerated"
    family = FAMILY.fullmatch(name) if isinstance(name, str) else None
    if family is not None:
        sampler = (family[2] or "_uniform")[1:]
        chosen: dict[str, Any] = {
            "step": STEPS[family[1]],
            "sampler": sampler,
            "cache": CacheOptions("gap" if family[3] else "none"),
        }
    elif name in OTHERS:
        chosen = OTHERS[name]
    else:
        known = "auto, bcfw, bcpfw, bcafw or bcbfw, each with or without _gap or _permutation and then _cache, "
        raise refuse("solver", name, known + ", ".join(OTHERS))
    options: MethodOptions = method_options(name=name, **{**chosen, **limits})
    options.check()
    return options


def path_options(lam: Any, *, n: int, tolerance: float, eps: float | None) -> PathOptions:
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
    if isinstance(lam, str) and lam == PATH:
        return PathOptions(eps=PATH_EPS if eps is None else float(eps))
    goal: dict[str, Any] = {"tolerance": float(tolerance if eps is None else eps), "relative": eps is None}
    if isinstance(lam, str) and lam == PER_BLOCK:
        return PathOptions(rule="single", lam=1.0 / n, **goal)
    if is_number(lam) and 0 < lam < math.inf:
        return PathOptions(rule="single", lam=float(lam), **goal)
    if isinstance(lam, Iterable) and not isinstance(lam, str):
        lams = sorted((float(value) for value in lam), reverse=True)
        options = PathOptions(rule="grid", lambdas=lams, **goal)
        try:
            options.check()
        except ValueError as error:
            raise ValueError(f"lam: {error}") from error
        return options
    raise refuse("lam", lam, f"a number > 0, {PER_BLOCK!r} or {PATH!r}")


def seed_of(random_state: Any) -> int:
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
