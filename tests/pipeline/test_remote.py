"""What a worker does with an errand: the same bits, and of features on an object store the ranges of its blocks alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tiny.potts import potts_blocks

from gapwise.pipeline.compute import remote
from gapwise.pipeline.compute.remote import Sender, opened
from gapwise.stages.featurize import open_problem
from gapwise.stages.problems.parallel import HERE, Spread
from gapwise.stages.solver.oracles import Answers, answers_at
from gapwise.storage.backend import UrlPath
from gapwise.storage.features import FeatureWriter
from gapwise.storage.ranges import RangedArrays

BLOCKS = 70


@pytest.fixture
def features(objects: UrlPath, tmp_path: Path, monkeypatch) -> Iterator[UrlPath]:
    """Features that another machine has made."""
    monkeypatch.setenv("GAPWISE_CACHE", str(tmp_path / "first machine"))
    with FeatureWriter(objects / "f") as writer:
        for block in potts_blocks(classes=2, n=BLOCKS):
            writer.append("train", **block)
        writer.meta = {"structure": "segmentation", "checked": True}
    monkeypatch.setenv("GAPWISE_CACHE", str(tmp_path / "another"))
    opened.cache_clear()
    yield objects / "f"
    opened.cache_clear()


def worker(features: UrlPath, folder: UrlPath) -> Spread:
    """A worker in this process."""
    return Spread(elsewhere=Sender(lambda fn, items, places=None: [fn(item) for item in items], features, folder))


def ranged_of(features: UrlPath) -> RangedArrays:
    ranged = opened(str(features), "train")[1]
    assert ranged is not None
    return ranged


def same(first: Answers, second: Answers) -> bool:
    return all(a.tobytes() == b.tobytes() for a, b in zip(first, second, strict=True))


def test_errands__read_the_features_of_their_blocks_and_give_the_same_bits(
    features: UrlPath, objects: UrlPath, tmp_path: Path, monkeypatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("GAPWISE_CACHE", str(tmp_path / "first machine"))
        problem = open_problem(features, "train")
    w, spread = np.abs(np.random.default_rng(1).normal(size=problem.d)), worker(features, objects / "w")
    ranged = ranged_of(features)
    before, sizes = ranged.fetched, {name: ranged[name].nbytes for name in ranged.ranged}
    assert "unary" in sizes
    assert "gram" not in sizes or sizes["gram"] > 0
    share = range(BLOCKS // 7)
    assert same(answers_at(problem, w, share, spread), answers_at(problem, w, share, HERE))
    read = ranged.fetched - before
    assert 0 < read < 0.2 * sum(sizes.values())
    answers_at(problem, 2.0 * w, share, spread)
    assert ranged.fetched - before == read, "they are here now"
    few = np.array([3, BLOCKS - 1, 20])
    assert same(answers_at(problem, w, few, spread), answers_at(problem, w, few, HERE))
    assert same(answers_at(problem, w, range(BLOCKS), spread), answers_at(problem, w, range(BLOCKS), HERE))
    assert ranged.fetched - before == sum(sizes.values()), "everything once"
    assert not list((tmp_path / "another").rglob("*.npy")), "no copy of the store"


def test_errands__on_a_machine_with_a_copy_read_the_copy(features: UrlPath, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("GAPWISE_CACHE", str(tmp_path / "first machine"))
    assert opened(str(features), "train")[1] is None


def test_opened__says_where_workers_do_not_see_the_features(objects: UrlPath) -> None:
    with pytest.raises(remote.WorkerError, match=r"does not see the features in .*run\.root has"):
        opened(str(objects / "nowhere"), "train")
