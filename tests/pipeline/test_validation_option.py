"""`dataset.validation`: its forms, what it does to keys, and what is refused before anything is written."""

from __future__ import annotations

from typing import Any

import pytest
from configs import composed

from gapwise.pipeline.config.run_options import ConfigError
from gapwise.pipeline.config.settings import Settings, read

OCR = ("dataset=ocr", "dataset.root=x")
TEXT = ("dataset=sequences_csv", "dataset.file=x", "dataset.test_file=x")
FORMS = (
    r"expected null, a share of the training blocks between 0 and 1, \{share: 0\.2, seed: 1\}, \{folds: 5, fold: 0\}"
)


def settings(*words: str) -> Settings:
    return read(composed(*words))


@pytest.mark.parametrize(
    ("word", "normal"),
    [
        ("0.2", {"share": 0.2, "seed": 0}),
        ("{share: 0.25, seed: 7}", {"share": 0.25, "seed": 7}),
        ("{folds: 5, fold: 4}", {"folds": 5, "fold": 4, "seed": 0}),
        ("fold", "fold"),
    ],
)
def test_validation__has_one_normal_form(word: str, normal: Any) -> None:
    read_settings = settings(*OCR, f"dataset.validation={word}")
    assert read_settings.dataset["validation"] == read_settings.science["dataset"]["validation"] == normal
    assert read_settings.features_key({}) != settings(*OCR).features_key({})


@pytest.mark.parametrize(
    "words", [OCR, TEXT, ("dataset=horses_sample",), ("dataset=python_oracle", "dataset.oracle=a:B")]
)
def test_validation__that_is_not_asked_for_is_in_no_key(words: tuple[str, ...]) -> None:
    """So the keys of stored runs are what they were before there was the option."""
    read_settings = settings(*words)
    assert not [name for name in (*read_settings.dataset, *read_settings.science["dataset"]) if "validation" in name]


def test_validation__file_is_known_by_its_contents() -> None:
    first, second = (settings(*TEXT, "dataset.validation=file", f"dataset.validation_file={name}") for name in "ab")
    assert first.run_key({}) == second.run_key({}) != settings(*TEXT).run_key({})


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((*OCR, "dataset.validation=0.0"), r"dataset\.validation: expected a share between 0 and 1, got 0\.0"),
        ((*OCR, "dataset.validation=1"), r"dataset\.validation: expected a share between 0 and 1, got 1"),
        ((*OCR, "dataset.validation=true"), rf"{FORMS}, or fold; got True"),
        ((*OCR, "dataset.validation=file"), rf"{FORMS}, or fold; got 'file'"),
        (
            ("dataset=usps", "dataset.root=x", "dataset.validation=fold"),
            rf"{FORMS}; this reader has no validation data or folds of its own; got 'fold'",
        ),
        (
            (*OCR, "dataset.validation={folds: 1, fold: 0}"),
            r"dataset\.validation\.folds: expected an integer >= 2, got 1",
        ),
        ((*OCR, "dataset.validation={folds: 3, fold: 3}"), r"validation\.fold: expected an integer from 0 to 2, got 3"),
        ((*OCR, "dataset.validation={share: 0.2, seed: -1}"), r"dataset\.validation\.seed: expected an integer from 0"),
        ((*OCR, "dataset.validation={part: 0.2}"), rf"{FORMS}; got {{'part': 0\.2}}"),
        (
            (*OCR, "dataset.validation_fold=2"),
            r"dataset\.validation_fold: is read only with dataset\.validation=fold; give both or neither",
        ),
        ((*TEXT, "dataset.validation_file=x"), r"validation_file: is read only with dataset\.validation=file"),
    ],
)
def test_validation__refuses_what_it_does_not_know(words: tuple[str, ...], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        settings(*words)
