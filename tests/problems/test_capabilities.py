"""What structures can do, as records; and a clear message for a module of the old form."""

from __future__ import annotations

from types import ModuleType

import pytest
from tiny import ALL_TINY, chain, instance, multiclass, potts, segmentation

from gapwise.stages.problems import capabilities, structures
from gapwise.stages.problems.capabilities import (
    Capabilities,
    OracleFacts,
    Traits,
    capabilities_of,
    oracle_facts,
    traits_of,
)
from gapwise.stages.problems.compiled_methods import compiled
from gapwise.stages.problems.void import silenced


def test_capabilities__of_all_structures() -> None:
    records = {name: capabilities(name) for name in structures()}
    assert {name for name, can in records.items() if can.marginals} == {"chain", "multiclass", "multiclass_sparse"}
    classes = {"multiclass", "multiclass_sparse", "multiclass_kernel"}
    assert {name for name, can in records.items() if can.margins} == {"chain", "segmentation", *classes}
    assert {name for name, can in records.items() if can.n_best} == {"chain", *classes}
    assert {name for name, can in records.items() if can.calls_python} == {"python_oracle"}
    assert {name for name, can in records.items() if can.for_training is silenced} == {"potts", "segmentation"}
    assert records["multiclass_sparse"].rows == ("row_ptr", "ids", "values")
    assert records["tree"].single
    assert records["tree"].features == ("unary", "relations")


def test_module__of_the_old_form_is_refused_with_the_new_one() -> None:
    old = ModuleType("poses")
    old.WHOLE, old.confusion = ("x",), lambda *_: None
    with pytest.raises(
        ValueError, match=r"poses: .* expected CAPABILITIES = Capabilities\(whole=WHOLE, confusion=confusion\)"
    ):
        capabilities_of(old)
    old.CAPABILITIES = {"whole": ("x",)}
    with pytest.raises(ValueError, match=r"poses: .* expected CAPABILITIES"):
        capabilities_of(old)
    old.CAPABILITIES = Capabilities(whole=("x",))
    assert capabilities_of(old).whole == ("x",)
    assert capabilities_of(ModuleType("plain")) == Capabilities()


def test_traits__are_those_of_the_class() -> None:
    assert traits_of(multiclass()) == Traits(marginals=True, margins=True, n_best=True, lists=True)
    assert traits_of(compiled(chain())).marginals
    images = potts()
    assert traits_of(images) == Traits(features_per_block=(images.unary.size + images.pairwise.size) / images.n)
    assert traits_of(segmentation()).features_per_block > 0.0
    matching = instance("matching")
    assert traits_of(matching).forbidden == matching.forbidden
    assert not traits_of(instance("python_oracle")).own_metric


@pytest.mark.parametrize("name", ALL_TINY)
def test_records__agree_about_marginals(name: str) -> None:
    problem = instance(name)
    module = next(part for part in type(problem).__module__.split(".")[3:])
    assert traits_of(problem).marginals == capabilities(module).marginals


def test_oracle_facts__are_exact_unless_the_class_says_otherwise() -> None:
    assert oracle_facts(multiclass()) == OracleFacts("exact", None)
    assert oracle_facts(potts()) == OracleFacts("upper-bounded", None)
