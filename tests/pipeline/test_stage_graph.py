"""Stage records: their order, and when one has more to do."""

from __future__ import annotations

from gapwise.pipeline.stage_graph import Stage, after, flow, stages


def test_flow__is_in_order_and_the_refit_is_no_part_of_every_run() -> None:
    assert list(flow()) == ["featurize", "init_path", "solve", "verify", "evaluate", "report"]
    assert set(stages()) - set(flow()) == {"refit"}
    assert after("solve") == ("verify", "evaluate", "refit", "report")


def test_has_more__for_a_stage_that_is_not_done_or_may_go_on() -> None:
    stage = Stage("a", lambda job: {}, unfinished=lambda facts, settings: facts["left"] > 0)
    assert stage.has_more({}, None)
    assert stage.has_more({"a": {"left": 1}}, None)
    assert not stage.has_more({"a": {"left": 0}}, None)
    assert not Stage("a", lambda job: {}).has_more({"a": {}}, None)
