"""Constructors list the shared parameters again, as scikit-learn wants it: each with the default that all others have."""

from __future__ import annotations

import inspect

import pytest

import gapwise
from gapwise.pipeline.estimators.base import GapwiseEstimator

SHARED = inspect.signature(GapwiseEstimator).parameters


@pytest.mark.parametrize("name", ["ChainSVM", "MulticlassSVM", "SegmentationSVM", "StructuredSVM"])
def test_constructor__has_the_shared_defaults(name: str) -> None:
    own = inspect.signature(getattr(gapwise, name)).parameters
    again = own.keys() & SHARED.keys()
    assert SHARED.keys() - again <= {"calibration"}
    assert {key: own[key].default for key in again} == {key: SHARED[key].default for key in again}
