"""What lambda is chosen by: which measures there are, which way they are better, and what they choose."""

from __future__ import annotations

import numpy as np
import pytest
from tiny import chain, instance

from gapwise import MulticlassSVM
from gapwise.pipeline.estimators.held_out import held_out
from gapwise.stages.choice.criteria import Criterion, criterion_of, measures, refuse_unmeasured
from gapwise.stages.choice.rules import picked
from gapwise.stages.problems import structure
from gapwise.stages.problems.chain.metrics import encode_names

ARRAYS = {
    "chain": {"label_names": encode_names(["O", "B-X", "I-X"])},
    "multiclass": {},
    "segmentation": {"area": np.ones, "foreground": np.zeros},
}


@pytest.mark.parametrize("name", ARRAYS)
def test_measures__have_a_direction(name: str) -> None:
    problem = instance(name)
    size = problem.truth.size
    arrays = {key: make(size) if callable(make) else make for key, make in ARRAYS[name].items()}
    assert set(structure(name).metrics(problem, arrays, problem.truth)) == set(measures(name))


@pytest.mark.parametrize(
    ("name", "measure", "rising"),
    [("chain", "chunk_f1", True), ("chain", "token_error", False), ("multiclass", "error_rate", False),
     ("matching", "aer", False), ("matching", "precision", True), ("segmentation", "foreground_iou", True),
     ("potts", "class_accuracy", True),
     ("ranking", "ndcg_at_10", True), ("ranking", "swapped_pairs", False), ("tree", "pcp", True),
     ("tree", "misplaced_nodes", False), ("python_oracle", "label_error", False), ("chain", "loss", False)],
)  # fmt: skip
def test_direction__is_that_of_the_field(name: str, measure: str, rising: bool) -> None:
    by = criterion_of("run.criterion", measure, name)
    assert by == Criterion(measure, rising)
    np.testing.assert_array_equal(by.losses(np.array([0.2, 0.9])), [-0.2, -0.9] if rising else [0.2, 0.9])


def test_names__that_a_structure_or_its_data_lack_are_refused_with_those_there_are() -> None:
    known = "run.criterion: expected one of loss, error_rate for the structure multiclass, got 'f1'"
    with pytest.raises(ValueError, match=f"^{known}$"):
        criterion_of("run.criterion", "f1", "multiclass")
    by = criterion_of("criterion", "chunk_f1", "chain")
    words = {"label_names": encode_names(["D", "N", "V"])}
    with pytest.raises(
        ValueError, match=r"^criterion: expected one of loss, token_error, sequence_error, which these data"
    ):
        refuse_unmeasured("criterion", by, chain(), words, "chain")
    refuse_unmeasured("criterion", by, chain(), ARRAYS["chain"], "chain")


@pytest.mark.filterwarnings("ignore:.* was chosen at the .* edge")
def test_error_rate__chooses_another_lambda_than_a_loss_with_costs() -> None:
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    X = rng.normal(size=(60, 4)) + np.eye(3, 4)[y]
    costs = [[0.0, 9.0, 9.0], [1.0, 0.0, 1.0], [1.0, 1.0, 0.0]]
    choices = {"costs": costs, "eps": 0.3, "tolerance": 0.1, "validation": 0.5, "pick": "least"}
    by_loss = MulticlassSVM(**choices).fit(X, y)
    by_error = MulticlassSVM(**choices, criterion="error_rate").fit(X, y)
    assert by_loss.lambda_ != by_error.lambda_
    path, errors = by_error.path_, by_error.path_["validated_error_rate"].values
    np.testing.assert_array_equal(path["weights"], by_loss.path_["weights"])
    lams = path["validated_lambda"].values
    assert by_error.lambda_ == lams[picked("least", lams, errors, errors)]
    assert "validated_loss" not in path
    assert np.isnan(path["validated_error"]).all()
    assert by_error.certificate_.holds
    assert by_error.certificate_.lam_low == by_error.lambda_
    (held,) = held_out(0.5, 60, y, 0)
    for lam, error in list(zip(path["validated_lambda"].values, errors, strict=True))[::5]:
        wrong = np.mean(by_error.predict(X[held], lam=float(lam)) != y[held])
        assert error == pytest.approx(wrong) or lam == by_error.lambda_
