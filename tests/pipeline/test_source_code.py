"""Which commit a run was made with."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from gapwise.pipeline import source_code


def git(root: Path, *words: str) -> str:
    names = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", "-C", str(root), *names, *words], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def test_commit__is_the_one_checked_out_and_says_what_differs(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / "code.py").write_text("x = 1\n")
    git(tmp_path, "add", "code.py")
    git(tmp_path, "commit", "-qm", "first")
    head = git(tmp_path, "rev-parse", "HEAD")
    source_code.commit.cache_clear()
    assert source_code.commit(tmp_path) == head
    (tmp_path / "code.py").write_text("x = 2\n")
    source_code.commit.cache_clear()
    assert source_code.commit(tmp_path) == f"{head}-dirty"
    inside = tmp_path / "site-packages"
    inside.mkdir()
    assert source_code.commit(inside) is None  # installed into another project's checkout


def test_commit__without_git_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".git").mkdir()
    monkeypatch.setenv("PATH", "")
    assert source_code.commit(tmp_path) is None
