"""Any number of handwritten words, made from the real ones: `python synthetic_letters.py DATA/ocr WORDS TARGET`.

DATA/ocr holds ocr_letters.npz. TARGET/ocr_letters.npz then has WORDS training words and a tenth as many test words, for
``dataset=ocr dataset.size=large dataset.root=TARGET``. Test words repeat those of fold 0, training words those of the other
nine folds; every pixel is flipped with probability --flip (0.02), so that no two words are the same. It is written in
pieces: memory does not depend on WORDS, but for a few numbers a word.
"""

from __future__ import annotations

import argparse
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

PIECE = 20_000
"""Words in memory at a time."""


def synthetic_letters(source: Path, words: int, target: Path, *, flip: float = 0.02, seed: int = 0) -> None:
    """Write `target`, an ocr_letters.npz of `words` training words and a tenth as many test words in fold 0.

    Parameters
    ----------
    source : Path
        The real ocr_letters.npz.
    flip : float
        Probability that a pixel changes.
    """
    with np.load(source) as archive:
        pixels, letter, start, fold = (archive[name] for name in ("pixels", "letter", "word_start", "word_fold"))
    start = start.astype(np.int64)
    rng = np.random.default_rng(seed)
    tests, trains = np.flatnonzero(fold == 0), np.flatnonzero(fold != 0)
    drawn = np.concatenate([rng.choice(tests, max(words // 10, 1)), rng.choice(trains, words)])
    lengths = np.diff(start)
    letters = int(lengths[drawn].sum())

    def parts() -> Iterator[np.ndarray]:
        """The numbers of the real letters, piece by piece."""
        for first in range(0, drawn.size, PIECE):
            some = drawn[first : first + PIECE]
            size = lengths[some]
            begin = np.repeat(start[some] - np.append(0, np.cumsum(size)[:-1]), size)
            yield begin + np.arange(size.sum())

    def noisy() -> Iterator[np.ndarray]:
        for some in parts():
            letters = pixels[some]
            flips = rng.binomial(
                letters.size, flip
            )  # repeated places are flipped back, which changes the share by flip^2
            np.bitwise_xor.at(letters.reshape(-1), rng.integers(letters.size, size=flips), np.uint8(1))
            yield letters

    target.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(target, "w", allowZip64=True) as archive:
        write(archive, "pixels", (letters, pixels.shape[1]), pixels.dtype, noisy())
        write(archive, "letter", (letters,), letter.dtype, (letter[some] for some in parts()))
        ends = np.append(0, np.cumsum(lengths[drawn]))
        write(archive, "word_start", ends.shape, ends.dtype, [ends])
        folds = fold[drawn]
        write(archive, "word_fold", folds.shape, folds.dtype, [folds])


def write(archive: zipfile.ZipFile, name: str, shape: tuple[int, ...], dtype: np.dtype, parts: Any) -> None:
    """Write an array of an .npz file from its parts, in order."""
    with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
        header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)
        for part in parts:
            file.write(np.ascontiguousarray(part).data)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("words", type=int)
    parser.add_argument("target", type=Path)
    parser.add_argument("--flip", type=float, default=0.02)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    name = "ocr_letters.npz"
    synthetic_letters(asked.data / name, asked.words, asked.target / name, flip=asked.flip, seed=asked.seed)


if __name__ == "__main__":
    main()
