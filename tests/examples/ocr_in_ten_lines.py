"""Handwritten words in ten lines, beside sklearn-crfsuite: ``python ocr_in_ten_lines.py letter.data.gz``."""

import sys

import numpy as np
import pandas as pd
import sklearn_crfsuite

import gapwise

rows = pd.read_csv(sys.argv[1], sep="\t", header=None)  # id, letter, next, word, position, fold, 128 pixels
words = [(word.iloc[:, 6:134].to_numpy(), [*word[1]], word[5].iloc[0] == 0) for _, word in rows.groupby(3)]
X, y = [x for x, _, small in words if small], [y for _, y, small in words if small]
X_test, y_test = [x for x, _, small in words if not small], [y for _, y, small in words if not small]
model = gapwise.ChainSVM().fit(X, y)  # a fifth of the words chooses lam, and all of them the model
print(f"duality gap {model.certificate_.gap:.3g}, verified: {model.certificate_.verified}")
print(f"gapwise: {model.score(X_test, y_test):.3f} of the letters right at lam {model.lambda_:.3g}")


def ink(words: list) -> list:
    return [[{str(pixel): True for pixel in np.flatnonzero(letter)} for letter in word] for word in words]


crf = sklearn_crfsuite.CRF().fit(ink(X), y)
print(f"crfsuite: {crf.score(ink(X_test), y_test):.3f} of the letters right")
