"""Blocks held out of training: divided from the others, what models are worth on them, and joined again for a refit.

The refit begins at the path's dual point; blocks that were held out begin at their truth.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from gapwise.records import Facts, Record
from gapwise.stages.choice.criteria import Criterion, refuse_unmeasured
from gapwise.stages.datasets import DataError, Report, taken
from gapwise.stages.model.predict import predict
from gapwise.stages.problems import build, capabilities, structure
from gapwise.stages.problems.capabilities import Capabilities
from gapwise.stages.problems.held_out import VALIDATION, HeldOut
from gapwise.stages.problems.losses import has_void
from gapwise.stages.problems.parallel import HERE, Spread
from gapwise.stages.problems.protocol import Problem
from gapwise.stages.problems.scale import Scale
from gapwise.stages.solver.supports import Supports
from gapwise.storage.backend import Location
from gapwise.storage.features import Features, FeatureWriter, damaged, is_complete, open_features
from gapwise.storage.mixture import AnyPath

STORED = ("format_version", "key", "dataset", "reader", "structure", "checked", "files")
"""Entries of a store's meta that are not a reader's facts."""


class SplittingSink:
    """Passes blocks on to the store together with what their structure derives from them (a Gram matrix, ...).

    Blocks of other splits than "train" are only decoded, so stand-ins may take the place of what solving reads.
    `derived` sees the block and the shared arrays put before it, and checks it; errors name split and block as the reader
    counts them. With a rule, the training blocks that it holds out go to the split "validation", as test blocks would.
    """

    def __init__(self, writer: FeatureWriter, name: str, rule: HeldOut | None) -> None:
        self.writer, self.rule = writer, rule
        self.part = part = capabilities(name)
        self.derived, self.for_training = structure(name).derived, part.for_training or dict
        self.stand_ins = part.stand_ins
        self.waiting: dict[str, np.ndarray] = {}
        self.scales: dict[str, Scale] = defaultdict(lambda: Scale(name, part))
        self.shared: dict[str, np.ndarray] = {}
        self.blocks: Counter[str] = Counter()
        self.labels: Counter[int] = Counter()
        self.unit, self.counted = 0.0, 0

    def append(self, split: str, **arrays: np.ndarray) -> None:
        number = self.blocks[split]
        target = self.target(split, number)
        if target == "train":
            arrays = self.for_training(arrays)
        made = self.derived if target == "train" or self.stand_ins is None else self.stand_ins
        try:
            more = made(**{**self.shared, **arrays})
        except ValueError as error:
            raise DataError(f"{split} block {number}: {error}") from error
        self._look(split, arrays, number)
        self.write(target, {**arrays, **more})
        self.blocks[split] += 1

    def write(self, target: str, block: Mapping[str, np.ndarray]) -> None:
        """Write a block into the split `target`, and count its labels if it is for training."""
        self.writer.append(target, **block)
        if target == "train" and "labels" in block:
            self.labels.update(np.asarray(block["labels"]).ravel().tolist())
            if self.part.unit is not None:
                self.unit += self.part.unit.total(block)
                self.counted += 1

    def target(self, split: str, number: int) -> str:
        """The split that block `number` of the reader's `split` goes to."""
        return VALIDATION if split == "train" and self.rule is not None and self.rule(number) else split

    def _look(self, split: str, arrays: Mapping[str, np.ndarray], block: int | None = None) -> None:
        """Check the sizes of features; of arrays that are `put`, rows are counted."""
        try:
            self.scales[split].see(arrays, block)
        except ValueError as error:
            raise DataError(f"{split}: {error}") from error

    def put(self, split: str, name: str, array: np.ndarray) -> None:
        self._look(split, {name: array})
        if split == "train" and self.rule is not None:
            self.waiting[name] = array
        else:
            self.writer.put(split, name, array)
        if split == "":
            self.shared[name] = array

    def finish(self, facts: Record) -> Record:
        """The reader's `facts` with the sizes of the splits; stores the numbers that blocks had before they were divided.

        Where the loss depends on how often each label occurs in training, the fact ``label_counts`` says it; where it has a
        unit (`Capabilities.unit`), the facts hold that. Blocks that are held out are not counted. DataError if a split would
        be empty, if there are fewer blocks than folds, if all features are too small, or if there is one label only, which
        leaves nothing to learn.
        """
        if facts.get("classes") == 1:
            names = [*facts.get("label_names", ()), *facts.get("class_names", ())]
            named = f"{names[0]!r}" if names else "the same one for all"
            raise DataError(
                f"train: expected at least two labels, got one only: {named}; look whether the labels are right"
            )
        try:
            self.scales["train"].end()
        except ValueError as error:
            raise DataError(f"train: {error}") from error
        if self.part.unit is not None:
            facts = self.part.unit.added(facts, self.unit, self.counted)
        if self.rule is None:
            return facts
        if "label_counts" in facts:
            facts = {**facts, "label_counts": [self.labels[k] for k in range(len(facts["label_counts"]))]}
        blocks = max(
            [self.blocks["train"], *(len(self.waiting[name]) for name in self.part.whole if name in self.waiting)]
        )
        held_out = self.rule.among(blocks)
        if not blocks:  # all were `put`, none under a name that the structure's `whole` has
            raise DataError("dataset.validation: this data set's blocks are written at once and cannot be divided")
        if self.rule.fold is not None and blocks * self.rule.share < 1:
            folds = f"{1 / self.rule.share} folds of {blocks} training blocks"
            raise DataError(f"dataset.validation: {folds}; ask for at most as many folds as blocks")
        if held_out.all() or not held_out.any():
            which = "every one" if held_out.any() else "none"
            share = f"a share of {float(self.rule.share):g} holds out {which} of {blocks} training blocks"
            raise DataError(f"dataset.validation: {share}; at least one is needed on either side")
        for split, part in (("train", ~held_out), (VALIDATION, held_out)):
            self.writer.put(split, "block", np.flatnonzero(part))
            for name, array in taken(self.waiting, self.part, part).items():
                self.writer.put(split, name, array)
        counts = {"n_train": int(np.sum(~held_out)), "n_validation": int(np.sum(held_out))}
        return {**facts, **counts}


def divisible(whole: Location) -> Features | None:
    """The features at `whole` if they are there, undamaged, and what a training block is does not depend on its split."""
    if not is_complete(whole) or damaged(whole) is not None:
        return None
    store = open_features(whole)
    differs = capabilities(store.meta["structure"]).for_training and has_void(store.arrays("train")["labels"])
    return None if differs else store


def divide(whole: Features, writer: FeatureWriter, sink: SplittingSink, report: Report) -> Record:
    """Write the arrays of `whole`, its training blocks into the splits that `sink` has for them; returns its facts."""
    for file in sorted(whole.meta["files"]):
        folder, name = file.removesuffix(".npy").split("/")
        if folder != "train":
            writer.put("" if folder == "shared" else folder, name, whole.arrays(folder)[name])
    arrays = _own(whole, "train")
    for name in sorted(set(arrays) - _one_by_one(arrays)):
        sink.put("train", name, arrays[name])
    total = _count(arrays)
    for number, block in enumerate(_blocks(arrays)):
        target = sink.target("train", number)
        if target != "train" and sink.stand_ins is not None:
            block |= sink.stand_ins(**block)
        sink.write(target, block)
        report(number + 1, total, "dividing the features")
    sink.blocks["train"] = total
    return {name: fact for name, fact in whole.meta.items() if name not in STORED}


def join(store: Features, target: Location, report: Report) -> None:
    """Write the training blocks of `store`, and behind them its validation blocks, into the split "train" of a new store.

    `target` has no other split. Facts stay those of `store`, such as the unit of the loss in which lambda was chosen.
    """
    name = store.meta["structure"]
    part, derived = capabilities(name), structure(name).derived
    shared, splits = store.arrays("shared"), [_own(store, split) for split in ("train", VALIDATION)]
    with FeatureWriter(target) as writer:
        for array in _own(store, "shared"):
            writer.put("", array, shared[array])
        for array in sorted(set(splits[0]) - _one_by_one(splits[0])):
            writer.put("train", array, _behind(part, array, *(split[array] for split in splits)))
        first, total = _count(splits[0]), sum(map(_count, splits))
        for number, block in enumerate(chain.from_iterable(map(_blocks, splits))):
            if number >= first and (part.for_training or part.stand_ins):  # it lacks what training blocks have
                block = dict((part.for_training or dict)(block))
                block |= derived(**{**shared, **block})
            writer.append("train", **block)
            report(number + 1, total, "joining the features")
        writer.meta = {fact: value for fact, value in store.meta.items() if fact != "files"}


def _behind(part: Capabilities, name: str, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """An array that readers write at once, of the blocks of two splits one after the other."""
    if name in part.rows[:1]:
        return np.append(first, first[-1] + second[1:])
    if name in (*part.whole, *part.rows, "block"):
        return np.concatenate([first, second])
    if name in part.split_names:
        return np.frombuffer(b"\n".join(dict.fromkeys((first.tobytes(), second.tobytes()))), np.uint8)
    return first


def _own(store: Features, split: str) -> dict[str, np.ndarray]:
    """Arrays of a split by name, without the shared ones."""
    names = [file.removesuffix(".npy").split("/")[1] for file in store.meta["files"] if file.startswith(f"{split}/")]
    arrays = store.arrays(split)
    return {name: arrays[name] for name in sorted(names)}


def _one_by_one(arrays: Mapping[str, np.ndarray]) -> set[str]:
    """The arrays that a reader wrote block by block, and their pointers ``<name>_ptr``."""
    return {other for name in arrays if f"{name}_ptr" in arrays for other in (name, f"{name}_ptr")}


def _count(arrays: Mapping[str, np.ndarray]) -> int:
    """The number of blocks that a reader wrote one by one."""
    return max((len(arrays[name]) - 1 for name in _one_by_one(arrays) if name.endswith("_ptr")), default=0)


def _blocks(arrays: Mapping[str, np.ndarray]) -> Iterator[dict[str, np.ndarray]]:
    """The blocks that a reader wrote one by one."""
    names = [name for name in arrays if f"{name}_ptr" in arrays]
    for block in range(_count(arrays)):
        yield {name: arrays[name][slice(*arrays[f"{name}_ptr"][block : block + 2])] for name in names}


class Held(NamedTuple):
    """Held-out blocks, as the `split` of a feature store, or in memory."""

    structure: str
    problem: Problem
    arrays: Mapping[str, np.ndarray]
    """what the structure's measures read"""
    split: str = "train"

    @classmethod
    def of(cls, name: str, arrays: Mapping[str, np.ndarray], meta: Facts, split: str = "train") -> Held:
        """The blocks of a structure's arrays."""
        return cls(name, build(name, arrays, meta), arrays, split)

    @classmethod
    def stored(cls, features: Location, split: str) -> Held:
        """A split of a feature store."""
        store = open_features(features)
        return cls.of(store.meta["structure"], store.arrays(split), store.meta, split)

    def refuse_unmeasured(self, by: Criterion) -> None:
        """Raise ValueError if these blocks do not have the criterion."""
        refuse_unmeasured("criterion", by, self.problem, self.arrays, self.structure)

    def values(self, w: np.ndarray, by: Criterion, spread: Spread = HERE) -> np.ndarray:
        """The task losses of the blocks at w, (blocks,), or the criterion of all together, (1,)."""
        labels, losses = predict(self.problem, w, spread, self.split)
        return losses if by.is_loss else np.array([self.measures(labels)[by.name]])

    def measures(self, labels: np.ndarray) -> dict[str, float]:
        """The structure's measures of predicted labels, flat like truth."""
        return structure(self.structure).metrics(self.problem, self.arrays, labels)


def of_each(
    models: Iterable[np.ndarray], of: Callable[[np.ndarray], Any], done: Callable[[int], object] = lambda count: None
) -> np.ndarray:
    """`of(w)` of each model, stacked; models that are equal to the one before are not asked again, as decoding takes time.

    `done` hears how many there are so far.
    """
    rows: list[Any] = []
    before: np.ndarray | None = None
    for w in models:
        rows.append(rows[-1] if before is not None and np.array_equal(w, before) else of(w))
        before = w
        done(len(rows))
    return np.array(rows)


def supports_of(path: AnyPath, row: int) -> Supports:
    """The dual solution at a breakpoint."""
    offset = np.asarray(path["support_offset"][row])
    atoms = slice(int(offset[0]), int(offset[-1]))
    label_offset = np.asarray(path["label_offset"][atoms.start : atoms.stop + 1])
    labels = np.asarray(path["support_label"][int(label_offset[0]) : int(label_offset[-1])])
    alpha, losses = np.asarray(path["support_alpha"][atoms]), np.asarray(path["support_loss"][atoms])
    used = np.zeros(alpha.size, np.int64)
    return Supports(offset - offset[0], alpha, losses, used, labels, label_offset - label_offset[0])


def nearest(path: AnyPath, lam: float) -> int:
    """The breakpoint nearest to lambda, on a logarithmic scale."""
    return int(np.argmin(np.abs(np.log(np.asarray(path["lambda"]) / lam))))


def start_of_all(whole: Problem, path: AnyPath, lam: float) -> Supports | None:
    """The dual point at which all blocks begin at lambda; None: at w = 0, as the path has no dual solutions.

    Parameters
    ----------
    whole : Problem
        All blocks: first those of the path, then those that were held out.
    path : SolvedPath or PathInMemory
        Of the first blocks.
    """
    return extended(supports_of(path, nearest(path, lam)), whole) if path.attrs["dual_point"] else None


def extended(supports: Supports, whole: Problem) -> Supports:
    """`supports` of the first blocks of `whole`; each block behind them has its truth alone, with weight 1."""
    first = supports.offset.size - 1
    more, ptr = whole.n - first, whole.label_ptr[first:]
    return Supports(
        np.append(supports.offset, supports.offset[-1] + np.arange(1, more + 1)),
        np.append(supports.alpha, np.ones(more)),
        np.append(supports.losses, np.zeros(more)),
        np.append(supports.used, np.zeros(more, np.int64)),
        np.append(supports.label.astype(whole.truth.dtype), whole.truth[ptr[0] :]),
        np.append(supports.label_offset, supports.label_offset[-1] + ptr[1:] - ptr[0]),
    )
