"""What a reader offers is one record, read off its module once; a name of the wrong type is refused."""

from __future__ import annotations

import pkgutil
from types import ModuleType

import pytest

from gapwise.stages import datasets
from gapwise.stages.datasets import offered
from gapwise.stages.datasets.offers import Offered, offered_by


def test_records__of_all_readers() -> None:
    records = {
        module.name: offered(module.name) for module in pkgutil.iter_modules(datasets.__path__) if not module.ispkg
    }
    assert {name for name, part in records.items() if part.picture} == {"ocr", "usps"}
    assert {name for name, part in records.items() if part.code} == {
        "oracle_server",
        "python_oracle",
        "python_structure",
    }
    assert {name for name, part in records.items() if part.truth} >= {"sequences_csv"}
    assert records["horses_sample"].validation == {"scenes": ("n_validation",)}


def test_module__without_any_of_it_has_the_defaults() -> None:
    assert offered_by(ModuleType("clouds")) == Offered()


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("WHERE", "root", r"clouds: WHERE: expected a tuple of names, got 'root'"),
        ("NEEDS", ("h5py", 3), r"clouds: NEEDS: expected a tuple of names, got \('h5py', 3\)"),
        ("encoder", "mine", r"clouds: encoder: expected a function, got 'mine'"),
    ],
)
def test_name__of_the_wrong_type_is_refused(name: str, value: object, says: str) -> None:
    module = ModuleType("clouds")
    setattr(module, name, value)
    with pytest.raises(ValueError, match=says):
        offered_by(module)
