"""A user's own compiled structure: a `NamedTuple` of arrays with the methods of `protocol.Problem`, in any module.

The class is named as "module:Class". Besides the methods of the protocol it has a class method ``read(split, **arguments)``
that reads raw data and returns the problem of a split, "train" or "test". The feature store keeps the fields of that
problem, and `build` puts them together again over memory-mapped arrays, so nothing else need be said about storing.
numba compiles the methods into the solver's loop; `compiled.sources_fingerprint` and the keys of runs see the module, its
package, and what they import from the same folder.

Optional methods: ``files(**arguments)`` (class method), the paths of the data files that `read` reads, which the key of a
run then covers; ``measures(predictions)``, the usual measures of the task by name for the flat predicted labels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gapwise.records import Facts
from gapwise.stages.problems.answers import ask, signed
from gapwise.stages.problems.capabilities import Capabilities, optional_of
from gapwise.stages.problems.contract import checked_shapes, norm2_of_truth
from gapwise.stages.problems.losses import share
from gapwise.stages.problems.protocol import Problem, frozen
from gapwise.stages.problems.scale import check_norms
from gapwise.stages.problems.user_code import oracle_source, user_object

CAPABILITIES = Capabilities(learns="predict structures of your own", falling=("label_error",))
ATTRIBUTES = ("n", "d", "local_ptr", "label_ptr", "truth", "lower", "upper", "labels")
METHODS = ("scores", "max_oracle", "decode", "value", "add", "norm2", "push", "loss", "least_loss", "scratch")
"""What `protocol.Problem` asks for."""
TRIED = 5
"""Most blocks of a split whose joint features are tried for their size."""


def problem_class(name: str) -> Any:
    """The class that ``module:Class`` names, which a user wrote; ValueError says what it lacks."""
    made = user_object(name)
    if not (isinstance(made, type) and issubclass(made, tuple) and hasattr(made, "_fields")):
        raise ValueError(
            f"python_structure: {name} is no subclass of typing.NamedTuple; stages/problems/protocol.py says more"
        )
    missing = [method for method in (*ATTRIBUTES, *METHODS, "read") if not hasattr(made, method)]
    if missing:
        raise ValueError(
            f"python_structure: {name} does not define {', '.join(missing)}; expected what stages/problems/protocol.py "
            "lists, and a class method read(split, **arguments) that returns the problem of a split"
        )
    return made


def files_of(kind: type) -> Callable[..., Iterable[str | Path]] | None:
    """The class method `files` of a class that a user wrote; None if it has none."""
    method: Callable[..., Iterable[str | Path]] | None = getattr(kind, "files", None)
    return method


def read_problem(name: str, split: str, arguments: Facts) -> Problem:
    """The problem that ``Class.read(split, **arguments)`` returns; ValueError if `read` fails or it breaks the protocol."""
    kind = problem_class(name)
    where = f"{name}.read({split!r})"
    problem: Problem = ask(where, lambda: kind.read(split, **arguments))
    if type(problem) is not kind:
        raise ValueError(f"{where}: expected a {kind.__name__}, got {type(problem).__name__}")
    fields_of(problem, where)
    ask(where, checked_shapes, problem)
    if problem.n < 1:
        raise ValueError(f"{where}: the {split} split has no blocks")
    tried = dict.fromkeys(np.linspace(0, problem.n - 1, TRIED).astype(int).tolist())
    check_norms(where, ((i, norm2_of_truth(problem, i)) for i in tried))
    return problem


def fields_of(problem: Any, where: str = "") -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """The fields of a problem as arrays by name, and the types of single numbers: "int", "float" or "bool"."""
    arrays, numbers = {}, {}
    for name, value in zip(type(problem)._fields, problem, strict=True):
        array = np.asarray(value)
        if array.dtype.kind not in "fiub" or name.endswith("_ptr_ptr"):
            raise ValueError(
                f"{where}: field {name}: expected an array of numbers or a number, got {type(value).__name__}"
            )
        if not isinstance(value, np.ndarray):
            if array.ndim:
                raise ValueError(f"{where}: field {name}: expected an array or a number, got {type(value).__name__}")
            numbers[name] = {"f": "float", "b": "bool"}.get(array.dtype.kind, "int")
        arrays[name] = array.reshape(1) if array.ndim == 0 else array
    return arrays, numbers


def build(arrays: Mapping[str, np.ndarray], meta: Facts) -> Problem:
    """The problem over the stored fields of one split.

    `meta` gives ``module`` (module:Class), ``source`` (of `oracle_source`) and ``numbers`` (of `fields_of`).

    Raises
    ------
    ValueError
        If the class cannot be imported here, or its code has changed since the features were made.
    """
    name = meta["module"]
    if oracle_source(name) != meta["source"]:
        raise ValueError(
            f"python_structure: the code of {name} is not what the features were made with; restart processes that imported "
            "it before the edit, and update other copies"
        )
    kind, types = problem_class(name), {"int": int, "float": float, "bool": bool}
    numbers = {field: types[type_name] for field, type_name in meta["numbers"].items()}
    fields = {}
    for field in kind._fields:
        stored = np.asarray(arrays[field])
        fields[field] = numbers[field](stored[0]) if field in numbers else frozen(arrays[field])
    problem: Problem = kind(**fields)
    return problem


def derived(**block: np.ndarray) -> dict[str, np.ndarray]:
    """Nothing besides what the reader writes is stored."""
    return {}


def metrics(problem: Problem, arrays: Mapping[str, np.ndarray], predictions: np.ndarray) -> dict[str, float]:
    """What the class's own `measures` returns; without it the share of the entries that differ from the truth."""
    measures = optional_of(problem, "measures")
    if measures is not None:
        return {name: float(value) for name, value in measures(signed(predictions)).items()}
    return {"label_error": share(predictions != problem.truth)}
