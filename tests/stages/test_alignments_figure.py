"""The figure of alignments shows the links of each kind in their colour."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace

import numpy as np
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from stages.datasets.alignment.links import encoded
from stages.reports.paint import BLUE, GREEN, ORANGE
from stages.reports.run_figures import alignments

COUNTS, COLUMN = np.array([3, 0, 2], np.int16), np.array([0, 1, 2, 1, 2], np.int16)


def run() -> SimpleNamespace:
    """Two copies of a sentence pair; the second word has no candidate, the third one not the first column."""
    links = {"sure": [[0, 0], [1, 1]], "possible": [[0, 0], [1, 1], [0, 2]]}
    one = {"counts": COUNTS, "column": COLUMN, "text": encoded(["a b c", "x y z"]), "number": np.array([101])}
    one |= {name: np.array(pairs, np.int16) for name, pairs in links.items()}
    blocks = {name: np.concatenate([array, array]) for name, array in one.items()}
    blocks |= {f"{name}_ptr": len(array) * np.arange(3) for name, array in one.items()}
    labels = np.array([1, 3, 0, 0, 1, 0], np.uint8)  # words with two links: 00, 02 and 21
    return SimpleNamespace(
        test_blocks=blocks, predictions={"labels": np.tile(labels, 2), "label_ptr": 6 * np.arange(3)}
    )


def test_figure__shows_what_was_found_and_missed():
    pair = alignments.Shown(run(), 1)
    assert pair.found == {(0, 0), (0, 2), (2, 1)}
    assert pair.mistakes == 2  # 21 is wrong, 11 is missed
    figure = Figure()
    alignments.paint(figure, run())
    squares = figure.axes[0].patches
    assert Counter(to_hex(square.get_facecolor()) for square in squares if square.get_fill()) == {
        GREEN: 1, BLUE: 1, ORANGE: 1, "#edf2f7": 1
    }  # fmt: skip
    assert sum(not square.get_fill() for square in squares) == 2
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["a", "b", "c"]


def test_figure__is_for_runs_with_predictions_of_sentences():
    assert alignments.applies(run())
    assert not alignments.applies(SimpleNamespace(test_blocks=run().test_blocks, predictions={}))
    assert not alignments.applies(SimpleNamespace(test_blocks={"hw": 0}, predictions={"labels": 0}))
