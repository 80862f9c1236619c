"""Options of readers: every option of every reader refuses what it cannot be, and no value stands for another."""

from __future__ import annotations

import math
import pkgutil
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pytest
import yaml

from gapwise.stages import datasets
from gapwise.stages.datasets import OptionError, open_dataset
from gapwise.stages.datasets.common.options import Positive, Share, Values, Whole, names_of, one_of, options_of

CONF = Path(__file__).resolve().parents[2] / "conf" / "dataset"
READERS = {
    module.name: yaml.safe_load((CONF / f"{module.name}.yaml").read_text())
    for module in pkgutil.iter_modules(datasets.__path__)
    if not module.ispkg
}
GIVEN = str(CONF / "ocr.yaml")
"""A file that is there."""
TEXTS = {
    "root", "file", "test_file", "validation_file", "template", "costs", "constraints", "command",
    "oracle", "module", "label_column",
}  # fmt: skip
"""Options that any text may be, if only the name of a file."""
RIGHT: list[tuple[set[str], Any]] = [
    ({"seed", "potts", "slack", "possible", "fold", "validation_fold", "coef0", "label_column"}, 0),
    ({"label_column", "bias"}, -1),
    ({"pictures", "pairwise", "nonnegative", "bounded"}, True),
    (TEXTS, "no such thing"),
    ({"arguments"}, {"a": math.nan}),
]
"""What some options may be, and no other."""
WRONG: list[tuple[set[str], Any]] = [
    ({"bias"}, -1.5),
    *((set(), value) for value in (math.nan, math.inf, [math.nan], [])),
]


@pytest.mark.parametrize(
    ("reader", "option"), [(name, key) for name, known in READERS.items() for key in known if key != "name"]
)
def test_option__that_it_cannot_be_is_refused_by_name(reader: str, option: str) -> None:
    given = {key: GIVEN if value == "???" or key == "root" else value for key, value in READERS[reader].items()}
    if option == "validation_fold":
        given["validation"] = "fold"
    for fits, value in RIGHT + WRONG:
        if option in fits or (option == "files" and value == []):
            continue
        if option == "validation_file":
            given["validation"] = "file"
        with pytest.raises(OptionError, match=rf"^dataset\.{option}: (expected|missing; give|{{a|a:)"):
            open_dataset(reader, {**given, option: value})


@pytest.mark.parametrize("reader", READERS)
def test_option__that_a_reader_does_not_have_is_refused(reader: str) -> None:
    given = {key: GIVEN if value == "???" or key == "root" else value for key, value in READERS[reader].items()}
    with pytest.raises(OptionError, match=r"^dataset\.no_such: no such option of this data set; there are: "):
        open_dataset(reader, {**given, "no_such": 1})


@dataclass(frozen=True)
class Part:
    share: Share = 0.5
    kind: Annotated[str, one_of("a", "b")] | None = None


@dataclass(frozen=True)
class Options:
    root: Annotated[Path, Values("the folder")]
    part: Part
    count: Whole = 3
    scale: Positive = 1.0
    column: int | str | None = None


def test_options__are_typed_and_null_keeps_the_default() -> None:
    given = options_of(Options, {"name": "x", "root": "data", "count": None, "scale": 2, "kind": "b", "column": "7"})
    assert given == Options(Path("data"), Part(0.5, "b"), 3, 2.0, "7")
    assert type(given.scale) is float
    assert names_of(Options) == ["root", "count", "scale", "column", "share", "kind"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"root": None}, "dataset.root: missing; give the folder"),
        ({"count": 0}, "dataset.count: expected a whole number >= 1, got 0"),
        ({"scale": True}, "dataset.scale: expected a number > 0, got True"),
        ({"share": 1}, "dataset.share: expected a number between 0 and 1, got 1"),
        ({"kind": "c"}, "dataset.kind: expected one of a, b, or null, got 'c'"),
        ({"column": 1.5}, "dataset.column: expected a whole number or text, or null, got 1.5"),
        (
            {"kin": "a"},
            "dataset.kin: no such option of this data set; there are: root, count, scale, column, share, kind",
        ),
    ],
)
def test_options__that_are_wrong_are_named(change: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError) as caught:
        options_of(Options, {"root": "x", **change})
    assert str(caught.value) == message
