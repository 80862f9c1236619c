"""Any number of handwritten words, made from the real ones: `python synthetic_letters.py DATA/ocr WORDS TARGET`.

DATA/ocr holds letter.data.gz. TARGET/letter.data then has WORDS training words and a tenth as many test words, for
``dataset=ocr dataset.size=large dataset.root=TARGET``. Test words repeat those of fold 0, training words those of the other
nine folds; every pixel is flipped with probability --flip (0.02), so that no two words are the same. It is written in
pieces: memory does not depend on WORDS, but for a few numbers a word.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from gapwise.stages.datasets.ocr import LETTERS, PIXELS, read_letter_data

PIECE = 20_000
"""Words in memory at a time."""


def synthetic_letters(source: Path, words: int, target: Path, *, flip: float = 0.02, seed: int = 0) -> None:
    """Write `target`, a letter.data of `words` training words and a tenth as many test words in fold 0.

    Parameters
    ----------
    source : Path
        The real letter.data, or .gz.
    flip : float
        Probability that a pixel changes.
    """
    real = read_letter_data(source)
    rng = np.random.default_rng(seed)
    tests, trains = np.flatnonzero(real.fold == 0), np.flatnonzero(real.fold != 0)
    drawn = np.concatenate([rng.choice(tests, max(words // 10, 1)), rng.choice(trains, words)])
    lengths, written = np.diff(real.start), 0
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("wb") as file:
        for first in range(0, drawn.size, PIECE):
            some = drawn[first : first + PIECE]
            size = lengths[some]
            end = np.cumsum(size)
            position = np.arange(end[-1]) - np.repeat(end - size, size)
            letters = np.repeat(real.start[some], size) + position
            pixels = real.pixels[letters]
            flips = rng.binomial(pixels.size, flip)
            # repeated places are flipped back, which changes the share by flip^2
            np.bitwise_xor.at(pixels.reshape(-1), rng.integers(pixels.size, size=flips), np.uint8(1))
            text = np.full((len(pixels), 2 * PIXELS), ord("\t"), np.uint8)
            text[:, ::2] = pixels + ord("0")
            number = written + 1 + np.arange(len(pixels))
            columns = (
                number,
                [LETTERS[k] for k in real.letter[letters]],
                np.where(position + 1 < np.repeat(size, size), number + 1, -1),
                np.repeat(first + 1 + np.arange(some.size), size),
                position + 1,
                np.repeat(real.fold[some], size),
            )
            for row, head in zip(text, zip(*columns, strict=True), strict=True):
                file.write("\t".join(map(str, head)).encode() + b"\t" + row.tobytes() + b"\n")
            written += len(pixels)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("words", type=int)
    parser.add_argument("target", type=Path)
    parser.add_argument("--flip", type=float, default=0.02)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    source, target = asked.data / "letter.data.gz", asked.target / "letter.data"
    synthetic_letters(source, asked.words, target, flip=asked.flip, seed=asked.seed)


if __name__ == "__main__":
    main()
