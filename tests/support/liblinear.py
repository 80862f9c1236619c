"""LIBLINEAR's Crammer-Singer SVM beside ours.

scikit-learn's LinearSVC(multi_class="crammer_singer", fit_intercept=False) minimises n C times our objective where
lambda = 1 / (n C) and all costs are 1 (`stages.problems.multiclass`).
"""

from __future__ import annotations

import time
import warnings

import numpy as np


def objective(x: np.ndarray, truth: np.ndarray, w: np.ndarray, lam: float) -> float:
    """P(w) of Crammer and Singer with all costs 1; x (n, D), truth (n,), w (K, D)."""
    scores, rows = x @ w.T, np.arange(len(x))
    margins = 1.0 + scores - scores[rows, truth][:, None]
    margins[rows, truth] = 0.0
    return 0.5 * lam * float(np.sum(w * w)) + float(np.mean(margins.max(axis=1)))


def linear_svc(x: np.ndarray, truth: np.ndarray, lam: float, tol: float) -> tuple[float, np.ndarray]:
    """(CPU seconds, weights (K, D)) of LinearSVC; x (n, D) float64, truth (n,) with every class in it."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.svm import LinearSVC

    C, most = 1.0 / (len(x) * lam), 1_000_000
    svm = LinearSVC(multi_class="crammer_singer", fit_intercept=False, C=C, tol=tol, max_iter=most, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        begun = time.process_time()
        svm.fit(x, truth)
        return time.process_time() - begun, svm.coef_
