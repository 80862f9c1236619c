"""Whether a structure of one's own keeps its promises, what a call of its oracle costs, and what to run it with.

Of an oracle in Python (`python_oracle`): truths, features and losses of many blocks, the trial that also begins a run
(`oracle_check`), and a second object of the class. Of a compiled structure: the contract (`problems.contract`) on a few
blocks, with its methods compiled one by one.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numba import njit

from gapwise.records import Facts, Record
from gapwise.stages.datasets import Blocks, open_dataset
from gapwise.stages.datasets.python_oracle import PythonOracleReader, block_of
from gapwise.stages.problems import build, capabilities
from gapwise.stages.problems.answers import answer_of
from gapwise.stages.problems.capabilities import ESTIMATE, EXACT, certainty_of, lists_several, optional_of
from gapwise.stages.problems.compiled import driver
from gapwise.stages.problems.contract import CHECKS, checked_shapes, draw_w, local, sampled, size, truth_of
from gapwise.stages.problems.kernel_cache import Kernel
from gapwise.stages.problems.losses import with_unit
from gapwise.stages.problems.oracle import Oracle
from gapwise.stages.problems.protocol import JIT, Problem, frozen
from gapwise.stages.problems.python_oracle import PythonOracle
from gapwise.stages.problems.simd import one_type

BLOCKS = 5
"""Blocks of a compiled structure that the contract is tried on."""
READ = 1000
"""Most blocks of a split whose truth, features and loss are read."""
TIMED = ("max_oracle", "decode", "features", "loss")
"""Methods of an oracle whose calls are timed."""
CALLS = 40
"""Most calls of each."""
STEP = 3e-5
"""Seconds of a step besides the oracle, if it calls Python."""
SLOW = 1e-3
"""Seconds of a call from which on workers pay, and a solver that calls less often."""
UNBOUNDED = "so path.relative=true certifies no λ below the last one that is solved"


@dataclass(frozen=True)
class Finding:
    """One thing that was tried."""

    check: str
    ok: bool
    says: str


@dataclass
class Report:
    """What was found of one structure; ``seconds``: medians of one call, by method."""

    name: str
    calls_python: bool
    blocks: int = 0
    d: int = 0
    certainty: str = EXACT
    findings: list[Finding] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return all(finding.ok for finding in self.findings)

    @property
    def pass_seconds(self) -> float | None:
        """Seconds of one effective pass on one worker, as far as they are known."""
        if "max_oracle" not in self.seconds:
            return None
        return self.blocks * (self.seconds["max_oracle"] + (STEP if self.calls_python else 0.0))

    def advice(self, workers: int) -> list[str]:
        """Settings to run it with on so many workers; what they cost is measured in tests/benchmarks/README.md."""
        slow = self.seconds.get("max_oracle", 0.0) >= SLOW
        compute = ("processes" if workers > 1 and slow else "serial") if self.calls_python else "threads"
        return ["solver=expensive_oracle" if slow else "solver=bcpfw_gap_cache", f"compute={compute}"]

    def facts(self, workers: int) -> Record:
        """All of it, for JSON."""
        facts = {**asdict(self), "ok": self.ok, "workers": workers, "pass_seconds": self.pass_seconds}
        return {**facts, "advice": self.advice(workers) if self.ok else []}

    def note(self, check: str, says: str, tried: Callable[[], object]) -> bool:
        """Note whether tried() raises no ValueError, and what it says; `says` may name what it returns."""
        try:
            returned = tried()
        except ValueError as error:
            self.findings.append(Finding(check, False, str(error)))
            return False
        self.findings.append(Finding(check, True, says.format(returned)))
        return True


def check(name: str, options: Facts, seconds: float = 10.0) -> Report:
    """Try the data set `name` with these options.

    Parameters
    ----------
    seconds : float
        About the longest time of each of the trials; each does something at least.

    Raises
    ------
    ValueError
        If there is nothing to try: no such reader, module or class, or data that cannot be read.
    """
    reader = open_dataset(name, options)
    label = str(options.get("oracle", options.get("module", name)))
    if isinstance(reader, PythonOracleReader):
        return _check_oracle(label, reader, seconds)
    sink = Blocks(reader.structure)
    facts = reader.featurize(sink, map, lambda done, total, what: None)
    arrays = sink.arrays("train")
    problem = build(reader.structure, arrays, with_unit(capabilities(reader.structure).unit, facts, arrays))
    return check_problem(label, problem, seconds)


def _check_oracle(label: str, reader: PythonOracleReader, seconds: float) -> Report:
    """An oracle in Python: what its splits say, the trial that begins a run, a second object, and what its calls cost."""
    from gapwise.stages.problems.oracle import load_oracle
    from gapwise.stages.problems.oracle_check import try_oracle

    oracle = reader.object_of("train")
    reader.files()
    report = Report(label, True, len(oracle), int(oracle.d))
    blocks: list[dict[str, np.ndarray]] = []

    def another(split: str) -> Oracle:
        return load_oracle(reader.oracle, split, reader.given)

    def read(split: str) -> str:
        of = oracle if split == "train" else another(split)
        found = [block_of(of, split, i) for i in _while(range(min(len(of), READ)), seconds)]
        blocks.extend(found if split == "train" else ())
        return f"{len(found)} truths" if len(found) == len(of) else f"the first {len(found)} of {len(of)} truths"

    says = "{} are labellings with finite features and loss 0"
    kept = {split: report.note(split, says, partial(read, split)) for split in reader.splits}
    if not kept["train"]:
        return report
    problem = reader.problem_of(blocks)
    report.certainty = certainty_of(problem)
    what = "its answers are worth at least as much as" if report.certainty == EXACT else "its bound exceeds"
    says = f"at w = 0 and random w {what} the truth, the decoded labelling and {{}} others; it repeats its answers"
    if report.note("max_oracle", says, lambda: try_oracle(problem, seconds, drawn=True)):
        says = "a second object of the class, as other processes make it, gives the same answers"
        report.note("again", says, lambda: _same_again(problem, another("train")))
        try:
            report.seconds = _times(problem, seconds)
            _note_oracle(report, problem)
        except ValueError as error:
            report.findings.append(Finding("times", False, str(error)))
    return report


def _blocks_of(problem: PythonOracle) -> Iterator[tuple[int, np.ndarray, int]]:
    """Number, truth and size of local vectors of the first few blocks."""
    for i in range(min(problem.n, BLOCKS)):
        yield i, truth_of(problem, i), size(problem, i)


def _same_again(problem: PythonOracle, other: Oracle) -> None:
    """Raise ValueError unless two objects give the same truth, features, loss and answers."""
    rng = np.random.default_rng(2)
    for i, truth, p in _blocks_of(problem):
        theta = rng.normal(size=p)
        for method in ("truth", "coordinates", *TIMED):
            first, second = (np.asarray(_answer(one, method, i, theta, truth)) for one in (problem.oracle, other))
            if not np.array_equal(first, second):
                raise ValueError(
                    f"{problem.name}.{method}: train block {i}: the first object of the class answers {first.tolist()}, "
                    f"another {second.tolist()}; each process makes its own, so seed what is random"
                )


def _answer(oracle: Oracle, method: str, i: int, theta: np.ndarray, truth: np.ndarray) -> Any:
    """What a method of a user's oracle answers for train block i, given what it takes: local scores, a labelling, none."""
    given = {"max_oracle": theta, "decode": theta, "features": truth, "loss": truth}.get(method)
    return answer_of(oracle, method, i, given, size=theta.size if method == "features" else truth.size, split="train")


def _times(problem: PythonOracle, seconds: float) -> dict[str, float]:
    """Median seconds of one call of each method; ValueError names the method and the block that raise an error."""
    w, medians = np.random.default_rng(3).normal(size=problem.d), {}
    for method in TIMED:
        took = []
        for k in _while(range(CALLS), seconds / len(TIMED)):
            i = k % problem.n
            theta, truth = np.empty(size(problem, i)), truth_of(problem, i)
            problem.scores(i, w, theta)
            began = time.perf_counter()
            _answer(problem.oracle, method, i, theta, truth)
            took.append(time.perf_counter() - began)
        medians[method] = float(np.median(took))
    return medians


def _note_oracle(report: Report, problem: PythonOracle) -> None:
    """Notes on what costs memory, or keeps the path from lambda = 0."""
    touched = [np.mean(local(problem, i, truth) != 0.0) for i, truth, _ in _blocks_of(problem)]
    whole = problem.ids.size == 0
    if whole and report.d >= 1000 and max(touched) < 0.1:
        few = f"at most {100 * max(touched):.2g} % are not"
        report.notes.append(f"features are mostly 0 ({few}): coordinates(i) would save memory and time")
    elif whole and 8 * report.blocks * report.d > 1e9:
        report.notes.append(f"the state takes {8e-9 * report.blocks * report.d:.1f} GB; coordinates(i) would save some")
    if not any(problem.least_loss(i) for i, _, _ in _blocks_of(problem)):
        report.notes.append(f"least_loss is not given, {UNBOUNDED}")
    if report.certainty == ESTIMATE:
        report.notes.append("the oracle is approximate and has no max_bound: gaps are estimates and certify nothing")


@driver
def _oracle_driver(fingerprint: str) -> Kernel:
    """`call(P, w, blocks)`: one max-oracle call for each of `blocks`; returns the sum of the losses of the answers."""

    @njit(cache=True, **JIT)
    def call(P, w, blocks):
        fingerprint  # noqa: B018
        w = one_type(w)
        scratch = P.scratch()
        total = 0.0
        for k in range(blocks.size):
            i = blocks[k]
            theta = np.empty(P.local_ptr[i + 1] - P.local_ptr[i])
            y = np.empty(P.label_ptr[i + 1] - P.label_ptr[i], P.truth.dtype)
            P.scores(i, w, theta)
            total += P.max_oracle(i, theta, y, scratch)
        return total

    return call


def check_problem(name: str, problem: Problem, seconds: float = 10.0) -> Report:
    """The contract on a few blocks of a problem, and what an oracle call costs."""
    from gapwise.stages.problems.compiled_methods import compiled

    report = Report(name, False, int(problem.n), int(problem.d), certainty_of(problem))
    if not report.note("shapes", "sizes, offsets, truths and bounds fit", lambda: checked_shapes(problem)):
        return report
    called = compiled(problem)
    some = list(dict.fromkeys(np.linspace(0, problem.n - 1, BLOCKS).round().astype(int).tolist()))
    rng, rivals = np.random.default_rng(0), {}

    def sample() -> int:
        for i in _while(some, seconds):
            rivals[i] = sampled(called, i, rng)
        return sum(map(len, rivals.values()))

    def tried(on_block: Callable[..., object]) -> int:
        return len([on_block(called, i, rivals[i], rng) for i in _while(rivals, seconds)])

    if not report.note("compiles", "{} labellings at hand to compare with", sample):
        return report
    no_margins, no_list = (optional_of(problem, name) is None for name in ("max_marginals", "n_best"))
    absent = {"max-marginals": no_margins, "n best": no_list, "several answers": not lists_several(problem)}
    for what, on_block in CHECKS.items():
        if not absent.get(what, False):
            says = " ".join((on_block.__doc__ or "").split()).removesuffix(".")
            report.note(what, f"{says[0].lower()}{says[1:]} (blocks tried: {{}})", partial(tried, on_block))
    if report.ok:
        report.seconds["max_oracle"] = _compiled_seconds(problem, draw_w(problem, rng), seconds)
        if not any(problem.least_loss(i) for i in some):
            report.notes.append(f"least_loss is 0, {UNBOUNDED}")
        if no_margins:
            report.notes.append("max_marginals is not given: predictions have no margins")
        elif no_list:
            report.notes.append("n_best is not given: predictions are one labelling each")
    return report


def _while(blocks: Iterable[int], seconds: float) -> Iterator[int]:
    """The blocks, until `seconds` are over, which begin after the first one: that one may compile."""
    end = math.inf
    for i in blocks:
        if time.monotonic() > end:
            return
        yield i
        end = min(end, time.monotonic() + seconds)


def _compiled_seconds(problem: Problem, w: np.ndarray, seconds: float) -> float:
    """Mean seconds of scores and max-oracle of a block, in a compiled loop."""
    call, w = _oracle_driver(problem), frozen(w)
    call(problem, w, np.arange(1))
    count = 1
    while True:
        blocks = np.arange(count) % problem.n
        began = time.perf_counter()
        call(problem, w, blocks)
        took = time.perf_counter() - began
        if took > min(0.05, seconds) or count >= max(problem.n, 1 << 16):
            return took / count
        count *= 4
