"""Estimators with scikit-learn's interface over the same stages as a run: blocks, solve, verify, evaluate.

* `choices`: from plain parameters to the options of the solver and the path;
* `solving`: one solve of one problem, in memory or in a folder that resumes it;
* `data`: inputs with their outputs;
* `base`: what all estimators share; `chain`, `multiclass`, `segmentation`, `structured`: one kind of data each;
* `functions`: the same for a problem that exists already.

`pipeline.api`, installed as the package ``gapwise``, re-exports them.
"""

from gapwise.parts import with_parts

__path__ = with_parts(__path__, "estimators")
