"""Sequence labelling: a linear chain with transitions between neighbouring labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Self, overload

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from gapwise.pipeline.compute.local import Compute
from gapwise.pipeline.estimators.base import GapwiseEstimator
from gapwise.pipeline.estimators.chain_encoding import CHAIN, ChainEncoding, learned
from gapwise.pipeline.estimators.data import Data, Samples, weighted
from gapwise.pipeline.estimators.fitted import Fitted
from gapwise.pipeline.estimators.sequences import paired, sorted_labels
from gapwise.pipeline.estimators.token_losses import Constraints, LabelWeights, token_losses
from gapwise.records import Record
from gapwise.stages.datasets import Blocks
from gapwise.stages.datasets.arrays.rows import Label
from gapwise.stages.datasets.text.tokens import Tokens
from gapwise.stages.model.confidence import NBest, refuse_without_lists
from gapwise.stages.model.explain import Explanation, explain
from gapwise.stages.model.measures import share_right
from gapwise.stages.model.named_weights import NamedWeights, columns
from gapwise.stages.problems.chain.dense import emissions_of
from gapwise.stages.problems.losses import PER_TOKEN
from gapwise.stages.problems.protocol import Problem
from gapwise.storage.backend import Location

if TYPE_CHECKING:
    from pandas import DataFrame


class Predicted(list[list[Label]]):
    """A list of labels for each sequence; as an array it is one of lists, which scikit-learn's `cross_val_predict` joins."""

    def __array__(self, dtype: object = None, copy: bool | None = None) -> np.ndarray:
        array = np.empty(len(self), object)
        array[:] = list(self)
        return array


class Labelling(NamedTuple):
    """One labelling of a sequence, and its score."""

    labels: list[Label]
    score: float


@dataclass(kw_only=True, eq=False, repr=False)
class ChainSVM(GapwiseEstimator):
    """Structured SVM on sequences (the structure `chain`), with Viterbi decoding.

    It has weights for features of single tokens and for each pair of neighbouring labels. Biases are for all tokens, first
    tokens and last tokens.

    Parameters
    ----------
    lam, tolerance, eps, validation, pick, criterion, calibration
        As for every estimator: see `GapwiseEstimator`.
    min_count : int
        Attributes that occur less often in the training data are left out. Not for arrays.
    loss : str
        "per_token": wrong labels / mean number of tokens of the training sequences. An error then costs the same in all
        sequences. "per_sequence": wrong labels / tokens of their sequence.
    label_weights : "balanced" or dict, optional
        Factors of the cost of a wrong label, by the true label. A label that a dict does not name has 1. "balanced":
        inverse to how often the label occurs in training, with mean 1 over its tokens.
    costs : array-like, shape (K, K), optional
        Cost of predicting column k where row c is true, labels in sorted order; >= 0, with a zero diagonal. None: 1.
    constraints : "bio", "iob1", "iobes", "bilou" or pairs, optional
        Which labels may follow one another, begin and end a sequence, in training and in predictions. A scheme allows what
        it allows. A pair forbids its second label right after its first; None stands before the first and after the last
        token.
    solver, max_passes, max_seconds, verify, warm_start, n_jobs, random_state
        As for every estimator, too.

    Attributes
    ----------
    classes_ : list
        Labels, sorted.
    vocabulary_ : dict or None
        Number of each attribute; None for arrays.
    coef_ : array, shape (attributes, K)
        Scores of labels for each attribute, of the model at `lambda_`.
    bias_ : array, shape (3, K)
        Scores of labels for every token, the first and the last.
    transitions_ : array, shape (K, K)
        Scores of label a (row) before label b (column).
    lambda_, path_, refit_, certificate_, calibration_
        As in `GapwiseEstimator`.

    Examples
    --------
    >>> X = [[{"word": "the"}, {"word": "dog"}], [{"word": "dogs"}]]
    >>> y = [["DET", "NOUN"], ["NOUN"]]
    >>> ChainSVM(lam=0.1).fit(X, y).predict([[{"word": "the"}, {"word": "dogs"}]])
    [['DET', 'NOUN']]
    """

    _structure = CHAIN

    min_count: int = 1
    loss: str = PER_TOKEN
    label_weights: LabelWeights = None
    costs: npt.ArrayLike | None = None
    constraints: Constraints = None

    def fit(
        self,
        X: Samples,
        y: Samples,
        *,
        sample_weight: npt.ArrayLike | None = None,
        run_dir: str | Location | None = None,
    ) -> Self:
        """Solve and verify.

        Parameters
        ----------
        X : list of sequences
            Each is a list of tokens: dicts or lists of attributes in the form of python-crfsuite. Or it is a DataFrame,
            whose rows are such dicts, or an array or sparse matrix (tokens, p). Arrays of floats, of
            which more than half are not 0, become one float32 matrix. Others become sparse rows.
        y : list of lists
            A label for each token: strings or integers. A string counts as the list of its letters.
        sample_weight : array-like, shape (n,), optional
            Weights >= 0 of the sequences, relative to their mean: the objective is (lam / 2) ||w||^2 plus the weighted mean
            of the hinges. With the same lam, a weight of 2 does what giving a sequence twice does. Here n counts the
            sequences whose weight is not 0.
        run_dir : path or URL, optional
            Where the state is committed: the same call goes on after a kill, to the same bits.

        Raises
        ------
        ValueError
            If data or a parameter cannot be used; names the sequence and the token.
        """
        return self._fit(X, y, sample_weight, run_dir)

    def _checked(self, X: Samples, y: Samples, sample_weight: npt.ArrayLike | None = None) -> Data:
        data = weighted(paired(X, y), sample_weight)
        names = sorted_labels({label for labels in data.y for label in labels})
        self._losses = token_losses(names, self.loss, self.label_weights, self.costs, self.constraints)
        number = {label: k for k, label in enumerate(names)}
        flat = np.array([number[label] for labels in data.y for label in labels])
        self._losses.refuse_truths(flat, np.cumsum([0, *map(len, data.y)]))
        return data

    def _learn(self, sink: Blocks, train: Data, held: Data | None, compute: Compute) -> Record:
        encoding, rows = learned(train, self._losses, self.min_count)
        self.classes_, self.vocabulary_, self.n_features_in_ = encoding.classes, encoding.vocabulary, encoding.width
        self._dense, self._tables, self._facts = encoding.dense, encoding.tables, encoding.facts
        encoding.put(sink, train, held, rows)
        return encoding.meta

    @property
    def _encoding(self) -> ChainEncoding:
        return ChainEncoding(
            self.classes_, self.vocabulary_, self.n_features_in_, self._dense, self._tables, self._facts
        )

    def _portable(self) -> tuple[Record, dict[str, np.ndarray]]:
        return self._encoding.portable

    def _keep(self, fitted: Fitted) -> None:
        super()._keep(fitted)
        K = len(self.classes_)
        emissions = emissions_of(self._weights, K, self._dense)
        self.coef_, self.bias_ = emissions[:-3], emissions[-3:]
        self.transitions_ = self._weights[-K * K :].reshape(K, K)

    @overload
    def predict(self, X: Samples, lam: float | None = None, *, n_best: None = None) -> list[list[Label]]: ...
    @overload
    def predict(self, X: Samples, lam: float | None = None, *, n_best: int) -> list[list[Labelling]]: ...
    def predict(
        self, X: Samples, lam: float | None = None, *, n_best: int | None = None
    ) -> list[list[Label]] | list[list[Labelling]]:
        """Labels of new sequences. An empty sequence has no label.

        Attributes that did not occur in training are ignored. The log has their number; if all are, that is a warning.

        Parameters
        ----------
        X : list of sequences
            In the form that `fit` takes.
        lam : float, optional
            Any lambda that the path certifies; by default `lambda_`.
        n_best : int, optional
            Gives lists instead: of each sequence at most this many different labellings, by falling score. There are fewer
            only where a sequence has no more.

        Returns
        -------
        list of lists
            A label for each token. With `n_best` a list of pairs (labels, score) for each sequence; the first pair has the
            labels that `predict` gives without.

        Raises
        ------
        ValueError
            If an input is not in the form of the training data, or the path does not certify `lam`.
        """
        if n_best is not None:
            refuse_without_lists(self._structure, n_best)
        problem, edges = self._new(X)
        if n_best is not None:
            listed = None if problem is None else self._listed(problem, n_best, lam)
            numbers = np.cumsum([b > a for a, b in edges]) - 1
            return [self._labellings(listed, k) if b > a else [Labelling([], 0.0)]
                    for (a, b), k in zip(edges, numbers.tolist(), strict=True)]  # fmt: skip
        labels: list[int] = [] if problem is None else self._decoded(problem, lam).tolist()
        return Predicted([self.classes_[k] for k in labels[a:b]] for a, b in edges)

    def decision_function(self, X: Samples, lam: float | None = None) -> list[np.ndarray]:
        """Max-marginals: scores of the best labelling with each label at each token. `predict` gives labels of the largest.

        Parameters
        ----------
        X : list of sequences
            In the form that `fit` takes.
        lam : float, optional
            Any lambda that the path certifies; by default `lambda_`.

        Returns
        -------
        list of float64 arrays, shape (tokens, K)
            An array for each sequence, with columns in the order of `classes_`. It holds -inf where constraints allow no
            such labelling.
        """
        problem, edges = self._new(X)
        table = np.empty((0, len(self.classes_))) if problem is None else self._scored(problem, lam, table=True).table
        return [table[a:b] for a, b in edges]

    def margins(self, X: Samples, lam: float | None = None) -> list[np.ndarray]:
        """How much less the best labelling with another label at a token scores than the predicted labelling.

        Parameters
        ----------
        X : list of sequences
            In the form that `fit` takes.
        lam : float, optional
            Any lambda that the path certifies; by default `lambda_`.

        Returns
        -------
        list of float64 arrays, shape (tokens,)
            An array for each sequence, in units of the score. The least margin is the gap to the second-best labelling.
        """
        problem, edges = self._new(X)
        margins = np.empty(0) if problem is None else self._scored(problem, lam).margins
        return [margins[a:b] for a, b in edges]

    def probabilities(self, X: Samples) -> list[np.ndarray]:
        """The calibrated probability that the label predicted at `lambda_` is right.

        Parameters
        ----------
        X : list of sequences
            In the form that `fit` takes.

        Returns
        -------
        list of float64 arrays, shape (tokens,)
            An array for each sequence.

        Raises
        ------
        ValueError
            Unless `calibration` asked for probabilities.
        """
        return [self._probable(margins) for margins in self.margins(X)]

    def explain(
        self, sequence: Tokens, token: int, rival: Label | None = None, lam: float | None = None
    ) -> Explanation:
        """What spoke for the label of a token, and against it.

        Parameters
        ----------
        sequence : list of tokens
            In the form that `fit` takes.
        token : int
            The token's place in the sequence, from 0.
        rival : label, optional
            The label to compare with. None: the label there in the best labelling with another label at this token.
        lam : float, optional
            Any lambda that the path certifies; by default `lambda_`.

        Returns
        -------
        Explanation
            Its `parts`, a table, are those of `margin` that attributes and transitions have, by falling score.

        Raises
        ------
        ValueError
            If the sequence is empty, or there is no such token or label.
        """
        problem, _ = self._new([sequence])
        if problem is None:
            raise ValueError("sequence: expected a sequence with tokens, got an empty one")
        return explain(problem, self._weights_at(lam), self._named(lam), 0, token, rival)

    def _labellings(self, listed: NBest | None, i: int) -> list[Labelling]:
        """Those of sequence i among the sequences that are not empty."""
        assert listed is not None
        rows = zip(listed[i].tolist(), listed.scores[i].tolist(), strict=False)
        return [Labelling([self.classes_[k] for k in row], score) for row, score in rows]

    def _new(self, X: Samples) -> tuple[Problem | None, list[tuple[int, int]]]:
        """The problem over new sequences, None if all are empty; and the first token of each, and the end."""
        check_is_fitted(self, "lambda_")
        return self._encoding.problem(X)

    def named_weights(self, lam: float | None = None) -> DataFrame:
        """The weights with the names of attributes and labels; columns of arrays are x0, x1, ...

        Parameters
        ----------
        lam : float, optional
            Any lambda that the path certifies; by default `lambda_`.

        Returns
        -------
        pandas.DataFrame
            A row for each weight: attribute, label, weight. The attribute "A →" is label A at the token before.
        """
        return self._named(lam).frame

    def _named(self, lam: float | None) -> NamedWeights:
        names = columns(self.n_features_in_) if self.vocabulary_ is None else list(self.vocabulary_)
        return NamedWeights.of(self._weights_at(lam), self.classes_, names, self._dense)

    def score(self, X: Samples, y: Samples) -> float:
        """Share of tokens whose label is right; a label that did not occur in training counts as an error.

        Parameters
        ----------
        X : list of sequences
            In the form that `fit` takes.
        y : list of lists
            A true label for each token.

        Returns
        -------
        float
            From 0 to 1.

        Raises
        ------
        ValueError
            If `X` and `y` do not fit together; names the sequence.
        """
        return share_right(paired(X, y).y, self.predict(X))
