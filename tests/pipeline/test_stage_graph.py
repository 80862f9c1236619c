"""Stage records: their order, and what is wrong with one."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import gapwise.pipeline.stage_graph as graph
from gapwise.pipeline.stage_graph import Stage, after, before, flow, stages


def test_flow__is_ordered_by_what_stages_need() -> None:
    assert list(flow()) == ["featurize", "init_path", "solve", "verify", "evaluate", "report"]
    assert set(stages()) - set(flow()) == {"refit"}
    assert before("verify") == ["featurize", "init_path", "solve"]
    assert after("solve") == ["verify", "evaluate", "refit", "report"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('STAGE = Stage("other", print)', "expected STAGE.name 'broken', got 'other'"),
        ('STAGE = Stage("broken", print, needs=("solv",))', "needs 'solv'; a stage is one of .*solve"),
    ],
)
def test_stages__say_what_is_wrong_with_a_record(
    text: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken.py").write_text(f"from gapwise.pipeline.stage_graph import Stage\n{text}\n")
    monkeypatch.setattr(graph, "__path__", [*graph.__path__, str(tmp_path)])
    monkeypatch.delitem(sys.modules, "gapwise.pipeline.stage_graph.broken", raising=False)
    with pytest.raises(ValueError, match=says):
        stages.__wrapped__()


def test_has_more__for_a_stage_that_is_not_done_or_may_go_on() -> None:
    stage = Stage("a", lambda job: {}, unfinished=lambda facts, settings: facts["left"] > 0)
    assert stage.has_more({}, None)
    assert stage.has_more({"a": {"left": 1}}, None)
    assert not stage.has_more({"a": {"left": 0}}, None)
    assert not Stage("a", lambda job: {}).has_more({"a": {}}, None)
