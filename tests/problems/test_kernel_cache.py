"""numba's cache on disk: shared by content, and whatever happens to its files."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import pytest

from gapwise.stages.problems import inner
from gapwise.stages.problems.kernel_cache import MARK, ByContent

SOURCE = """
from numba import njit

@njit(cache=True)
def more(x):
    return x + 1
"""
HARMS: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda content: b"",
    "first byte": lambda content: content[:1],
    "half": lambda content: content[: len(content) // 2],
    "without its end": lambda content: content[:-1],
    "zeros": lambda content: bytes(len(content)),
    "text": lambda content: b"garbage",
    "another object": lambda content: b"N.",
    "a changed byte": lambda content: content[: len(content) // 2] + b"\xa5" + content[len(content) // 2 + 1 :],
}


def loaded(file: Path) -> Any:
    """The compiled function of a module, which is imported anew as another process would."""
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.more


def hits(function: Any) -> int:
    """How many of its compiled forms came from the disk, after a call."""
    assert function(1) == 2
    return sum(function.stats.cache_hits.values())


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")
@pytest.mark.parametrize("shared", [True, False])
def test_cache__that_is_damaged_is_compiled_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shared: bool
) -> None:
    monkeypatch.delenv("DVC_ROOT", raising=False)
    monkeypatch.setenv("GAPWISE_KERNELS", str(tmp_path / "kernels") if shared else "")
    source = tmp_path / "source" / "module.py"
    source.parent.mkdir()
    source.write_text(SOURCE)
    assert (hits(loaded(source)), hits(loaded(source))) == (0, 1)
    folder = tmp_path / "kernels" if shared else source.parent / "__pycache__"
    (index,), (data,) = folder.rglob("*.nbi"), folder.rglob("*.nbc")
    for file in (index, data):
        for name, harm in HARMS.items():
            file.write_bytes(harm(file.read_bytes()))
            assert (hits(loaded(source)), hits(loaded(source))) == (0, 1), (file.suffix, name)
    data.unlink()
    assert (hits(loaded(source)), hits(loaded(source))) == (0, 1)
    for file in (index, data):  # as numba alone writes it
        file.write_bytes(file.read_bytes().partition(MARK)[0])
    assert hits(loaded(source)) == 1


def test_install__without_numbas_private_names_is_a_line_in_the_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delattr("numba.core.caching.IndexDataCacheFile")
    inner.kernel_cache.install()
    assert "damaged kernels are not seen to" in caplog.text


def test_kernels__of_the_same_source_share_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def kernel() -> None: ...

    files = [tmp_path / name / "kernel.py" for name in ("one", "copy", "edited")]
    for file, text in zip(files, ("a = 1", "a = 1", "a = 2"), strict=True):
        file.parent.mkdir()
        file.write_text(text)
    monkeypatch.delenv("DVC_ROOT", raising=False)
    monkeypatch.delenv("GAPWISE_KERNELS", raising=False)
    assert ByContent.from_function(kernel, str(files[0])) is None
    monkeypatch.setenv("DVC_ROOT", str(tmp_path / "project"))
    original, copy, edited = (ByContent.from_function(kernel, str(file)) for file in files)
    assert original.get_cache_path() == copy.get_cache_path() != edited.get_cache_path()
    assert original.get_source_stamp() == copy.get_source_stamp() != edited.get_source_stamp()
    assert Path(original.get_cache_path()).is_relative_to(tmp_path / "project" / ".dvc" / "tmp")
    monkeypatch.setenv("GAPWISE_KERNELS", str(tmp_path / "kernels"))
    assert Path(original.get_cache_path()).parent == tmp_path / "kernels"
