"""Parts of one's own: which folders and packages they come from. (In runs: test_toys.py; a command: test_cli.py.)"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from configs import composed

from gapwise import parts
from gapwise.pipeline.config.removed import check_parts
from gapwise.pipeline.config.settings import ConfigError, read


def test_package__that_is_not_there_is_left_out_and_a_helper_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    info = tmp_path / "toys-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toys\nVersion: 1\n")
    (info / "entry_points.txt").write_text(f"[{parts.GROUP}]\nbroken = nowhere.parts\ntoys = toys_beside.parts\n")
    files = {name: tmp_path / "toys_beside" / name for name in ("__init__.py", "helper.py", "parts/problems/toy.py")}
    for file in files.values():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delenv(parts.VARIABLE, raising=False)
    parts.installed.cache_clear()
    try:
        assert parts.installed() == {"toys": tmp_path / "toys_beside" / "parts"}
        assert [record.getMessage() for record in caplog.records] == [
            "entry point gapwise.parts: broken = 'nowhere.parts': expected a package with folders of parts; there is none"
        ]
        assert parts.sources("gapwise.stages.problems") == {f"toys/{name}": file for name, file in files.items()}
    finally:
        parts.installed.cache_clear()


def test_folder__is_named_before_the_command_and_must_be_there(
    given, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(parts.VARIABLE, raising=False)
    done = given("parts=nowhere")
    assert (done.code, done.err) == (2, "error: parts: expected a folder with parts of your own, got nowhere\n")
    with pytest.raises(ConfigError, match=r"parts: expected the folder as a word of the command, .* uses none"):
        read(composed(f"parts={tmp_path}"))
    (tmp_path / "own").mkdir()
    monkeypatch.setenv(parts.VARIABLE, "elsewhere")
    parts.use(["solver=bcfw", "parts=own"])
    assert os.environ[parts.VARIABLE] == str(tmp_path / "own"), "absolute, for other processes"
    read(composed(f"parts={tmp_path / 'own'}"))


@pytest.mark.parametrize("kind", ["charts", "methods", "sections"])
def test_kinds_that_are_gone__are_refused_with_what_to_do(kind: str, tmp_path: Path) -> None:
    (tmp_path / kind).mkdir()
    with pytest.raises(ConfigError, match=rf"^parts/{kind}: was removed; "):
        check_parts(tmp_path)
