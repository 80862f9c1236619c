"""README's commands and lines of Python run, its run says what README shows, and the commands of all pages compose.

The build of the site (`.ci/run`) executes the tutorials and finds links that lead nowhere.
"""

from __future__ import annotations

import re
import runpy
import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest
from configs import composed
from hydra import compose, initialize_config_dir
from in_process import Here
from PIL import Image

from gapwise.pipeline.cli import carry_out
from gapwise.pipeline.config.settings import read
from gapwise.pipeline.data import source_of
from gapwise.pipeline.run import locations, run

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / ".github" / "docs"
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = [
    *(ROOT / name for name in ("README.md", "pipeline/README.md", "stages/README.md", "storage/README.md")),
    *(ROOT / "tests" / folder / "README.md" for folder in ("benchmarks", "examples")),
    *sorted(page for page in DOCS.rglob("*.md") if "_generated" not in page.parts),
]
COMMAND = re.compile(r"^(?:[A-Z_]+=\S+ )*(?:python -m pipeline|gapwise(?= \+?\w+=)) (.*)$", re.MULTILINE)
SMALL = ["path.eps=0.2", "tracking=none", "compute=serial"]


def only_one(override: str) -> str:
    """The first of a sweep's values."""
    name, _, value = override.partition("=")
    return override if value.startswith("[") else f"{name}={value.split(',')[0]}"


def test_commands__of_all_pages_compose() -> None:
    lines = {line for page in PAGES for line in COMMAND.findall(page.read_text("utf-8").replace("\\\n", " "))}
    assert len(lines) > 20
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        for line in lines:
            words = [word.replace("…", "x") for word in shlex.split(line.split(" | ")[0], comments=True)]
            assert compose("config", [only_one(word) for word in words if "=" in word and word != "+experiment=x"]), (
                line
            )


def test_name__of_the_run_is_the_one_shown() -> None:
    """Its key covers the sources of the reader, so that an edit of these changes it."""
    settings = read(composed("+experiment=regpath_horseseg"))
    directory, _, _ = locations(settings, source_of(settings))
    assert re.findall(r"^run: runs/(.*)$", README, re.MULTILINE) == [directory.path.name]


def facts_of(summary: str) -> dict[str, str]:
    """The lines of a run's summary by their first word, without seconds, rounding errors and the folder of the run."""
    lines = re.findall(r"^ *(problem|path|work|verify|best|run:) +(.*(?:\n {10,}test .*)?)", summary, re.MULTILINE)
    facts = {word: re.sub(r" · [0-9.]+ s solving|(?<=agree to )[0-9.]+(?=e-14)", "", text) for word, text in lines}
    return {**facts, "run:": Path(facts["run:"]).name}


@pytest.mark.slow
def test_summary__of_the_first_command_is_the_one_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """To the digits that are printed."""
    assert run(composed("+experiment=regpath_horseseg", f"run.root={tmp_path}", "tracking=none")) == 0
    stated = facts_of(README.split("```")[3])
    assert len(stated) == 6
    assert facts_of(capsys.readouterr().out) == stated


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with the files that the commands name."""
    sentences = (DOCS / "text" / "train.txt").read_text(encoding="utf-8").split("\n\n")[:40]
    (tmp_path / "train.txt").write_text("\n\n".join(sentences) + "\n", encoding="utf-8")
    for name in ("test.txt", "template"):
        shutil.copy(DOCS / "text" / name, tmp_path / name)
    (tmp_path / "new.txt").write_text("Bring\ntwo\nchairs\ntomorrow\n.\n", encoding="utf-8")
    rng = np.random.default_rng(0)
    for kind in ("images", "masks"):
        (tmp_path / "FOLDER" / kind).mkdir(parents=True)
    for k in range(10):
        mask = np.zeros((24, 24), np.uint8)
        mask[4 + k : 14 + k // 2, 6:18] = 1
        Image.fromarray(mask).save(tmp_path / "FOLDER" / "masks" / f"{k}.png")
        picture = np.uint8(60 + 120 * mask[..., None] + rng.integers(40, size=(24, 24, 3)))
        Image.fromarray(picture).save(tmp_path / "FOLDER" / "images" / f"{k}.png")
    (tmp_path / "FOLDER" / "classes.yaml").write_text("classes: {background: 0, horse: 1}\n", encoding="utf-8")
    tutorial = (DOCS / "tutorials" / "oracle.md").read_text(encoding="utf-8")
    (oracle,) = re.findall(r"^%%writefile my_oracle\.py\n(.*?)^```$", tutorial, re.MULTILINE | re.DOTALL)
    (tmp_path / "my_oracle.py").write_text(oracle, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("GAPWISE_RUNS", str(tmp_path / "runs"))
    return tmp_path


@pytest.mark.slow
def test_commands__for_your_own_data_run(folder: Path) -> None:
    lines = README.split("## Your own data")[1].split("```bash\n")[1].split("```")[0].splitlines()
    text, predict, pictures, oracle = (shlex.split(line, comments=True)[1:] for line in lines)
    few_words = ["dataset.superpixels=20", "dataset.colour_words=8", "dataset.sift_words=8"]
    for words, more in ((text, []), (pictures, few_words), (oracle, [])):
        Here(folder / "runs", [*SMALL, *(word for word in words if "compute" not in word), *more]).finish()
    assert carry_out(predict) == 0
    assert len((folder / "tagged.txt").read_text(encoding="utf-8").split()) >= 10


@pytest.mark.slow
def test_python__of_ten_lines_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (snippet,) = re.findall(r"^```python\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    (tmp_path / "snippet.py").write_text(snippet, encoding="utf-8")
    monkeypatch.chdir(ROOT)
    runpy.run_path(str(tmp_path / "snippet.py"))
    said = capsys.readouterr().out
    assert int(said.split("%")[0]) > 90
    assert "every certificate holds" in said
