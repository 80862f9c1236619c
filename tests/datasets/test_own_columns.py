"""`dataset.features=s15`: 649 columns of the superpixel alone, Potts terms of a fixed weight; other keys do not change."""

from __future__ import annotations

import numpy as np
import pytest
from leaves_home import check_same_bits, made
from memory_sink import problems

from gapwise.stages.datasets import open_dataset
from gapwise.stages.datasets.vision.horse_scenes import compose
from gapwise.stages.datasets.vision.own_columns import own_columns, own_width

SAMPLE = {"name": "horses_sample", "n_train": 2, "n_test": 1, "superpixels": 20, "colour_words": 3, "sift_words": 4}
WIDTHS = (16, 128, 512)


def test_columns__are_649_and_those_of_the_superpixel():
    rng, starts = np.random.default_rng(0), np.cumsum([1, *np.repeat(WIDTHS, 3)])
    shares = [rng.dirichlet(np.full(width, 0.3), size=5) for width in np.repeat(WIDTHS, 3)]
    rows = np.concatenate([np.ones((5, 1)), *(np.sqrt(share) for share in shares)], axis=1).astype(np.float32)
    assert rows.shape == (5, 1969)
    columns = own_columns(rows, WIDTHS)
    assert columns.shape == (5, 649) == (5, own_width(WIDTHS))
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


def test_weight__may_be_fixed_with_all_features():
    train, _, _, meta = problems(open_dataset("horses_sample", {**SAMPLE, "potts": 0.5}))
    whole, _, _, _ = problems(open_dataset("horses_sample", SAMPLE))
    assert train.d == whole.d == meta["d_unary"] + 100
    assert (train.lower[-100:] == 0.5).all()
    assert (train.upper[-100:] == 0.5).all()


def test_new_pictures__are_encoded_as_featurized(tmp_path):
    feature_map, stored = made({**SAMPLE, "features": "s15"}, tmp_path)
    check_same_bits(feature_map.encode([compose(0, 1, 0).rgb]), stored, pictures=True)
