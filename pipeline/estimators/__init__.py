"""Estimators with scikit-learn's interface over the same stages as a run: blocks, solve, verify, evaluate.

* `choices`: from plain parameters to the options of the solver and the path;
* `solving`: one solve of one problem, in memory or in a folder that resumes it;
* `data`: inputs with their outputs; `held_out`: which of them are held out;
* `plan`: the parameters of a fit, checked; `fitting`: its solves, the choice of lambda, the calibration;
* `fitted`: what a fit has solved; `portable`: one model of it as a folder of files;
* `base`: what all estimators share; `chain`, `multiclass`, `segmentation`, `structured`: one kind of data each;
* `sequences`, `chain_encoding`: sequences with their labels, checked; how they become blocks;
* `functions`: the same for a problem that exists already.

`pipeline.api`, installed as the package ``gapwise``, re-exports them.
"""
