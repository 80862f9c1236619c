"""What all estimators share: parameters, the fit, and the model of every lambda.

A subclass says how its data become blocks of a structure (`_learn`), and what decoded labels mean to its users. The fields
of its dataclass are its parameters, beside those of `GapwiseEstimator`: scikit-learn reads them off the constructor.
"""

from __future__ import annotations

import contextlib
import copy
import logging
import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from gapwise.pipeline.compute.local import Compute
from gapwise.pipeline.estimators.certificate import ModelCertificate
from gapwise.pipeline.estimators.choices import (
    AUTO,
    Lambdas,
    Seed,
    is_number,
    refuse,
    solver_options,
    workers_of,
)
from gapwise.pipeline.estimators.data import Data, Samples
from gapwise.pipeline.estimators.fitted import Fitted
from gapwise.pipeline.estimators.fitting import Former, Source, fit
from gapwise.pipeline.estimators.plan import Plan
from gapwise.pipeline.estimators.solving import computing, spread_of
from gapwise.records import Record
from gapwise.stages.choice.held_out import Held
from gapwise.stages.choice.rules import LOSS, PICKS, Edge
from gapwise.stages.datasets import Blocks
from gapwise.stages.model.calibration import METHODS
from gapwise.stages.model.confidence import NBest, Scores, n_best_of, scores_of
from gapwise.stages.model.predict import predict as decode
from gapwise.stages.problems import build, calls_python
from gapwise.stages.problems.protocol import Problem
from gapwise.stages.solver.options import MethodOptions, PathOptions
from gapwise.storage.backend import Location
from gapwise.storage.mixture import PathInMemory

if TYPE_CHECKING:
    from gapwise.stages.model.measures import Measured
    from gapwise.stages.model.model import Model
    from gapwise.storage.paths import SolvedPath

log = logging.getLogger("gapwise")


@dataclass(kw_only=True, eq=False, repr=False)
class GapwiseEstimator(BaseEstimator):
    """A structured SVM with the interface of scikit-learn.

    Minimises (lam / 2) ||w||^2 + mean hinge over blocks (training examples). The hinge of a block is the largest loss plus
    score of a labelling minus the score of the truth. The C of other libraries is 1 / (n lam).

    Parameters
    ----------
    lam : "auto", float, "1/n", "path", or a list of floats
        The regulariser. With "auto", `validation` chooses a lam along a path, and the model is solved again at that lam on
        all blocks. If there are fewer than 10 blocks, or none can be held out, all train, and lam is "1/n", with a warning.
        "1/n" is 1 over the number of training blocks. Without folds or another `criterion`, the path ends where the held-out
        loss has clearly risen over a decade of lam. `path_.attrs["status"]` is then LOSS_RISES. With "path", the model of
        *every* lam is found and certified on the blocks that are not held out. Then `validation` chooses a lam;
        `predict(X, lam=...)` gives any other. A list: these, chosen likewise.
    tolerance : float
        A given lam is solved until gap / dual objective is at most this; so is the chosen lam of "auto" on all blocks.
    eps : float, optional
        Bound on the gap itself, in units of the loss, instead of `tolerance`. A path has no other bound, also with "auto".
        There None means 0.02.
    validation : float or int, optional
        For several lam: share of the blocks that is held out to choose `lambda_`. Without "auto" the other blocks alone
        train the model. An integer >= 2 is a number of folds. Each is held out once from a path of its own, so every block
        has a say; `path_` is the path of all blocks. None, not with "auto": nothing is held out, and `lambda_` is
        the lam nearest to 1/n. A share that leaves no block on one side does the same, with a warning.
    pick : {"parabola", "least", "one_se"}
        How the mean losses of the held-out blocks choose. "parabola": the vertex of a parabola in log lam through the
        losses within a decade of the least. "least": the least itself, the larger lam on ties. "one_se": the largest lam
        within one standard error of the least.
    criterion : str
        What `pick` looks at: the mean "loss" of the held-out blocks, or a measure of them. The best value then takes the
        place of the least. Sequences have "token_error", "sequence_error", "chunk_precision", "chunk_recall" and
        "chunk_f1"; classes "error_rate"; pictures "pixel_accuracy", "foreground_iou" and "foreground_iou_pooled"; a
        `StructuredSVM` "label_error". Of folds the mean counts, and only with folds is there "one_se".
    calibration : {None, "isotonic", "sigmoid"}
        Whether `probabilities` are fitted, and how: to the margins of the held-out blocks under the model of `path_` at
        `lambda_`, which was trained without them. It needs such blocks: several lam, or "auto", and no folds.
    solver : str
        A preset of ``conf/solver``; "auto" is ``accelerated`` for given lam and ``bcpfw_gap_cache`` for the path, and
        ``expensive_oracle`` for a `StructuredSVM`.
    max_passes : float, optional
        Most effective passes (oracle calls / n) per lam.
    max_seconds : float, optional
        Most seconds of solving; with "auto" for the path, and as many again on all blocks.
    verify : bool
        Whether independent code recomputes the certificates.
    warm_start : bool
        Whether a second `fit` to the same data, with another lam or tolerance, begins at the dual solution of the first.
    n_jobs : int, optional
        Threads for exact passes, verification and prediction; None: 1, -1: all cores. No result depends on it.
        `fit` tells its progress at level INFO: ``logging.basicConfig(level="INFO")``.
    random_state : int, RandomState or None
        Seed of the solver and of the choice of held-out blocks.

    Attributes
    ----------
    lambda_ : float
        The lam of `coef_` and of `predict`.
    path_ : SolvedPath
        What was solved on the blocks that are not held out: lambda, gap, weights, supports. With `validation` also what
        lambda was chosen on: `validated_loss` and `validated_error` at `validated_lambda`, of a path 8 a decade; and
        `validation_loss` at its breakpoints. With another `criterion` its name takes the place of the loss.
    refit_ : SolvedPath or None
        Of "auto": `lambda_` solved on all blocks, from the dual point of `path_` on. It gives the model at `lambda_`; at any
        other lam, `path_` does.
    certificate_ : ModelCertificate
        Of the model at `lambda_`: of `refit_`, if there is a refit, and otherwise of `path_`.
    calibration_ : Calibration or None
        What turns margins at `lambda_` into probabilities; `calibration_.split` says what it was fitted on.
    """

    _structure: ClassVar[str]

    lam: Lambdas = AUTO
    tolerance: float = 1e-3
    eps: float | None = None
    validation: float | int | None = 0.2
    pick: str = PICKS[0]
    criterion: str = LOSS
    calibration: str | None = None
    solver: str = "auto"
    max_passes: float | None = None
    max_seconds: float | None = None
    verify: bool = True
    warm_start: bool = False
    n_jobs: int | None = None
    random_state: Seed = 0

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    # -- what a subclass says -------------------------------------------------------------------------------------------
    def _learn(self, sink: Blocks, train: Data, held: Data | None, compute: Compute) -> Record:
        """Write `train`, and `held` as the split "test", into `sink`; returns the meta of the problem.

        Sets what new inputs are encoded with. Labels that do not occur in `train` count as errors.
        """
        raise NotImplementedError

    def _portable(self) -> tuple[Record, dict[str, np.ndarray]] | None:
        """Facts and shared arrays of a feature store with this feature map, named ``dataset`` there; None: there is none."""
        return None

    def _own_digest(self, data: Data) -> bytes:
        """What determines the numbers besides the arrays of the problem."""
        return b""

    def _cautions(self, data: Data) -> Iterator[str]:
        """What is to be said of these data before anything is solved."""
        return iter(())

    def _groups(self, data: Data) -> np.ndarray | None:
        """(n,) classes of blocks that the held-out blocks should have in the same shares; None: any blocks."""
        return None

    @contextlib.contextmanager
    def _problems(self, train: Data, held: Data | None, compute: Compute) -> Iterator[tuple[Problem, Held | None]]:
        """The problems over both parts of the data."""
        name = self._structure
        sink = Blocks(name)
        meta = self._learn(sink, train, held, compute)
        first = build(name, sink.arrays("train"), meta)
        other = None if held is None else Held.of(name, sink.arrays("test"), meta)
        del sink  # its blocks are a second copy of everything
        yield first, other

    @contextlib.contextmanager
    def _divided(self, data: Data, chosen: np.ndarray, compute: Compute) -> Iterator[tuple[Problem, Problem, Held]]:
        """The problems over all blocks, the `chosen` ones last, over those not chosen, and over the others."""
        name = self._structure
        sink = Blocks(name)
        meta = self._learn(sink, data, None, compute)
        order = np.argsort(chosen, kind="stable")
        whole, train = (build(name, sink.part("train", blocks), meta) for blocks in (order, ~chosen))
        yield whole, train, Held.of(name, sink.part("train", chosen), meta)

    # -- fit ------------------------------------------------------------------------------------------------------------
    def _fit(self, X: Samples, y: Samples, sample_weight: npt.ArrayLike | None, run_dir: str | Location | None) -> Self:
        learner = copy.copy(self)  # if anything fails, self is left as it was
        data = learner._checked(X, y, sample_weight)
        name, n = type(self).__name__, len(data.y)
        plan = Plan.of(self, learner._structure, n, learner._groups(data))
        for said in learner._cautions(data):
            warnings.warn(f"{name}: {said}", stacklevel=3)
        source = Source(learner._problems, learner._divided, learner._own_digest, learner._options)
        former = None
        if self.warm_start and "lambda_" in vars(self):
            former = Former(self._solved_at(self.lambda_)[0], self.lambda_, self._data_digest)
        done = fit(plan, data, source, run_dir, warm_start=self.warm_start, former=former)
        learner._data_digest, learner.calibration_ = done.digest, done.calibration
        learner._keep(done.fitted)
        self.__dict__ = learner.__dict__
        for said in done.fitted.warnings(name):
            warnings.warn(said, ConvergenceWarning, stacklevel=3)
        if plan.none_held is not None:
            warnings.warn(f"{name}: {plan.none_held}", stacklevel=3)
        if done.uncalibrated is not None:
            warnings.warn(f"{name}: {done.uncalibrated}", stacklevel=3)
        if done.fitted.edge is Edge.END:
            log.info("%s", done.fitted.said_of_edge(name))
        elif done.fitted.edge is not None:
            warnings.warn(done.fitted.said_of_edge(name), stacklevel=3)
        return self

    def _options(self, path: PathOptions) -> tuple[MethodOptions, PathOptions]:
        """The options of the solver for a path or given lambdas, and those of the path for this solver."""
        limits = {"max_passes": self.max_passes, "max_seconds": self.max_seconds}
        python = calls_python(self._structure)
        options = solver_options(self.solver, path=path.can.finds_lambdas, calls_python=python, **limits)
        return options, path.for_method(options)

    def _keep(self, fitted: Fitted) -> None:
        """Set the fitted attributes."""
        self._path, self._validated, self.lambda_ = fitted.path.path, fitted.validated, fitted.lam
        self._refit = None if fitted.refit is None else fitted.refit.path
        self._of_path = fitted.certificate_of_path
        self.certificate_: ModelCertificate = fitted.certificate
        self._weights = self._weights_at(None)
        self.coef_ = self._weights

    # -- the model ------------------------------------------------------------------------------------------------------
    def _weights_at(self, lam: float | None) -> np.ndarray:
        """w (d,) at lam; at `lambda_` if it is None."""
        check_is_fitted(self, "lambda_")
        if lam is None:
            lam = self.lambda_
        elif not is_number(lam) or not 0 < lam < math.inf:
            raise refuse("lam", lam, "a number > 0")
        return self._solved_at(float(lam))[0].weights_at(float(lam))

    def _solved_at(self, lam: float) -> tuple[PathInMemory, ModelCertificate]:
        """What the model at lam was solved in, and its certificate: the path, or at `lambda_` the solve on all blocks."""
        if self._refit is not None and lam == self.lambda_:
            return self._refit, self.certificate_
        return self._path, self._of_path

    @property
    def path_(self) -> SolvedPath:
        """Made when it is asked for, because only it needs xarray."""
        from gapwise.storage.paths import path_of

        path = path_of(self._path.arrays, self._path.attrs)
        return path if self._validated is None else self._validated.beside(path)

    @property
    def refit_(self) -> SolvedPath | None:
        """As `path_`."""
        from gapwise.storage.paths import path_of

        return None if self._refit is None else path_of(self._refit.arrays, self._refit.attrs)

    def save(self, folder: str | Location, lam: float | None = None) -> None:
        """Write the model at `lam` into a folder that `gapwise.load_model` and ``gapwise predict`` read, without pickle.

        What is loaded takes what `predict` takes. In the form of files it also takes CRFsuite's lines for a `ChainSVM` of
        attributes, pictures, and rows of numbers.

        Parameters
        ----------
        folder : path or URL
            A new folder, or a folder with another model, which is replaced.
        lam : float, optional
            Any lambda that the path certifies; by default `lambda_`.

        Raises
        ------
        ValueError
            If this estimator's inputs have no such form: graphs, and models of your own. Pickle those.
        """
        self._model_at(lam, "save").save(folder)

    def measures(self, X: Samples, y: Samples) -> Measured:
        """Loss, measures of the field, and F1 of each label and kind of chunk, of inputs with their true outputs.

        For scikit-learn: ``cross_val_score(model, X, y, scoring=lambda m, X, y: m.measures(X, y).metrics["chunk_f1"])``.

        Parameters
        ----------
        X, y : list or array
            In the form that `fit` takes.

        Returns
        -------
        Measured
            ``metrics``, a dict such as that of ``gapwise evaluate``; ``labels``, ``chunks`` and ``confusions``: rows of
            tables.

        Raises
        ------
        ValueError
            If these inputs are neither sequences nor rows of numbers.
        """
        return self._model_at(None, "measures").measures(X, y)

    def _model_at(self, lam: float | None, asked_by: str) -> Model:
        """The model at `lam`, as it leaves Python."""
        from gapwise.pipeline.estimators.portable import portable

        weights, form = self._weights_at(lam), self._portable()
        if form is None:
            kind = type(self).__name__
            raise ValueError(f"{asked_by}: a {kind} of such inputs has no form outside Python; pickle it")
        chosen = float(self.lambda_ if lam is None else lam)
        calibration = self.calibration_ if chosen == self.lambda_ else None
        return portable(
            type(self).__name__, chosen, weights, *form, *self._solved_at(chosen), calibration, at_lambda=lam is None
        )

    def _decoded(self, problem: Problem, lam: float | None) -> np.ndarray:
        """Flat labels of all blocks."""
        with computing(workers_of(self.n_jobs), None) as compute:
            labels, _ = decode(problem, self._weights_at(lam), spread_of(compute))
        return labels

    def _scored(self, problem: Problem, lam: float | None, *, table: bool = False) -> Scores:
        """Labels, margins and perhaps max-marginals of all blocks."""
        with computing(workers_of(self.n_jobs), None) as compute:
            return scores_of(problem, self._weights_at(lam), spread_of(compute), table=table)

    def _listed(self, problem: Problem, n: int, lam: float | None) -> NBest:
        """The n best labellings of all blocks; ValueError if the structure lists none."""
        with computing(workers_of(self.n_jobs), None) as compute:
            return n_best_of(problem, self._weights_at(lam), n, spread_of(compute))

    def _probable(self, margins: np.ndarray) -> np.ndarray:
        """Probabilities of margins at `lambda_`; ValueError if none were asked for."""
        if self.calibration_ is None:
            asks = f"fit with calibration={' or '.join(map(repr, METHODS))}, which asks for them"
            failed = "none could be fitted, as a warning of fit has said; hold out more blocks"
            raise ValueError(f"probabilities: {asks if self.calibration is None else failed}")
        return self.calibration_(margins)

    def problem(self, X: Samples, y: Samples) -> Problem:
        """The compiled problem over these data, for `gapwise.solve` and `gapwise.path`.

        Parameters
        ----------
        X, y : list or array
            Training data in the form that `fit` takes.

        Returns
        -------
        Problem
            A NamedTuple of arrays, with n blocks and d weights.

        Raises
        ------
        ValueError
            If the data cannot be used; names the argument.
        """
        learner = clone(self)  # self may be fitted, and keeps what its inputs are encoded with
        with computing(1, None) as compute, learner._problems(learner._checked(X, y), None, compute) as (problem, _):
            return problem

    def _checked(self, X: Samples, y: Samples, sample_weight: npt.ArrayLike | None = None) -> Data:
        """Training data in the form that `_learn` takes, without blocks of weight 0; ValueError names the argument."""
        raise NotImplementedError
