"""Models of estimators leave as folders that need no pickle, and are loaded with the same predictions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from library import blobs, sentences

from gapwise import ChainSVM, MulticlassSVM, SegmentationSVM, load_model
from gapwise.stages.datasets import NewInput, NothingKnown, reader_of
from gapwise.stages.datasets.multiclass_arrays import MulticlassArrays
from gapwise.stages.datasets.text.attributes import attributes
from gapwise.stages.model.measures import measure


def as_text(X: list[Any]) -> str:
    """CRFsuite's lines, without labels."""
    tokens = [
        ["\t".join(["", *(name.replace(":", "\\:") for name, value in attributes(t) if value)]) for t in s] for s in X
    ]
    return "\n\n".join("\n".join(s) for s in tokens)


def test_chain__is_loaded_for_dicts_as_trained_and_for_text(tmp_path: Path) -> None:
    X, y = sentences()
    model = ChainSVM(lam="path", eps=0.2).fit(X, y)
    model.save(tmp_path / "model", lam=0.5)
    loaded = load_model(tmp_path / "model")
    predicted, wanted = loaded.predict(X), model.predict(X, lam=0.5)
    assert wanted != [["D"] * len(s) for s in X]
    assert predicted == loaded.predict(as_text(X)) == loaded.predict(X, lam=0.5) == wanted
    assert loaded.score(X, y) == np.mean(np.concatenate(wanted) == np.concatenate(y))
    with pytest.raises(ValueError, match=r"^lam: this model is that of lambda 0\.5, got 0\.6"):
        loaded.predict(X, lam=0.6)
    assert (loaded.lambda_, loaded.certificate["verified"]) == (0.5, True)
    every = sum(value != 0 for s in X for t in s for _, value in attributes(t))
    assert loaded.answer(X).known == (every, every)


def test_chain__of_lists_takes_lists_and_tells_how_much_of_them_it_knows(tmp_path: Path) -> None:
    X, y = sentences()
    lists = [[[f"word={t['word']}", "bias"] for t in s] for s in X]
    model = ChainSVM(lam=0.1, tolerance=0.1).fit(lists, [["DNV".index(label) for label in labels] for labels in y])
    model.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert loaded.predict(lists) == model.predict(lists)  # integers, as in training
    assert loaded.answer([[["word=dog", "bias", "new"], ["bias"]]]).known == (3, 4)
    with pytest.warns(NothingKnown, match=r"^0 of 2 attributes known: "):
        assert loaded.answer([[["a"], ["b"]]]).known == (0, 2)
    with pytest.warns(NothingKnown, match=r"^0 of 2 attributes known: "):
        model.predict([[["a"], ["b"]]])
    for wrong in ([], [lists[0], []], [[1, 2]]):
        with pytest.raises(
            ValueError, match=r"sequence 1 has no tokens|no sequences|sequence 0, token 0: expected a dict"
        ):
            loaded.predict(wrong)


def test_pictures__are_loaded_for_pictures(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    mask = np.zeros((24, 30), np.uint8)
    mask[6:18, 8:20] = 1
    X = [(rng.integers(0, 60, size=(24, 30, 3)) + 120 * mask[..., None]).astype(np.uint8) for _ in range(2)]
    model = SegmentationSVM(lam="1/n", tolerance=0.05, superpixels=12, colour_words=4, sift_words=4).fit(
        X, [mask, mask]
    )
    model.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert loaded.score(X, [mask, mask]) == model.score(X, [mask, mask])
    with pytest.raises(ValueError, match=r"^measures: expected a model of sequences or classes"):
        model.measures(X, [mask, mask])


LABELS = {
    "str": ["01", "1"],
    "int": [-1, 3],
    "bool": [False, True],
    "uint64": np.array([1, 2**63 + 1], np.uint64),
    "float": [1.0, 2.0],
    "pandas string": pd.Series(["cat", "dog"], dtype="string"),
}


def same(loaded: list[Any], wanted: list[Any]) -> bool:
    """Whether all values are equal, and of the same type as Python has them."""
    plain = [value.item() if isinstance(value, np.generic) else value for value in wanted]
    return [(value, type(value)) for value in loaded] == [(value, type(value)) for value in plain]


@pytest.mark.parametrize("kind", LABELS)
def test_labels__of_a_loaded_model_are_those_of_the_estimator(tmp_path: Path, kind: str) -> None:
    X, k = np.array([[-1.0, 0.5], [1.0, 0.5]] * 3), np.array([0, 1] * 3)
    some = LABELS[kind]
    y = some.iloc[k].reset_index(drop=True) if isinstance(some, pd.Series) else np.asarray(some)[k]
    model = MulticlassSVM(lam=0.1, tolerance=0.05).fit(X, y)
    model.save(tmp_path / "classes")
    loaded = load_model(tmp_path / "classes")
    assert same(loaded.predict(X).tolist(), list(model.predict(X)))
    assert loaded.score(X, y) == model.score(X, y)
    if "float" in kind:
        return  # sequences have none
    values = list(some)
    words, tags = [[["w=0"], ["w=1"]]] * 3, [values, values[::-1], values]
    chain = ChainSVM(lam=0.1, tolerance=0.05).fit(words, tags)
    chain.save(tmp_path / "chain")
    loaded = load_model(tmp_path / "chain")
    for ours, theirs in zip(loaded.predict(words), chain.predict(words), strict=True):
        assert same(ours, theirs)
    assert loaded.named_weights.equals(chain.named_weights())


def test_labels__that_no_file_keeps_are_refused(tmp_path: Path) -> None:
    X, y = np.eye(2), np.array(["2020-01-01", "2021-01-01"], "M8[ns]")
    model = MulticlassSVM(lam=0.1, tolerance=0.1).fit(X, y)
    with pytest.raises(
        ValueError, match=r"^save: the class .* is a datetime64; a model keeps numbers, booleans and str"
    ):
        model.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()
    with pytest.raises(ValueError, match="all strings or all integers, got bool and int"):
        ChainSVM().fit([[["a"], ["b"]]], [[True, 0]])


def test_tables__go_by_name(tmp_path: Path) -> None:
    X, y = blobs()
    table = pd.DataFrame(X, columns=[f"c{k}" for k in range(X.shape[1])])
    model = MulticlassSVM(lam=0.1, tolerance=0.05).fit(table, y)
    model.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    wanted = model.predict(table).tolist()
    assert loaded.predict(table[[*table.columns[::-1]]]).tolist() == loaded.predict(X).tolist() == wanted
    with pytest.raises(
        ValueError, match=r"^input: expected the columns of the training data, .*; missing: c0, unknown: x"
    ):
        loaded.predict(table.rename(columns={"c0": "x"}))
    table.assign(kind=y)[["kind", *table.columns[::-1]]].to_csv(tmp_path / "new.csv", index=False)
    new = reader_of(loaded.meta["dataset"]).read_new([str(tmp_path / "new.csv")], loaded.meta)
    assert (MulticlassArrays.truth(new, loaded.meta), loaded.predict(new.raw).tolist()) == ([*map(str, y)], wanted)


def test_costs__are_saved(tmp_path: Path) -> None:
    X, y = blobs()
    costs = [[0, 2, 3], [1, 0, 1], [4, 1, 0]]
    MulticlassSVM(lam=0.1, tolerance=0.1, costs=costs).fit(X, y).save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    found = measure(loaded, NewInput(X), [str((k + 1) % 3) for k in y])
    predicted = loaded.predict(X).tolist()
    assert found.loss == np.mean([costs[(k + 1) % 3][label] for k, label in zip(y, predicted, strict=True)])
