"""Foreground and background: pictures with masks, or graphs of superpixels with features of one's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Self, TypeAlias

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from gapwise.pipeline.compute.local import Compute
from gapwise.pipeline.estimators.base import GapwiseEstimator
from gapwise.pipeline.estimators.choices import refuse, seed_of, workers_of
from gapwise.pipeline.estimators.data import Data, Samples, listed, pairs, weighted
from gapwise.pipeline.estimators.solving import computing
from gapwise.records import Record
from gapwise.stages.datasets import NEW, Blocks
from gapwise.stages.datasets.vision.options import FeatureOptions
from gapwise.stages.datasets.vision.pictures import Picture, featurize_pictures
from gapwise.stages.datasets.vision.reader import PictureEncoder, picture_encoder
from gapwise.stages.model.measures import picture_score
from gapwise.stages.problems import build
from gapwise.stages.problems.images.graph import PIXELS
from gapwise.stages.problems.losses import BALANCED, BLOCK_WEIGHT, PICTURE_LOSSES, with_unit
from gapwise.stages.problems.protocol import Problem
from gapwise.stages.problems.scale import check_single
from gapwise.storage.backend import Location

Graph: TypeAlias = dict[str, np.ndarray]
"""A picture as a graph of superpixels, with its arrays unary, edges, pairwise and area."""

WIDTHS = ("unary", "pairwise")
"""Features whose numbers of columns all graphs share."""


@dataclass(kw_only=True, eq=False, repr=False)
class SegmentationSVM(GapwiseEstimator):
    """Structured SVM for binary segmentation (the structure `segmentation`): superpixels with unary features, neighbours
    with pairwise features whose weights are >= 0, decoding by one minimum cut.

    Parameters
    ----------
    lam, tolerance, eps, validation, pick, criterion, calibration
        As for every estimator: see `GapwiseEstimator`.
    superpixels : int
        Of pictures: about how many superpixels each is divided into.
    colour_words, sift_words : int
        Of pictures: sizes of the two vocabularies, learnt on the training pictures (O16 appendix).
    pairwise : bool
        Of pictures: False for a model of single superpixels.
    loss : str
        "balanced": the mean of two shares by area, of missed foreground and of missed background. "per_image": the share of
        wrong pixels. "per_pixel": wrong pixels / mean pixels of the training pictures, so that a wrong pixel costs the same
        in all pictures.
    solver, max_passes, max_seconds, verify, warm_start, n_jobs, random_state
        As for every estimator, too.

    Attributes
    ----------
    coef_ : array, shape (d,)
        Weights at `lambda_`: first of unary features, then of pairwise features.
    lambda_, path_, refit_, certificate_, calibration_
        As in `GapwiseEstimator`.

    Examples
    --------
    Graphs of three superpixels in a row, with one feature each:

    >>> edges = np.array([[0, 1], [1, 2]])
    >>> X = [
    ...     {"unary": np.array(values).reshape(3, 1), "edges": edges, "pairwise": np.ones((2, 1)), "area": np.ones(3)}
    ...     for values in ([-1.0, -1.0, 1.0], [1.0, 1.0, -1.0])
    ... ]
    >>> model = SegmentationSVM(lam=0.1).fit(X, [[0, 0, 1], [1, 1, 0]])
    >>> [labels.tolist() for labels in model.predict(X)]
    [[0, 0, 1], [1, 1, 0]]
    """

    _structure = "segmentation"

    superpixels: int = 147
    colour_words: int = 128
    sift_words: int = 512
    pairwise: bool = True
    loss: str = BALANCED

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
        X : list
            Pictures, uint8 (H, W, 3), RGB. Or graphs: dicts with ``unary`` (S, D), features of S superpixels, and
            ``edges`` (E, 2), pairs of neighbours from 0. They may also have ``pairwise`` (E, P), features >= 0 of edges,
            and ``area`` (S,) in pixels; both are ones by default.
        y : list
            Masks (H, W), or labels (S,): 0 and 1, or False and True; 1 is the foreground.
        sample_weight : array-like, shape (n,), optional
            Weights >= 0 of the pictures, relative to their mean: the objective is (lam / 2) ||w||^2 plus the weighted mean
            of the hinges. With the same lam, a weight of 2 does what giving a picture twice does. The vocabularies are
            learnt from each picture once.
        run_dir : path or URL, optional
            Where the state is committed: the same call goes on after a kill, to the same bits.

        Raises
        ------
        ValueError
            If data or a parameter cannot be used; names the picture and the field.
        """
        return self._fit(X, y, sample_weight, run_dir)

    def _checked(self, X: Samples, y: Samples, sample_weight: npt.ArrayLike | None = None) -> Data:
        if self.loss not in PICTURE_LOSSES:
            raise refuse("loss", self.loss, ", ".join(map(repr, PICTURE_LOSSES)))
        data = weighted(_with_masks(X, y), sample_weight)
        first = data.y[0].flat[0]
        if not any((mask != first).any() for mask in data.y):
            raise ValueError(f"y: expected both labels, got one only: {first}")
        return data

    def _learn(self, sink: Blocks, train: Data, held: Data | None, compute: Compute) -> Record:
        self._encoder: PictureEncoder | None = None
        for split, data in (("train", train), ("test", held)):
            if data is not None and data.relative is not None:
                sink.put(split, BLOCK_WEIGHT, data.relative)
        if isinstance(train.x[0], dict):
            self._widths: dict[str, int] = {name: train.x[0][name].shape[1] for name in WIDTHS}
            for split, data in (("train", train), ("test", held)):
                for number, (graph, labels) in enumerate(zip(data.x, data.y, strict=True) if data else ()):
                    sink.append(split, **self._graph(number, graph), labels=labels, foreground=graph["area"] * labels)
            return with_unit(PIXELS, {"loss": self.loss}, sink.arrays("train"))
        return self._learn_pictures(sink, train, held, compute)

    def _learn_pictures(self, sink: Blocks, train: Data, held: Data | None, compute: Compute) -> Record:
        parts = {"train": train, "test": held or Data(train.x[:1], train.y[:1])}
        names = ("superpixels", "colour_words", "sift_words")
        for name in names:
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
                raise refuse(name, value, "a whole number >= 1")
        options = FeatureOptions(**{name: int(getattr(self, name)) for name in names}, pairwise=bool(self.pairwise))
        items = {split: [(split, i) for i in range(len(data.x))] for split, data in parts.items()}

        def load(item: tuple[str, int]) -> Picture:
            data = parts[item[0]]
            return Picture(data.x[item[1]], data.y[item[1]])

        seed = seed_of(self.random_state)
        facts = featurize_pictures(load, items, options, seed, sink, compute.map_blocks, lambda *_: None)
        self._encoder = picture_encoder(facts, sink.whole[""])
        self._facts = facts
        return with_unit(PIXELS, {**facts, "checked": True, "loss": self.loss}, sink.arrays("train"))

    def _portable(self) -> tuple[Record, dict[str, np.ndarray]] | None:
        if self._encoder is None:
            return None
        words = {"colour_words": self._encoder.words.colour, "sift_words": self._encoder.words.sift}
        return {"dataset": "horses_sample", "structure": "segmentation", **self._facts, "loss": self.loss}, words

    def _graph(self, number: int, graph: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        for name, width in self._widths.items():
            if graph[name].shape[1] != width:
                raise ValueError(f"X: graph {number}: {name} has {graph[name].shape[1]} columns, expected {width}")
        return dict(graph)

    def predict(self, X: Samples, lam: float | None = None) -> list[np.ndarray]:
        """The labelling of largest score, by a minimum cut.

        Parameters
        ----------
        X : list
            Pictures or graphs, in the form that `fit` takes.
        lam : float, optional
            Any lambda that the path certifies; by default `lambda_`.

        Returns
        -------
        list of uint8 arrays
            Masks (H, W) of pictures, or labels (S,) of graphs: 0 and 1.

        Raises
        ------
        ValueError
            If an input is not in the form of the training data, or the path does not certify `lam`.
        """
        new = self._new(X)
        return [] if new is None else self._placed(*new, self._decoded(new[0], lam).astype(np.uint8))

    def decision_function(self, X: Samples, lam: float | None = None) -> list[np.ndarray]:
        """How much better the best labelling scores with a superpixel in the foreground than with it in the background.

        It takes a minimum cut for each superpixel. `predict` says 1 where the difference is positive.

        Parameters
        ----------
        X : list
            Pictures or graphs, in the form that `fit` takes.
        lam : float, optional
            Any lambda that the path certifies; by default `lambda_`.

        Returns
        -------
        list of float64 arrays
            (H, W) of pictures, (S,) of graphs.
        """
        new = self._new(X)
        if new is None:
            return []
        labels, margins, _ = self._scored(new[0], lam)
        return self._placed(*new, np.where(labels == 1, margins, -margins))

    def probabilities(self, X: Samples) -> list[np.ndarray]:
        """The calibrated probability that the label predicted at `lambda_` is right.

        Parameters
        ----------
        X : list
            Pictures or graphs, in the form that `fit` takes.

        Returns
        -------
        list of float64 arrays
            In the shapes of `decision_function`.

        Raises
        ------
        ValueError
            Unless `calibration` asked for probabilities.
        """
        return [self._probable(np.abs(scores)) for scores in self.decision_function(X)]

    def _new(self, X: Samples) -> tuple[Problem, Mapping[str, np.ndarray]] | None:
        """The problem over new inputs, and its arrays; None if there are no inputs."""
        check_is_fitted(self, "lambda_")
        inputs = _inputs(X)
        if not inputs:
            return None
        sink = Blocks(self._structure, decoding=True)
        if isinstance(inputs[0], dict) is (self._encoder is not None):
            raise ValueError(f"X: expected {'pictures' if self._encoder else 'graphs'}, as in training")
        if self._encoder is not None:
            with computing(workers_of(self.n_jobs), None) as compute:
                self._encoder.encode(inputs, sink, compute.map_blocks)
        else:
            for number, graph in enumerate(x for x in inputs if isinstance(x, dict)):
                unknown = np.zeros(len(graph["unary"]), np.uint8)
                sink.append(NEW, **self._graph(number, graph), labels=unknown)
        arrays = sink.arrays(NEW)
        return build(self._structure, arrays, {"checked": True}), arrays

    def _placed(self, problem: Problem, arrays: Mapping[str, np.ndarray], values: np.ndarray) -> list[np.ndarray]:
        """Values of superpixels, flat, by input: of pictures at their pixels."""
        parts = [values[a:b] for a, b in pairwise(problem.label_ptr.tolist())]
        if self._encoder is None:
            return parts
        maps = np.split(arrays["superpixel_map"], arrays["superpixel_map_ptr"][1:-1])
        shapes = arrays["hw"].tolist()
        return [own[pixels].reshape(shape) for own, pixels, shape in zip(parts, maps, shapes, strict=True)]

    def score(self, X: Samples, y: Samples) -> float:
        """1 minus the mean loss: of pictures over pixels, of graphs over superpixels by their area.

        With "per_pixel" it is the share of right pixels of all pictures together.

        Parameters
        ----------
        X, y : list
            Inputs and true labels, in the form that `fit` takes.

        Returns
        -------
        float
            From 0 to 1.
        """
        data = _with_masks(X, y)
        areas = [x["area"] if isinstance(x, dict) else np.ones(x.shape[:2]) for x in data.x]
        return picture_score(self.loss, areas, data.y, self.predict(X))


def _with_masks(X: Samples, y: Samples) -> Data:
    """Inputs with their true labels; ValueError names the first that cannot be used."""
    data = pairs(X, y, "pictures")
    inputs = _inputs(data.x)
    return Data(inputs, [_mask(i, x, labels) for i, (x, labels) in enumerate(zip(inputs, data.y, strict=True))])


def _inputs(X: Samples) -> list[np.ndarray | Graph]:
    """Pictures as arrays, graphs as dicts with all fields; ValueError names the first that is neither."""
    given = enumerate(listed("X", X, "pictures"))
    inputs = [_graph_of(i, x) if isinstance(x, Mapping) else _picture(i, x) for i, x in given]
    if len({isinstance(x, dict) for x in inputs}) > 1:
        raise ValueError("X: expected pictures only or graphs only, got both")
    return inputs


def _picture(i: int, x: object) -> np.ndarray:
    picture = np.asarray(x)
    if picture.dtype != np.uint8 or picture.ndim != 3 or picture.shape[2] != 3 or min(picture.shape[:2]) < 8:
        raise ValueError(
            f"X: picture {i}: expected uint8 (H, W, 3), RGB, at least 8 x 8, or a dict with unary and edges, got "
            f"{picture.dtype} {picture.shape}"
        )
    return picture


def _graph_of(i: int, x: Mapping[str, object]) -> Graph:
    where = f"X: graph {i}"
    for name in ("unary", "edges"):
        if name not in x:
            raise ValueError(f"{where}: expected the fields unary and edges, {name} is missing")
    unary, edges = _numbers(where, "unary", x["unary"]), np.asarray(x["edges"]).reshape(-1, 2)
    size = len(unary)
    if edges.size and edges.dtype.kind not in "iu":
        raise ValueError(f"{where}: expected edges as whole numbers, got {edges.dtype}")
    edges = np.sort(edges, axis=1).astype(np.int32)
    if edges.size and (edges.min() < 0 or edges.max() >= size or (edges[:, 0] == edges[:, 1]).any()):
        raise ValueError(f"{where}: expected edges between different superpixels 0..{size - 1}")
    pairwise = _numbers(where, "pairwise", x.get("pairwise", np.ones((len(edges), 1))))
    if pairwise.size and pairwise.min() < 0:
        raise ValueError(f"{where}: pairwise holds {pairwise.min():g}, expected numbers >= 0: the oracle is a cut")
    area = np.asarray(x.get("area", np.ones(size)), np.float64)
    for name, array, length in (("pairwise", pairwise, len(edges)), ("area", area, size)):
        if len(array) != length:
            raise ValueError(f"{where}: {name} has {len(array)} rows, expected {length}")
    if size == 0 or area.ndim != 1 or not (np.isfinite(area) & (area > 0)).all():
        raise ValueError(f"{where}: expected at least one superpixel, and area (S,) of numbers > 0")
    return {"unary": unary, "edges": edges, "pairwise": pairwise, "area": area}


def _numbers(where: str, name: str, value: object) -> np.ndarray:
    """`value` as float32, two-dimensional and finite."""
    array = np.asarray(value)
    if array.ndim != 2 or array.dtype.kind not in "fiub":
        raise ValueError(f"{where}: expected {name} as numbers in rows and columns, got {array.dtype} {array.shape}")
    check_single(array, lambda k: f"{where}: {name}[{k // array.shape[1]}, {k % array.shape[1]}]")
    array = array.astype(np.float32)
    if not np.isfinite(array).all():
        row, column = np.argwhere(~np.isfinite(array))[0]
        raise ValueError(f"{where}: {name}[{row}, {column}] is NaN or infinite; expected finite numbers")
    return array


def _mask(i: int, x: np.ndarray | Graph, labels: object) -> np.ndarray:
    """The true labels as uint8."""
    mask = np.asarray(labels)
    shape = (len(x["unary"]),) if isinstance(x, dict) else x.shape[:2]
    if mask.shape != shape or mask.dtype.kind not in "iub" or not np.isin(mask, (0, 1)).all():
        got = f"{mask.dtype} {mask.shape}"
        if mask.shape == shape:
            got += f" with the values {np.unique(mask)[:5].tolist()}"
        raise ValueError(f"y: entry {i}: expected {shape} of 0 and 1, got {got}")
    return mask.astype(np.uint8)
