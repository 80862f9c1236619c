"""Solves of a problem that exists already, such as that of an estimator or of a feature store."""

from __future__ import annotations

import contextlib
from typing import TypedDict, Unpack

from gapwise.pipeline.estimators.choices import (
    Lambdas,
    Seed,
    path_options,
    seed_of,
    solver_options,
    workers_of,
)
from gapwise.pipeline.estimators.solving import computing, solved
from gapwise.pipeline.interrupt import Stop
from gapwise.stages.choice.rules import CHOOSING_EPS
from gapwise.stages.problems.capabilities import calls_python_of
from gapwise.stages.problems.protocol import Problem
from gapwise.storage.backend import Location
from gapwise.storage.paths import SolvedPath, path_of


def solve(
    problem: Problem,
    lam: Lambdas = "1/n",
    *,
    tolerance: float = 1e-3,
    eps: float | None = None,
    solver: str = "auto",
    max_passes: float | None = None,
    max_seconds: float | None = None,
    verify: bool = True,
    n_jobs: int | None = None,
    random_state: Seed = 0,
    run_dir: str | Location | None = None,
) -> SolvedPath:
    """Solve a problem at one lambda, or at each of a list.

    Parameters
    ----------
    problem : Problem
        Of `estimator.problem(X, y)`, `stages.featurize.open_problem`, or `stages.problems.build`.
    lam : float, "1/n" or a list of floats
        The regulariser, or several.
    tolerance, eps, solver, max_passes, max_seconds, verify, n_jobs, random_state
        As in `GapwiseEstimator`.
    run_dir : path or URL, optional
        Where the state is committed; the same call goes on after a kill.

    Returns
    -------
    SolvedPath
        An xarray.Dataset in memory, one `breakpoint` per lambda, by falling lambda: ``lambda``, ``gap``, ``primal``,
        ``dual``, ``weights``, supports. ``attrs["status"]`` says whether a limit was reached.

    Raises
    ------
    ValueError
        If an argument cannot be used, or `run_dir` belongs to something else.
    CertificateError
        If a certificate does not hold.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gapwise import MulticlassSVM
    >>> problem = MulticlassSVM().problem(*load_iris(return_X_y=True))
    >>> found = solve(problem, [0.1, 0.01])
    >>> found.attrs["status"], found.weights_at(0.1).shape
    ('CONVERGED', (15,))
    """
    path = path_options(lam, n=problem.n, tolerance=tolerance, eps=eps)
    options = solver_options(
        solver, path=path.can.finds_lambdas, max_passes=max_passes, max_seconds=max_seconds,
        calls_python=calls_python_of(problem),
    )  # fmt: skip
    path = path.for_method(options)
    with contextlib.ExitStack() as stack:
        stop = stack.enter_context(Stop()) if run_dir is not None else None
        compute = stack.enter_context(computing(workers_of(n_jobs), stop))
        seed = seed_of(random_state)
        found = solved(problem, options, path, seed=seed, compute=compute, stop=stop, run_dir=run_dir, check=verify)
    return path_of(found.path.arrays, found.path.attrs)


class Choices(TypedDict, total=False):
    """The arguments of `solve` that `path` takes as well."""

    solver: str
    max_passes: float | None
    max_seconds: float | None
    verify: bool
    n_jobs: int | None
    random_state: Seed
    run_dir: str | Location | None


def path(problem: Problem, eps: float = CHOOSING_EPS, **choices: Unpack[Choices]) -> SolvedPath:
    """The model of every lambda, each certified to a duality gap of at most `eps`, in units of the loss.

    Parameters
    ----------
    problem : Problem
        As in `solve`.
    eps : float
        The largest gap, in units of the loss.
    **choices
        solver, max_passes, max_seconds, verify, n_jobs, random_state and run_dir, as in `solve`.

    Returns
    -------
    SolvedPath
        As from `solve`; ``weights_at(lam)`` gives the model of any lambda, between breakpoints as well.

    Raises
    ------
    ValueError, CertificateError
        As `solve` does.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gapwise import MulticlassSVM
    >>> found = path(MulticlassSVM().problem(*load_iris(return_X_y=True)), eps=0.1)
    >>> found.weights_at([1.0, 0.5, 0.1]).shape
    (3, 15)
    """
    return solve(problem, "path", eps=eps, **choices)
