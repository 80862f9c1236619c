"""Handwritten words in ten lines, beside sklearn-crfsuite: ``python ocr_in_ten_lines.py ocr_letters.npz``."""

import sys

import numpy as np
import sklearn_crfsuite

import gapwise

with np.load(sys.argv[1]) as file:
    pixels, letters, starts, folds = (file[name] for name in ("pixels", "letter", "word_start", "word_fold"))
words = list(zip(np.split(pixels, starts[1:-1]), np.split(letters, starts[1:-1]), folds == 0, strict=True))
X, y = [x for x, _, small in words if small], [y for _, y, small in words if small]
X_test, y_test = [x for x, _, small in words if not small], [y for _, y, small in words if not small]
model = gapwise.ChainSVM().fit(X, y)  # a fifth of the words chooses lam, and all of them the model
print(f"duality gap {model.certificate_.gap:.3g}, verified: {model.certificate_.verified}")
print(f"gapwise: {model.score(X_test, y_test):.3f} of the letters right at lam {model.lambda_:.3g}")


def ink(words: list) -> list:
    return [[{str(pixel): True for pixel in np.flatnonzero(letter)} for letter in word] for word in words]


crf = sklearn_crfsuite.CRF().fit(ink(X), [[str(k) for k in word] for word in y])
print(f"crfsuite: {crf.score(ink(X_test), [[str(k) for k in word] for word in y_test]):.3f} of the letters right")
