"""What all estimators share: parameters, the fit, and the model of every lambda.

A subclass says how its data become blocks of a structure (`_learn`), and what decoded labels mean to its users.
"""

from __future__ import annotations

import contextlib
import logging
import math
import warnings
from collections.abc import Iterator
from typing import ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from gapwise.pipeline.compute.local import Compute
from gapwise.pipeline.estimators.certificate import ModelCertificate, certificate_of, ended_early
from gapwise.pipeline.estimators.choices import (
    PER_BLOCK,
    Lambdas,
    Seed,
    is_number,
    path_options,
    refuse,
    seed_of,
    solver_options,
    workers_of,
)
from gapwise.pipeline.estimators.data import Data, Samples, part
from gapwise.pipeline.estimators.solving import Solved, computing, digest, solved, spread_of
from gapwise.pipeline.interrupt import Stop
from gapwise.stages.datasets import Blocks
from gapwise.stages.predict import predict as decode
from gapwise.stages.problems import build
from gapwise.stages.problems.facts import Json
from gapwise.stages.problems.protocol import Problem
from gapwise.stages.solver.options import PathOptions, Status
from gapwise.stages.solver.supports import Supports
from gapwise.storage.backend import Location
from gapwise.storage.paths import SolvedPath

log = logging.getLogger("gapwise")


class GapwiseEstimator(BaseEstimator):
    """A structured SVM with the interface of scikit-learn.

    Minimises (lam / 2) ||w||^2 + mean hinge over blocks (training examples), where the hinge of a block is the
    largest loss plus score of a labelling minus the score of the truth. The C of other libraries is 1 / (n lam).

    Parameters
    ----------
    lam : float, "1/n", "path", or a list of floats
        The regulariser. "1/n" is one over the number of training blocks. "path": the model of *every* lam is found
        and certified, and `validation` chooses one; `predict(X, lam=...)` gives any other. A list: these, chosen likewise.
    tolerance : float
        A given lam is solved until gap / dual objective is at most this.
    eps : float, optional
        Bound on the gap itself, in units of the loss, instead of `tolerance`. A path has only this one; None: 0.1.
    validation : float, optional
        For several lam: share of the blocks that is held out to choose `lambda_`, the one of least mean loss there (the
        larger on ties); the model is that of the other blocks, and `set_params(lam=lambda_).fit(X, y)` trains on all. None:
        nothing is held out, and `lambda_` is the lam nearest to 1/n.
    solver : str
        A preset of ``conf/solver``; "auto" is ``accelerated`` for given lam and ``bcpfw_gap_cache`` for the path.
    max_passes : float, optional
        Most effective passes (oracle calls / n) per lam.
    max_seconds : float, optional
        Most seconds of solving.
    verify : bool
        Whether independent code recomputes the certificates.
    warm_start : bool
        Whether a second `fit` to the same data, with another lam or tolerance, begins at the dual solution of the first.
    n_jobs : int, optional
        Threads for exact passes, verification and prediction; None: 1, -1: all cores. No result depends on it.
    random_state : int, RandomState or None
        Seed of the solver and of the choice of held-out blocks.
    """

    _structure: ClassVar[str]

    def __init__(
        self,
        *,
        lam: Lambdas = "1/n",
        tolerance: float = 1e-3,
        eps: float | None = None,
        validation: float | None = 0.2,
        solver: str = "auto",
        max_passes: float | None = None,
        max_seconds: float | None = None,
        verify: bool = True,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Seed = 0,
    ) -> None:
        self.lam = lam
        self.tolerance = tolerance
        self.eps = eps
        self.validation = validation
        self.solver = solver
        self.max_passes = max_passes
        self.max_seconds = max_seconds
        self.verify = verify
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    # -- what a subclass says -------------------------------------------------------------------------------------------
    def _learn(self, sink: Blocks, train: Data, held: Data | None, compute: Compute) -> Json:
        """Write `train`, and `held` as the split "test", into `sink`; returns the meta of the problem.

        Sets what new inputs are encoded with. Labels that do not occur in `train` count as errors.
        """
        raise NotImplementedError

    def _structure_of(self, data: Data) -> str:
        """The structure of these data."""
        return self._structure

    def _portable(self) -> tuple[Json, dict[str, np.ndarray]] | None:
        """Facts and shared arrays of a feature store with this feature map, named ``dataset`` there; None: there is none."""
        return None

    def _own_digest(self, data: Data) -> bytes:
        """What determines the numbers besides the arrays of the problem."""
        return b""

    def _groups(self, data: Data) -> np.ndarray | None:
        """(n,) classes of blocks that the held-out blocks should have in the same shares; None: any blocks."""
        return None

    @contextlib.contextmanager
    def _problems(self, train: Data, held: Data | None, compute: Compute) -> Iterator[tuple[Problem, Problem | None]]:
        """The problems over both parts of the data."""
        name = self._structure_of(train)
        sink = Blocks(name)
        meta = self._learn(sink, train, held, compute)
        first = build(name, sink.arrays("train"), meta)
        other = None if held is None else build(name, sink.arrays("test"), meta)
        del sink  # its blocks are a second copy of everything
        yield first, other

    # -- fit ------------------------------------------------------------------------------------------------------------
    def _fit(self, data: Data, run_dir: str | Location | None) -> Self:
        n = len(data.y)
        seed, workers = seed_of(self.random_state), workers_of(self.n_jobs)
        several = not (is_number(self.lam) or (isinstance(self.lam, str) and self.lam == PER_BLOCK))
        chosen = self._held_out(data, n, seed) if several else np.zeros(n, bool)
        train, held = part(data, ~chosen), part(data, chosen) if chosen.any() else None
        path = path_options(self.lam, n=len(train.y), tolerance=self.tolerance, eps=self.eps)
        limits = {"max_passes": self.max_passes, "max_seconds": self.max_seconds}
        options = solver_options(self.solver, path=path.can.finds_lambdas, **limits)
        path = path.for_method(options)
        with contextlib.ExitStack() as stack:
            stop = stack.enter_context(Stop()) if run_dir is not None else None
            compute = stack.enter_context(computing(workers, stop))
            problem, other = stack.enter_context(self._problems(train, held, compute))
            known = None if run_dir is None and not self.warm_start else digest(problem, self._own_digest(train))
            result = solved(
                problem, options, path, seed=seed, compute=compute, stop=stop, run_dir=run_dir, kind=type(self).__name__,
                data=lambda: str(known), check=self.verify, initial=self._initial(known, path),
            )  # fmt: skip
            losses = None
            if other is not None:
                spread = spread_of(compute)
                weights = result.path["weights"].values
                losses = np.array([np.mean(decode(other, w, spread)[1]) for w in weights])
        self._data_digest = known
        self._keep(result, path, losses, n=len(train.y))
        if ended_early(result):
            warnings.warn(self._said_of(result, path), ConvergenceWarning, stacklevel=3)
        return self

    def _said_of(self, result: Solved, path: PathOptions) -> str:
        """The warning of a solve that a limit ended."""
        certificate, limit = self.certificate_, "max_seconds" if result.status is Status.TIME_LIMIT else "max_passes"
        ending = f"{type(self).__name__}: ended at {limit} ({result.status})"
        if path.can.finds_lambdas and certificate.holds:
            return f"{ending}; the path goes down to lam {certificate.lam_low:.3g} only; raise {limit}, or eps"
        asked = f"{certificate.allowed:.3g} was asked for, at lam {float(result.path['lambda'].values[-1]):.3g}"
        return f"{ending} with a gap of {certificate.gap:.3g} where {asked}; raise {limit}, or tolerance or eps"

    def _held_out(self, data: Data, n: int, seed: int) -> np.ndarray:
        """(n,) bool: the blocks that are held out."""
        chosen = np.zeros(n, bool)
        if self.validation is None:
            return chosen
        if not (is_number(self.validation) and 0 < self.validation < 1):
            raise refuse("validation", self.validation, "a share between 0 and 1, or None")
        groups = self._groups(data)
        order = np.random.default_rng(seed).permutation(n)
        for group in (order,) if groups is None else (order[groups[order] == g] for g in np.unique(groups)):
            chosen[group[: round(self.validation * group.size)]] = True
        if not chosen.any() or chosen.all():
            raise ValueError(
                f"validation: {self.validation} of {n} blocks leaves none on one side; give more data, or None for no choice"
            )
        return chosen

    def _initial(self, known: str | None, path: PathOptions) -> Supports | None:
        """The dual solution to begin at, if `warm_start` asks for one and there is one of the same data."""
        if not self.warm_start or "path_" not in vars(self):
            return None
        if path.can.finds_lambdas:
            log.info("warm_start: a path begins at its own first lambda, so this fit begins anew")
        elif known != self._data_digest:
            log.info("warm_start: the data are not those of the last fit, so this fit begins anew")
        elif not self.path_.attrs["dual_point"]:
            log.info("warm_start: the last fit left no dual solution, so this fit begins anew")
        elif "dual_scores" in self.path_:
            log.info("warm_start: the dual solution of the last fit is no list of labellings, so this fit begins anew")
        else:
            return supports_of(self.path_, self._row())
        return None

    def _keep(self, result: Solved, path: PathOptions, losses: np.ndarray | None, n: int) -> None:
        """Set the fitted attributes."""
        lams = result.path["lambda"].values
        if losses is not None:
            result.path["validation_loss"] = ("breakpoint", losses)
            self.lambda_ = float(lams[np.flatnonzero(losses == losses.min())[np.argmax(lams[losses == losses.min()])]])
        elif path.can.finds_lambdas:
            low = float(result.path["cell_low"].values[-1]) if result.path.sizes.get("cell") else float(lams[-1])
            self.lambda_ = max(1.0 / n, low)
        else:
            self.lambda_ = float(lams[np.argmin(np.abs(np.log(lams * n)))])
        self.path_ = result.path
        self.certificate_: ModelCertificate = certificate_of(result, path, self._row())
        self._weights = self._weights_at(None)
        self.coef_ = self._weights

    def _row(self) -> int:
        """The breakpoint nearest to `lambda_`."""
        return int(np.argmin(np.abs(np.log(self.path_["lambda"].values / self.lambda_))))

    # -- the model ------------------------------------------------------------------------------------------------------
    def _weights_at(self, lam: float | None) -> np.ndarray:
        """w (d,) at lam; at `lambda_` if it is None."""
        check_is_fitted(self, "path_")
        if lam is None:
            lam = self.lambda_
        elif not is_number(lam) or not 0 < lam < math.inf:
            raise refuse("lam", lam, "a number > 0")
        weights: np.ndarray = self.path_.weights_at(float(lam)).values
        return weights

    def save(self, folder: str | Location, lam: float | None = None) -> None:
        """Write the model at `lam` into a folder that `gapwise.load_model` and ``gapwise predict`` read, without pickle.

        What is loaded takes what `predict` takes; in the form of files also CRFsuite's lines for a `ChainSVM` of attributes,
        pictures, and rows of numbers. ``lam``: any lambda that the path certifies; by default `lambda_`.

        Raises
        ------
        ValueError
            If this estimator's inputs have no such form: graphs, a model of one's own. Pickle those.
        """
        from gapwise.stages.models import Model, versions

        weights = self._weights_at(lam)
        portable = self._portable()
        if portable is None:
            raise ValueError(f"save: a {type(self).__name__} of such inputs has no form outside Python; pickle it")
        meta, shared = portable
        certificate, attrs = self.certificate_, self.path_.attrs
        claims = {
            "gap": certificate.gap if lam is None and certificate.lam_low == certificate.lam_high else None,
            "eps": attrs["eps"],
            "relative": bool(attrs["relative"]),
            "certainty": certificate.certainty,
            "verified": certificate.verified,
            "certified": certificate.verified and certificate.holds,
        }
        origin = {"run": type(self).__name__, "key": attrs["key"], "rule": attrs["rule"], "versions": versions()}
        facts = {**meta, "d": int(weights.size)}
        chosen = float(self.lambda_ if lam is None else lam)
        Model(chosen, weights, claims, facts, shared, origin).save(folder)

    def _decoded(self, problem: Problem, lam: float | None) -> np.ndarray:
        """Flat labels of all blocks."""
        with computing(workers_of(self.n_jobs), None) as compute:
            labels, _ = decode(problem, self._weights_at(lam), spread_of(compute))
        return labels

    def problem(self, X: Samples, y: Samples) -> Problem:
        """The compiled problem over these data, for `gapwise.solve` and `gapwise.path`."""
        with computing(1, None) as compute, self._problems(self._checked(X, y), None, compute) as (problem, _):
            return problem

    def _checked(self, X: Samples, y: Samples) -> Data:
        """Training data in the form that `_learn` takes; ValueError names the argument."""
        raise NotImplementedError


def supports_of(path: SolvedPath, row: int) -> Supports:
    """The dual solution at a breakpoint."""
    offset = path["support_offset"].values[row]
    atoms = slice(int(offset[0]), int(offset[-1]))
    label_offset = path["label_offset"].values[atoms.start : atoms.stop + 1]
    labels = path["support_label"].values[int(label_offset[0]) : int(label_offset[-1])]
    alpha, losses = path["support_alpha"].values[atoms], path["support_loss"].values[atoms]
    used = np.zeros(alpha.size, np.int64)
    return Supports(offset - offset[0], alpha, losses, used, labels, label_offset - label_offset[0])
