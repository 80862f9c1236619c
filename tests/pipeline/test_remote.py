"""What a worker does with an errand: the same bits, and features on an object store fetched once for a machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from locations import KINDS, fresh
from tiny.potts import potts_blocks

from gapwise.pipeline.compute import remote
from gapwise.pipeline.compute.remote import Sender, opened, published
from gapwise.stages.featurize import open_problem
from gapwise.stages.problems.parallel import HERE, Spread
from gapwise.stages.solver.oracles import Answers, answers_at
from gapwise.storage.backend import UrlPath
from gapwise.storage.features import FeatureWriter
from gapwise.storage.files import make_directory

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


def same(first: Answers, second: Answers) -> bool:
    return all(a.tobytes() == b.tobytes() for a, b in zip(first, second, strict=True))


def test_errands__fetch_the_features_once_and_give_the_same_bits(
    features: UrlPath, objects: UrlPath, tmp_path: Path, monkeypatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("GAPWISE_CACHE", str(tmp_path / "first machine"))
        problem = open_problem(features, "train")
    w, spread = np.abs(np.random.default_rng(1).normal(size=problem.d)), worker(features, objects / "w")
    for blocks in (range(BLOCKS // 7), np.array([3, BLOCKS - 1, 20]), range(BLOCKS)):
        assert same(answers_at(problem, w, blocks, spread), answers_at(problem, w, blocks, HERE))
    (copy,) = (tmp_path / "another" / "features").glob("f-*/meta.json")
    assert copy.read_bytes() == (features / "meta.json").read_bytes()
    assert opened.cache_info().misses == 1


def test_opened__says_where_workers_do_not_see_the_features(objects: UrlPath) -> None:
    with pytest.raises(remote.WorkerError, match=r"does not see the features in .*run\.root has"):
        opened(str(objects / "nowhere"), "train")


@pytest.mark.parametrize("kind", KINDS)
def test_weights__are_there_for_as_long_as_they_are_needed(kind: str, cache: Path, request) -> None:
    w, root = np.random.default_rng(0).normal(size=7), fresh(kind, request)
    make_directory(root)
    with published(root / ".tmp-weights", w) as first, published(root / ".tmp-weights", 2 * w) as second:
        assert remote._weights(str(first)).tobytes() == w.tobytes()
        assert remote._weights(str(second)).tobytes() == (2 * w).tobytes()
    assert list(root.iterdir()) == []
    remote._weights.cache_clear()
    with pytest.raises(remote.WorkerError, match="where a file was published"):
        remote._weights(str(first))
