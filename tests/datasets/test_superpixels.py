"""Pixels to graph and features: counts by hand, chi^2 by its formula, the same bits for any number of threads, S15's 649."""

from __future__ import annotations

import numpy as np
import pytest
from leaves_home import check_same_bits, made
from memory_sink import MemorySink, problems
from skimage.measure import label
from threadpoolctl import threadpool_limits

from gapwise.stages.datasets import open_dataset
from gapwise.stages.datasets.vision.features import (
    ETAS,
    PAIRS,
    Words,
    learn_words,
    nearest,
    own_columns,
    pairwise_features,
    rings,
    sizes_of,
    unary_features,
)
from gapwise.stages.datasets.vision.horse_scenes import compose
from gapwise.stages.datasets.vision.options import FeatureOptions
from gapwise.stages.datasets.vision.pictures import Picture, featurize_pictures
from gapwise.stages.datasets.vision.superpixels import adjacency, segment, tally

SAMPLE = {"name": "horses_sample", "n_train": 2, "n_test": 1, "superpixels": 20, "colour_words": 3, "sift_words": 4}
WIDTHS = (16, 128, 512)


def stripes(count: int = 4, width: int = 8, height: int = 16) -> np.ndarray:
    """Regions 0..count-1 side by side: a path graph."""
    return np.repeat(np.arange(count), width)[None, :].repeat(height, axis=0)


def words(colours: int, sifts: int) -> Words:
    rng = np.random.default_rng(0)
    return Words(
        rng.integers(256, size=(colours, 3), dtype=np.uint8), rng.integers(160, size=(sifts, 128), dtype=np.uint8)
    )


def test_segment__makes_connected_regions_of_about_the_wanted_number():
    counts = []
    for number in range(4):
        regions = segment(compose(0, 0, number).rgb, 147)
        counts.append(regions.max() + 1)
        assert (np.unique(regions) == np.arange(counts[-1])).all()
        assert label(regions + 1, connectivity=1).max() == counts[-1]
    assert 130 < np.mean(counts) < 165


def test_adjacency__lists_each_touching_pair_once():
    regions = np.array([[0, 0, 1], [2, 0, 1], [2, 3, 3]])
    assert adjacency(regions).tolist() == [[0, 1], [0, 2], [0, 3], [1, 3], [2, 3]]
    assert adjacency(np.zeros((3, 3), int)).shape == (0, 2)


def test_tally__takes_the_majority_and_gives_ties_to_the_background():
    regions = np.array([[0, 0, 1, 1, 1]])
    mask = np.array([[1, 0, 1, 1, 0]])
    counted = tally(regions, mask)
    assert counted["labels"].tolist() == [0, 1]
    assert counted["area"].tolist() == [2, 3]
    assert counted["foreground"].tolist() == [1, 2]


def test_nearest__agrees_with_integer_distances():
    rng = np.random.default_rng(1)
    values, centres = (rng.integers(256, size=(n, 128), dtype=np.uint8) for n in (300, 40))
    centres[7] = centres[3]
    exact = ((values[:, None].astype(np.int64) - centres[None]) ** 2).sum(axis=2)
    assert (nearest(values, centres) == exact.argmin(axis=1)).all()
    assert (nearest(centres, centres)[[3, 7]] == 3).all()


def test_unary_features__has_1969_columns_of_unit_histograms():
    picture = compose(0, 0, 1)
    regions = segment(picture.rgb, 147)
    vocabulary = words(128, 512)
    x = unary_features(picture.rgb, regions, adjacency(regions), vocabulary)
    assert x.shape == (regions.max() + 1, 1969)
    assert x.dtype == np.float32
    assert (x[:, 0] == 1).all()
    start = 1
    for width in np.repeat(vocabulary.widths, 3):
        total = np.square(x[:, start : start + width], dtype=np.float64).sum(axis=1)
        assert (np.isclose(total, 1, atol=1e-6) | (total == 0)).all()
        start += width
    assert np.isclose(np.square(x[:, 1:433], dtype=np.float64).sum(axis=1), 6, atol=1e-5).all()


def test_unary_features__counts_own_neighbours_and_second_neighbours():
    regions = stripes()
    x = unary_features(np.zeros((16, 32, 3), np.uint8), regions, adjacency(regions), words(3, 4))
    own, first, second = (np.square(x[:, 1 + 16 * k : 17 + 16 * k]).reshape(-1, 4, 4).sum(axis=1) for k in range(3))
    assert np.allclose(own, np.eye(4))
    assert np.allclose(first, [[0, 1, 0, 0], [0.5, 0, 0.5, 0], [0, 0.5, 0, 0.5], [0, 0, 1, 0]])
    assert np.allclose(second, [[0, 0, 1, 0], [0, 0, 0, 1], [1, 0, 0, 0], [0, 1, 0, 0]])


def test_rings__second_neighbours_are_exactly_two_steps_away():
    first, second = rings(4, np.array([[0, 1], [0, 2], [1, 2], [2, 3]]))
    assert first.tolist() == [[0, 1, 1, 0], [1, 0, 1, 0], [1, 1, 0, 1], [0, 0, 1, 0]]
    assert second.tolist() == [[0, 0, 0, 1], [0, 0, 0, 1], [0, 0, 0, 0], [1, 1, 0, 0]]


def test_pairwise_features__are_a_constant_and_the_chi2_kernel():
    rng = np.random.default_rng(2)
    widths = (16, 5, 7)
    x = np.concatenate(
        [np.ones((4, 1)), *(np.sqrt(rng.dirichlet(np.ones(w), 4)) for w in np.repeat(widths, 3))], axis=1
    )
    edges = np.array([[0, 1], [1, 3]])
    features = pairwise_features(x, edges, widths)
    assert features.shape == (2, 100)
    expected = []
    for a, b in edges:
        row, start = [1.0], 1
        for width in np.repeat(widths, 3):
            p, q = x[a, start : start + width] ** 2, x[b, start : start + width] ** 2
            row += [np.exp(-eta * 0.5 * sum((p - q) ** 2 / (p + q))) for eta in ETAS]
            start += width
        expected.append(row)
    assert np.allclose(features, expected, atol=1e-6)


def test_pairwise_features__of_a_pair_do_not_depend_on_the_others():
    rng, widths = np.random.default_rng(0), (16, 8, 130)
    x = np.sqrt(rng.dirichlet(np.full(1 + 3 * sum(widths), 0.1), 30)).astype(np.float32)
    edges = rng.integers(30, size=(3 * PAIRS + 5, 2))
    alone = [pairwise_features(x, pair[None], widths) for pair in edges]
    np.testing.assert_array_equal(pairwise_features(x, edges, widths), np.concatenate(alone))
    assert pairwise_features(x, edges[:0], widths).shape == (0, 100)


def test_learn_words__does_not_depend_on_the_number_of_threads():
    samples = np.random.default_rng(3).integers(200, size=(6000, 128), dtype=np.uint8)
    learned = []
    for threads in (1, 2):
        with threadpool_limits(limits=threads):
            learned.append(learn_words(samples, 40, seed=0, option="sift_words"))
    assert (learned[0] == learned[1]).all()
    assert len(np.unique(learned[0], axis=0)) == 40


def load(item: Picture) -> Picture:
    return item


def features_of(train: list[Picture], test: list[Picture], pairwise: bool = True) -> MemorySink:
    sink = MemorySink("segmentation")
    options = FeatureOptions(superpixels=30, colour_words=8, sift_words=10, pairwise=pairwise)
    featurize_pictures(load, {"train": train, "test": test}, options, 0, sink, map, lambda *_: None)
    return sink


def test_featurize_pictures__learns_its_vocabularies_on_training_pictures_only():
    scenes = [compose(0, 0, number) for number in range(4)]
    first, other, swapped = (
        features_of(scenes[:2], [scenes[2]]),
        features_of(scenes[:2], [scenes[3]]),
        features_of([scenes[0], scenes[3]], [scenes[2]]),
    )
    for name in ("colour_words", "sift_words"):
        assert (first.whole[""][name] == other.whole[""][name]).all()
        assert (first.whole[""][name] != swapped.whole[""][name]).any()
    assert (first.arrays("train")["unary"] == other.arrays("train")["unary"]).all()


def test_columns__are_649_and_those_of_the_superpixel():
    rng, starts = np.random.default_rng(0), np.cumsum([1, *np.repeat(WIDTHS, 3)])
    shares = [rng.dirichlet(np.full(width, 0.3), size=5) for width in np.repeat(WIDTHS, 3)]
    rows = np.concatenate([np.ones((5, 1)), *(np.sqrt(share) for share in shares)], axis=1).astype(np.float32)
    assert rows.shape == (5, 1969)
    columns = own_columns(rows, WIDTHS)
    assert columns.shape == (5, 649) == (5, sizes_of(WIDTHS, own=True)["d_unary"])
    assert columns.dtype == np.float32
    assert (columns[:, 0] == 1.0).all()
    cells = shares[0].reshape(5, 4, 4)
    np.testing.assert_allclose(columns[:, 1:5] ** 2, cells.sum(axis=2), atol=1e-6)
    np.testing.assert_allclose(columns[:, 5:9] ** 2, cells.sum(axis=1), atol=1e-6)
    assert (columns[:, 9:137] == rows[:, starts[3] : starts[3] + 128]).all()
    assert (columns[:, 137:] == rows[:, starts[6] : starts[6] + 512]).all()
    for group in (columns[:, 1:5], columns[:, 5:9], columns[:, 9:137], columns[:, 137:]):
        np.testing.assert_allclose((group**2).sum(axis=1), 1.0, rtol=1e-5)


@pytest.mark.parametrize(("potts", "weight"), [(None, 1.0), (0.25, 0.25)])
def test_s15__has_one_pairwise_weight_that_is_fixed(potts, weight):
    train, test, sink, meta = problems(open_dataset("horses_sample", {**SAMPLE, "features": "s15", "potts": potts}))
    assert train.d - 1 == test.d - 1 == meta["d_unary"] == 1 + 8 + 3 + 4
    assert meta["potts"] == weight
    assert train.lower[-1:] == train.upper[-1:] == test.upper[-1:] == [weight]
    assert (train.pairwise == 1.0).all()
    assert len(train.pairwise) == len(sink.arrays("train")["edges"]) > 0
    whole, _, other, _ = problems(open_dataset("horses_sample", SAMPLE))
    for name in ("edges", "labels", "area", "foreground"):  # only the features differ
        assert (sink.arrays("train")[name] == other.arrays("train")[name]).all()
    np.testing.assert_array_equal(sink.arrays("train")["unary"], own_columns(whole.unary, (16, 3, 4)))


def test_new_pictures__are_encoded_as_featurized(tmp_path):
    feature_map, stored = made({**SAMPLE, "features": "s15"}, tmp_path)
    check_same_bits(feature_map.encode([compose(0, 1, 0).rgb]), stored, pictures=True)
