"""scikit-learn's own checks of a classifier: some of them always, all with --faults=full."""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator

from gapwise import MulticlassSVM

pytestmark = pytest.mark.slow

QUICK = {
    "check_all_zero_sample_weights_error",
    "check_classifiers_one_label",
    "check_dict_unchanged",
    "check_estimators_nan_inf",
    "check_estimators_unfitted",
    "check_estimator_cloneable",
    "check_fit2d_1sample",
    "check_n_features_in",
    "check_no_attributes_set_in_init",
    "check_parameters_default_constructible",
    "check_supervised_y_2d",
}


def name_of(check: Any) -> str:
    return getattr(check, "func", check).__name__


CHECKS = [check for _, check in estimator_checks_generator(MulticlassSVM(), mark="skip")]


def test_quick_checks__exist() -> None:
    assert {name_of(check) for check in CHECKS} >= QUICK


@pytest.mark.parametrize(
    "check",
    [
        pytest.param(check, id=name_of(check), marks=[] if name_of(check) in QUICK else [pytest.mark.long])
        for check in CHECKS
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")
def test_multiclass__passes(check: Any) -> None:
    if name_of(check).startswith("check_sample_weight_equivalence"):  # lam="auto" holds out others of repeated examples
        check(MulticlassSVM(lam=0.1, tolerance=1e-9))
    elif (
        name_of(check) == "check_class_weight_classifiers"
    ):  # ten held-out rows rate three lam alike; of the largest 43 of
        check(MulticlassSVM(lam="1/n"))  # 50 test rows get the heavy class, and 44 are asked for
    else:
        check(MulticlassSVM())
