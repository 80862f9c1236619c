"""The fakes of tests accept the same calls as what they replace."""

from __future__ import annotations

import os

import pytest
from fakes import assert_same_parameters

from gapwise.stages.datasets import Blocks, Sink
from gapwise.storage.features import FeatureWriter


class Real:
    def work(self, block: int, *, key: str) -> int:
        return block


def test_monkeypatch__refuses_a_call_that_the_real_function_would_refuse(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Real, "work", lambda *args, **kwargs: 7)
    assert Real().work(1, key="k") == 7
    with pytest.raises(TypeError, match="missing a required argument: 'key'"):
        Real().work(1)
    with pytest.raises(TypeError, match="too many positional arguments"):
        Real().work(1, 2, key="k")
    one = Real()
    monkeypatch.setattr(one, "work", lambda block, key: 8)
    assert one.work(1, key="k") == 8
    with pytest.raises(TypeError, match="unexpected keyword argument 'blocks'"):
        one.work(blocks=1, key="k")


def test_monkeypatch__knows_names_given_as_text_and_puts_all_back(monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.path.basename
    with monkeypatch.context() as patch:
        patch.setattr("os.path.basename", lambda *args: "fake")
        assert os.path.basename("a/b") == "fake"
        with pytest.raises(TypeError, match="too many positional arguments"):
            os.path.basename("a", "b")
    assert os.path.basename is real
    with pytest.raises(AttributeError):
        monkeypatch.setattr("os.path.no_such_name", lambda: None)


def test_monkeypatch__leaves_values_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    value = [1]
    monkeypatch.setattr(os, "sep", value)
    assert os.sep is value
    monkeypatch.setattr(os, "no_such_name", len, raising=False)
    assert os.no_such_name is len


@pytest.mark.parametrize("sink", [Blocks, FeatureWriter])
def test_sink__has_the_methods_that_readers_call(sink: type) -> None:
    assert_same_parameters(sink, Sink)


def test_same_parameters__sees_a_difference() -> None:
    class Other:
        def work(self, block: int, key: str) -> int:
            return block

    with pytest.raises(AssertionError, match=r"Other\.work"):
        assert_same_parameters(Other, Real)
