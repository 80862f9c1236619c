"""A run's key belongs to its data: to every byte of them, and to no place."""

from __future__ import annotations

import ast
import gc
import os
import shutil
import sys
from pathlib import Path

import pytest
from configs import composed

from gapwise.pipeline.config.run_options import ConfigError
from gapwise.pipeline.config.settings import Settings, read
from gapwise.pipeline.data import refuse_others, source_of
from gapwise.pipeline.overview.run_state import run_state
from gapwise.pipeline.run import locations
from gapwise.pipeline.rundir import read_json
from gapwise.pipeline.tracking.names import experiment_of
from gapwise.stages import datasets
from gapwise.stages.datasets import DataError
from gapwise.stages.problems.user_code import imported_names, oracle_source

TEXT = "a x P\nb x Q\n\na y P\n"


def sequences(folder: Path, *words: str) -> Settings:
    """Settings of a run over text columns in `folder`."""
    files = [f"dataset.{name}={folder}/{file}" for name, file in (("file", "train"), ("test_file", "test"))]
    return read(composed("dataset=sequences_csv", *files, f"dataset.template={folder}/template", *words))


def keys(settings: Settings) -> tuple[str, str]:
    source = source_of(settings)
    return settings.run_key(source), settings.features_key(source)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    for name, text in (("train", TEXT), ("test", TEXT), ("template", "U0:%x[0,0]\n")):
        (folder / name).write_text(text)
    return folder


@pytest.mark.parametrize("name", ["train", "template"])
def test_key__changes_with_an_edit_that_keeps_the_size(folder: Path, name: str) -> None:
    before, times = keys(sequences(folder)), (folder / name).stat()
    (folder / name).write_text((folder / name).read_text().replace("0", "1").replace("a x", "a y"))
    os.utime(folder / name, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert (folder / name).stat().st_size == times.st_size
    after = keys(sequences(folder))
    assert before[0] != after[0]
    assert before[1] != after[1]


def test_key__is_that_of_the_data_folder_however_it_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "conll2000"
    folder.mkdir()
    for name in ("train.txt", "test.txt"):
        (folder / name).write_text(TEXT)
    monkeypatch.setenv("GAPWISE_DATA", str(tmp_path))
    expected = keys(read(composed("dataset=conll")))
    assert keys(read(composed("dataset=conll", f"dataset.root={folder}"))) == expected
    assert keys(read(composed("dataset=conll", f"dataset.root={folder}", "dataset.min_count=1"))) != expected


def test_data__may_be_moved_but_not_edited_while_they_are_read(folder: Path) -> None:
    before = keys(sequences(folder))
    folder = shutil.move(folder, folder.parent / "elsewhere")
    settings = sequences(folder)
    assert keys(settings) == before
    source = source_of(settings)
    refuse_others(settings, source)
    (folder / "train").write_text(TEXT.replace("b x", "b y"))
    with pytest.raises(DataError, match="changed while they were read"):
        refuse_others(settings, source)


ORACLE = """
from pathlib import Path
from gapwise.stages.problems.oracle import Oracle
import {helper}

class Mine(Oracle):
    d = 1
    def __init__(self, split, data):
        self.data = Path(data).read_text()
    @classmethod
    def files(cls, data):
        return [data]
"""


def test_key__covers_an_oracles_own_modules_and_the_files_it_declares(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "keyed_oracle.py").write_text(ORACLE.format(helper="keyed_helper"))
    (tmp_path / "keyed_helper.py").write_text("from keyed_package import part\n")
    (tmp_path / "keyed_package").mkdir()
    (tmp_path / "keyed_package" / "part.py").write_text("x = 1\n")
    (tmp_path / "beside.py").write_text("x = 1\n")
    (tmp_path / "data").write_text("abc")

    def key() -> str:
        oracle_source.cache_clear()
        words = ("dataset=python_oracle", "dataset.oracle=keyed_oracle:Mine")
        return keys(read(composed(*words, f"+dataset.arguments.data={tmp_path}/data")))[0]

    keys_seen = [key()]
    (tmp_path / "beside.py").write_text("x = 2\n")
    assert key() == keys_seen[0]
    edits = {"keyed_package/part.py": "x = 2\n", "keyed_helper.py": "import keyed_package.part\n", "data": "abd"}
    for name, text in edits.items():
        (tmp_path / name).write_text(text)
        keys_seen.append(key())
    assert len(set(keys_seen)) == 4
    (tmp_path / "data").unlink()
    with pytest.raises(DataError, match="which is no file"):
        key()
    for name in [name for name in sys.modules if name.startswith("keyed_")]:
        del sys.modules[name]


def test_imports__of_a_file_are_read_while_collections_parse_other_code() -> None:
    def parse_too(phase: str, _: object) -> None:
        ast.parse("x = [1, (2, 3)]" if phase == "start" else "")

    threshold = gc.get_threshold()
    gc.callbacks.append(parse_too)
    gc.set_threshold(20)
    try:
        assert "gapwise.stages.datasets.DataError" in imported_names(Path(__file__))
    finally:
        gc.set_threshold(*threshold)
        gc.callbacks.remove(parse_too)
    assert gc.isenabled()


def test_version__of_a_part_of_ones_own_is_its_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    part = tmp_path / "keyed_part.py"
    part.write_text("from gapwise.stages.datasets import Reader\nclass Mine(Reader):\n    structure = 'multiclass'\n")
    monkeypatch.setattr(datasets, "__path__", [*datasets.__path__, str(tmp_path)])
    before = datasets.version_of("keyed_part", "multiclass")
    part.write_text(part.read_text() + "    picture = (2, 2)\n")
    assert datasets.version_of("keyed_part", "multiclass") != before
    assert datasets.version_of("hard_and_easy", "multiclass") == "1.1"
    del sys.modules["gapwise.stages.datasets.keyed_part"]


def test_label__names_the_run_everywhere_and_changes_no_key(tmp_path: Path) -> None:
    words = ("dataset=ocr", "dataset.root=x", f"run.root={tmp_path}")
    plain, named = (read(composed(*words, *more)) for more in ((), ("dataset.label=receipts",)))
    assert (named.science, named.dataset) == (plain.science, plain.dataset)
    (ours, features, key), (theirs, same, other) = (locations(settings, {}) for settings in (named, plain))
    assert ours.path.name == f"receipts-bcpfw_gap_cache-{theirs.key[:8]}"
    assert (features, key) == (same, other)  # features are shared
    ours.prepare(named, {})
    manifest = read_json(ours.path / "manifest.json", seal=True)
    assert run_state(ours.path).facts()["dataset"] == "receipts"
    assert experiment_of(manifest["science"], manifest["label"]) == "receipts-path"
    with pytest.raises(ConfigError, match=r"^dataset\.label: expected a name for directories"):
        read(composed(*words, "dataset.label=a/b"))
