"""Handwritten words in ten lines, beside sklearn-crfsuite: ``python ocr_in_ten_lines.py ocr_letters.npz``."""

import sys

import numpy as np
import sklearn_crfsuite

import gapwise

data = np.load(sys.argv[1])
ends = data["word_start"][1:-1]
words = list(zip(np.split(data["pixels"], ends), np.split(data["letter"], ends), data["word_fold"] == 0, strict=True))
X, y = [x for x, _, small in words if small], [y for _, y, small in words if small]
X_test, y_test = [x for x, _, small in words if not small], [y for _, y, small in words if not small]
model = gapwise.ChainSVM().fit(X, y)  # a fifth of the words chooses lam, and all of them the model
print(f"duality gap {model.certificate_.gap:.3g}, verified: {model.certificate_.verified}")
print(f"gapwise: {model.score(X_test, y_test):.3f} of the letters right at lam {model.lambda_:.3g}")


def ink(words: list) -> list:
    return [[{str(pixel): True for pixel in np.flatnonzero(letter)} for letter in word] for word in words]


crf = sklearn_crfsuite.CRF().fit(ink(X), [[str(k) for k in word] for word in y])
print(f"crfsuite: {crf.score(ink(X_test), [[str(k) for k in word] for word in y_test]):.3f} of the letters right")
