"""Raw files: how they are found and unpacked, and the errors that name one that cannot be used."""

from __future__ import annotations

import csv
import glob
import gzip
import io
import tarfile
import zipfile
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np


class DataError(ValueError):
    """Raw data that cannot be used: says which file, which field or line, what was expected."""


UNREADABLE = (OSError, EOFError, ValueError, KeyError, zlib.error, zipfile.BadZipFile, tarfile.TarError)
"""What Python's and numpy's readers raise for damaged files, which seldom names the file."""


def unpacked(file: Path) -> bytes:
    """The contents of a file, decompressed if it ends in .gz; DataError names it if it cannot be."""
    try:
        return gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
    except FileNotFoundError as error:
        raise DataError(f"{file}: there is no such file") from error
    except UNREADABLE as error:
        raise DataError(f"{file}: cannot be read: {error}; get the file again, or decompress it yourself") from error


def lines_of(text: str) -> list[str]:
    """Lines of a text without a byte order mark. They end with LF or CR LF, or with CR if there is no LF."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    lines = text.split("\n" if "\n" in text else "\r")
    return lines if lines[-1] else lines[:-1]


def read_lines(file: Path) -> list[str]:
    """Lines of a text file in UTF-8, gzipped or not, with a byte order mark or without."""
    raw = unpacked(file)
    try:
        return lines_of(raw.decode())
    except UnicodeDecodeError as error:
        raise DataError(f"{file}: cannot be read as UTF-8 text: {error}") from error


def existing(file: str | Path, option: str) -> Path:
    """The file, which `option` names; DataError if there is none."""
    if not Path(file).is_file():
        raise DataError(f"{option}: there is no file {file}")
    return Path(file)


def one_of_files(root: Path, *names: str) -> Path:
    """The first of these files that a folder holds; DataError if it holds none."""
    for name in names:
        if (root / name).is_file():
            return root / name
    raise DataError(f"dataset.root: {root} holds {'neither' if len(names) == 2 else 'none of'} {_listed(names)}")


def _listed(names: Sequence[str]) -> str:
    return " nor ".join(names) if len(names) == 2 else ", ".join(names)


def expanded(words: Iterable[str | Path]) -> list[Path]:
    """The files that `words` name, each a file or a pattern such as ``train-*.txt``; those of a pattern by their names.

    A word that is the name of something there is no pattern. DataError if nothing matches a pattern.
    """
    files: list[Path] = []
    for word in map(str, words):
        is_pattern = glob.has_magic(word) and not Path(word).exists()
        matched = sorted(Path(name) for name in glob.glob(word, recursive=True)) if is_pattern else [Path(word)]
        matched = [file for file in matched if not (is_pattern and file.is_dir())]
        if not matched:
            raise DataError(f"no file matches {word}")
        files += matched
    return files


def named_arrays(file: Path, names: Sequence[str], otherwise: str = "") -> dict[str, np.ndarray]:
    """The arrays of these names in an .npz file; DataError if one is missing. `otherwise`: what else may help."""
    arrays = arrays_of(file, names)
    missing = [name for name in names if name not in arrays]
    if missing:
        expected = f"expected the array{'s'[: len(names) > 1]} {', '.join(names)}{otherwise}"
        raise DataError(f"{file}: has no array {missing[0]!r}; {expected}")
    return arrays


def arrays_of(file: Path, wanted: Sequence[str]) -> dict[str, np.ndarray]:
    """The `wanted` arrays that an .npz file holds, in that order."""
    try:
        with np.load(file, allow_pickle=False) as archive:
            return {name: np.asarray(archive[name]) for name in wanted if name in archive.files}
    except UNREADABLE as error:
        raise DataError(f"{file}: cannot be read as an .npz file without pickled objects ({error})") from error


def array_of(file: Path) -> np.ndarray:
    """The array of an .npy file."""
    try:
        return np.asarray(np.load(file, allow_pickle=False))
    except UNREADABLE as error:
        raise DataError(f"{file}: cannot be read as an .npy file without pickled objects ({error})") from error


def csv_text(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table as CSV."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return out.getvalue()
