"""Hansards: a synthetic specimen in the publisher's layout, from text to links and back, and errors with line numbers."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from memory_sink import problems, read
from tiny.matching_instances import links

from gapwise.stages.datasets import DataError, open_dataset
from gapwise.stages.datasets.alignment.lexicon import (
    MODEL_1,
    MODEL_2,
    NULL,
    TENSION,
    learn,
)
from gapwise.stages.datasets.alignment.sentences import english, french, normal, read_links, read_pairs, word_pair
from gapwise.stages.problems.matching.metrics import metrics

WORDS = {"the": "le", "house": "chambre", "votes": "vote", "bill": "projet", "today": "maintenant", "member": "député"}
SENTENCES = 104


def pair(rng) -> tuple[list[str], list[str], list[str]]:
    """A sentence, its translation with two words exchanged now and then, and the true links."""
    e = list(rng.permutation(list(WORDS))[: rng.integers(2, 6)])
    order = np.arange(len(e))
    if rng.random() < 0.3:
        order[:2] = 1, 0
    f = [WORDS[e[k]] for k in order]
    links = [f"{int(k) + 1} {position + 1} S" for position, k in enumerate(order)]
    return [*e, "."], [*f, "."], [*links, f"{len(e) + 1} {len(e) + 1} P"]


def write(folder: Path) -> dict:
    """The publisher's files, and the option that names them."""
    rng = np.random.default_rng(0)
    for name, count in (("dev", 3), ("test", SENTENCES)):
        made = [pair(rng) for _ in range(count)]
        (folder / f"{name}.e").write_text("".join(" ".join(e) + " \n" for e, _, _ in made), encoding="utf-8")
        (folder / f"{name}.f").write_text("".join(" ".join(f) + " \n" for _, f, _ in made), encoding="utf-8")
        lines = [f"{n:04d} {link}\n" for n, (_, _, links) in enumerate(made, 1) for link in links]
        (folder / f"{name}.wa.nonullalign").write_text("".join(lines))
    made = [pair(rng) for _ in range(80)]
    for k, name in enumerate(("en", "fr")):
        text = "".join(" ".join(m[k][:-1]).capitalize() + ".\n" for m in made).replace("é", "e")
        (folder / f"parallel_100k.{name}.gz").write_bytes(gzip.compress(text.encode()))
    return {"root": str(folder)}


@pytest.fixture(scope="module")
def root(tmp_path_factory) -> dict:
    return write(tmp_path_factory.mktemp("hansards"))


@pytest.fixture(scope="module")
def made(root):
    """Train and test problem, arrays, facts."""
    train, test, sink, meta = problems(open_dataset("hansards", {**root, "size": "both", "sentences": 10}))
    return train, test, sink, {**meta, "dataset": "hansards", "structure": "matching"}


def test_hansards__splits_are_those_of_the_papers(made):
    train, test, sink, meta = made
    assert (train.n, test.n, train.d) == (3 + 100 + 10, SENTENCES - 100, 82)
    assert (meta["n_train"], meta["n_test"], len(meta["feature_names"])) == (113, 4, 82)
    assert np.asarray(sink.arrays("test")["number"]).tolist() == [101, 102, 103, 104]


def test_hansards__truth_is_what_the_annotators_are_sure_of(made, root):
    _, test, sink, _ = made
    lines = (Path(root["root"]) / "test.wa.nonullalign").read_text().split("\n")[:-1]
    for i in range(test.n):
        own = [line.split()[1:] for line in lines if int(line.split()[0]) == 101 + i]
        expected = sorted((int(e) - 1, int(f) - 1) for e, f, letter in own if letter == "S")
        assert links(test, i, test.truth[test.label_ptr[i] : test.label_ptr[i + 1]]) == expected
    lost = metrics(test, sink.arrays("test"), np.zeros_like(test.truth))
    assert lost == {"aer": 1.0, "precision": 0.0, "recall": 0.0}


def test_hansards__automatic_links_find_the_translations(made):
    train, _, sink, _ = made
    arrays = sink.arrays("train")
    right = wrong = 0
    for i in range(103, 113):
        e, f = word_pair(arrays, i)
        for j, k in links(train, i, train.truth[train.label_ptr[i] : train.label_ptr[i + 1]]):
            good = normal({**WORDS, ".": "."}[e[j]]) == f[k]
            right, wrong = right + good, wrong + (not good)
    assert right > 30
    assert wrong <= 2


def expected_by_hand(come: list[list[str]], from_: list[list[str]]) -> dict[tuple[str, str], float]:
    """t(word | source) by EM as the papers write it, with dicts."""
    words = {word for sentence in come for word in sentence}
    t = {(w, s): 1 / len(words) for a, b in zip(come, from_, strict=True) for w in a for s in [*b, None]}
    for step in range(MODEL_1 + MODEL_2):
        counts = dict.fromkeys(t, 0.0)
        for a, b in zip(come, from_, strict=True):
            for q, w in enumerate(a):
                far = [abs((s + 0.5) / len(b) - (q + 0.5) / len(a)) for s in range(len(b))]
                near = np.exp(-TENSION * np.array(far)) if step >= MODEL_1 else np.ones(len(b))
                share = [*((1 - NULL) * near / near.sum() * [t[w, s] for s in b]), NULL * t[w, None]]
                for s, part in zip([*b, None], share, strict=True):
                    counts[w, s] += part / sum(share)
        total = {s: sum(counts[pair] for pair in t if pair[1] == s) for _, s in t}
        t = {(w, s): counts[w, s] / total[s] for w, s in t}
    return t


def test_lexicon__is_what_em_by_hand_gives():
    rng = np.random.default_rng(0)
    e, f = ([[*rng.choice([*letters], size=rng.integers(1, 6))] for _ in range(30)] for letters in ("abcde", "ABCDEFG"))
    lexicon = learn(e, f)
    t, back = expected_by_hand(f, e), expected_by_hand(e, f)
    statistics = lexicon.of(np.arange(len(lexicon.english)), np.arange(len(lexicon.french)))
    for a, row in zip(lexicon.english, statistics, strict=True):
        for b, (both, forward, backward) in zip(lexicon.french, row, strict=True):
            assert both == sum(a in x and b in y for x, y in zip(e, f, strict=True))
            np.testing.assert_allclose((forward, backward), (t.get((b, a), 0), back.get((a, b), 0)), atol=1e-6)
    assert lexicon.english_counts.tolist() == [sum(word in sentence for sentence in e) for word in lexicon.english]
    np.testing.assert_allclose(lexicon.null, [t[word, None] for word in lexicon.french], atol=1e-6)
    assert (np.diff(lexicon.keys) > 0).all()


def test_tokens__of_plain_text_are_those_of_the_hand_aligned():
    words = english(["Mr.", "Speaker,", "I", "can't", "vote", "in", "St.", "John's-East", "at", "2.5", "p.m.!"])
    assert " ".join(words) == "mr. speaker , i can not vote in st. john 's - east at 2.5 p.m. !"
    words = french(
        ["L’an", "dernier,", "le", "chef", "du", "parti", "qu'il", "aime", "n'a", "rien", "dit", "aux", "députés."]
    )
    assert " ".join(words) == "le an dernier , le chef de le parti que il aime ne a rien dit a les deputes ."


@pytest.mark.parametrize(
    ("name", "line", "message"),
    [
        ("dev.wa.nonullalign", "1 2", r"dev\.wa\.nonullalign: line 1: expected sentence, English and French position"),
        ("dev.wa.nonullalign", "1 1 99 S", r"line 1: positions 1 and 99, but sentence 1 has"),
        ("test.f", None, r"test\.e: 104 lines, but test\.f has 103"),
    ],
)
def test_hansards__names_the_line_that_is_wrong(tmp_path, name, line, message):
    root = write(tmp_path)
    lines = (tmp_path / name).read_text().split("\n")
    lines[:1] = [] if line is None else [line]
    (tmp_path / name).write_text("\n".join(lines))
    with pytest.raises(DataError, match=message):
        read(open_dataset("hansards", root))


def test_hansards__bounds_and_prices_are_weights(root):
    train, _, _, meta = problems(open_dataset("hansards", {**root, "nonnegative": True, "fertility": 2}))
    assert train.d == 82 + 8 == len(meta["feature_names"])
    assert (train.lower[:27] == 0.0).all()
    assert np.isinf(train.lower[27:]).all()
    assert (train.upper[82:] == 0.0).all()
    assert train.least_loss(0) == 0.0  # possible links cost nothing


def test_words__stand_between_blanks_and_tabs(tmp_path: Path) -> None:
    """As the annotators number them: other white space belongs to words, and ends no line."""
    for name, text in (
        ("e", "10\xa0000 a\x85b\n\u3000\tc\n"),
        ("f", "\ufeff d  e \r\nf\n"),
        ("links", "1 2 2 S\r\n\n2\t2 1 P"),
    ):
        (tmp_path / name).write_bytes(text.encode())
    pairs = read_pairs(tmp_path / "e", tmp_path / "f")
    assert pairs == [(["10\xa0000", "a\x85b"], ["d", "e"]), (["\u3000", "c"], ["f"])]
    assert read_links(tmp_path / "links", pairs) == [{(1, 1): "S"}, {(1, 0): "P"}]
