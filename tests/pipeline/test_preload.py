"""Imports in the background: in order, waited for at the end, and never an error."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest

from gapwise.pipeline.interrupt import Interrupted
from gapwise.pipeline.preload import Preload


def test_load_ahead__imports_then_calls_and_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "wanted_later.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    loaded: list[bool] = []
    with Preload() as imports:
        imports.begin(["wanted_later"], lambda: loaded.append("wanted_later" in sys.modules))
    assert loaded == [True]


def test_load_ahead__leaves_errors_to_the_stage_that_imports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken_module.py").write_text("raise RuntimeError")
    monkeypatch.syspath_prepend(str(tmp_path))
    with Preload() as imports:
        imports.begin(["broken_module"], lambda: None)
    with pytest.raises(RuntimeError):
        import broken_module  # noqa: F401


def test_load_ahead__does_not_keep_a_stop_waiting() -> None:
    go_on, ended = threading.Event(), list[bool]()
    imports = Preload()
    imports.begin([], lambda: ended.append(go_on.wait(5.0)))
    imports.__exit__(Interrupted, Interrupted(15), None)
    assert ended == []
    go_on.set()
    imports.__exit__(None, None, None)
    assert ended == [True]
