"""`dataset.validation`: where the blocks come from that lambda is chosen on."""

from __future__ import annotations

from collections.abc import Mapping

from gapwise.pipeline.config.run_options import MAX_SEED, ConfigError
from gapwise.stages.datasets import reader_of

SHARE, FOLDS = {"share", "seed"}, {"folds", "fold", "seed"}
FORMS = "null, a share of the training blocks between 0 and 1, {share: 0.2, seed: 1}, {folds: 5, fold: 0}"


def with_validation(dataset: Mapping[str, object], wanted: object) -> dict[str, object]:
    """The group `dataset` with `validation` in its normal form, or without that key and the reader's options for it.

    A run without a validation split has the key it would have if the option did not exist. ConfigError says what is wrong.
    """
    ways = reader_of(str(dataset.get("name"))).validations
    unused = {option: way for way, options in ways.items() for option in options if way != wanted}
    for option, way in unused.items():
        if dataset.get(option) is not None:
            raise ConfigError(f"dataset.{option}: is read only with dataset.validation={way}; give both or neither")
    options = {name: value for name, value in dataset.items() if name not in unused}
    return options if wanted is None else {**options, "validation": _normal(wanted, [*ways])}


def _normal(wanted: object, ways: list[str]) -> object:
    """A reader's own way, or `{share, seed}` or `{folds, fold, seed}` with all keys."""
    if isinstance(wanted, str) and wanted in ways:
        return wanted
    if _is(float, wanted):
        wanted = {"share": wanted}
    if not isinstance(wanted, Mapping):
        own = f", or {', '.join(ways)}" if ways else "; this reader has no validation data or folds of its own"
        raise ConfigError(f"dataset.validation: expected {FORMS}{own}; got {wanted!r}")
    keys, seed = {*wanted}, wanted.get("seed", 0)
    _expect("seed", seed, _is(int, seed) and 0 <= seed <= MAX_SEED, f"an integer from 0 to {MAX_SEED}")
    if "share" in keys and keys <= SHARE:
        share = wanted["share"]
        _expect("share", share, _is(float, share) and 0 < share < 1, "a share between 0 and 1")
        return {"share": float(share), "seed": seed}
    if {"folds", "fold"} <= keys <= FOLDS:
        folds, fold = wanted["folds"], wanted["fold"]
        _expect("folds", folds, _is(int, folds) and folds >= 2, "an integer >= 2")
        _expect("fold", fold, _is(int, fold) and 0 <= fold < folds, f"an integer from 0 to {folds - 1}")
        return {"folds": folds, "fold": fold, "seed": seed}
    raise ConfigError(f"dataset.validation: expected {FORMS}; got {dict(wanted)!r}")


def _is(kind: type, value: object) -> bool:
    """Whether a value is an integer, or for `float` any number; true and false are neither."""
    return isinstance(value, int | float if kind is float else kind) and not isinstance(value, bool)


def _expect(key: str, value: object, ok: bool, expected: str) -> None:
    if not ok:
        where = "dataset.validation" if key == "share" else f"dataset.validation.{key}"
        raise ConfigError(f"{where}: expected {expected}, got {value!r}")
