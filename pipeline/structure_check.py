"""Whether a structure of one's own keeps its promises, what a call of its oracle costs, and what to run it with.

Of an oracle in Python (`python_oracle`): truths, features and losses of many blocks, the trial that also begins a run
(`oracle_check`), and a second object of the class. Of a compiled structure: the contract (`problems.contract`) on a few
blocks, with its methods compiled one by one.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field

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
TIMED = 40
"""Most calls of an oracle that are timed."""
PASSES = 40
"""Effective passes that a path to a usual accuracy takes, about."""
STEP = 3e-5
"""Seconds of a step besides the oracle, if it calls Python."""
NAMED = ("oracle", "module")
"""Options of a data set that name a user's own class."""
SLOW = 1e-3
"""Seconds of a call from which on workers pay, and a solver that calls less often."""


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
        """Settings to run it with on so many workers."""
        return advice(self.seconds.get("max_oracle", 0.0), self.calls_python, workers)

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


def advice(seconds: float, python: bool, workers: int) -> list[str]:
    """Settings for an oracle whose call takes `seconds`; what they cost is measured in tests/benchmarks/README.md."""
    solver = "solver=expensive_oracle" if seconds >= SLOW else "solver=bcpfw_gap_cache"
    if not python:
        return [solver, "compute=threads"]
    return [solver, "compute=processes" if workers > 1 and seconds >= SLOW else "compute=serial"]


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
    reader, called = open_dataset(name, options), [str(options[key]) for key in NAMED if key in options]
    label = (called or [name])[0]
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

    def read(split: str, of: Oracle) -> str:
        end, size = time.monotonic() + seconds, len(of)
        for i in range(min(size, READ)):
            block = block_of(of, split, i)
            if split == "train":
                blocks.append(block)
            if time.monotonic() > end:
                break
        return f"{size} truths" if i + 1 == size else f"the first {i + 1} of {size} truths"

    says = "{} are labellings with finite features and loss 0"
    ok = report.note("train", says, lambda: read("train", oracle))
    for split in reader.splits[1:]:
        report.note(split, says, lambda split=split: read(split, load_oracle(reader.oracle, split, reader.given)))  # type: ignore[misc]
    if not ok:
        return report
    problem = reader.problem_of(blocks)
    report.certainty = certainty_of(problem)
    what = "its answers are worth at least as much as" if report.certainty == EXACT else "its bound exceeds"
    says = f"at w = 0 and random w {what} the truth, the decoded labelling and {{}} others; it repeats its answers"
    another = lambda: _same_again(problem, load_oracle(reader.oracle, "train", reader.given))  # noqa: E731
    if report.note("max_oracle", says, lambda: try_oracle(problem, seconds, drawn=True)):
        report.note(
            "again", "a second object of the class, as other processes make it, gives the same answers", another
        )
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
        for method, given in (
            ("truth", None), ("coordinates", None), ("max_oracle", theta), ("decode", theta), ("features", truth),
            ("loss", truth),
        ):  # fmt: skip
            entries = p if method == "features" else truth.size
            first, second = (
                np.asarray(answer_of(one, method, i, given, size=entries, split="train"))
                for one in (problem.oracle, other)
            )
            if not np.array_equal(first, second):
                raise ValueError(
                    f"{problem.name}.{method}: train block {i}: the first object of the class answers {first.tolist()}, "
                    f"another {second.tolist()}; each process makes its own, so seed what is random"
                )


def _times(problem: PythonOracle, seconds: float) -> dict[str, float]:
    """Median seconds of one call of each method; ValueError names the method and the block that raise an error."""
    rng, medians = np.random.default_rng(3), {}
    w = rng.normal(size=problem.d)
    for method in ("max_oracle", "decode", "features", "loss"):
        end, took = time.monotonic() + seconds / 4, []
        for k in range(TIMED):
            i = k % problem.n
            theta, truth = np.empty(size(problem, i)), truth_of(problem, i)
            problem.scores(i, w, theta)
            given = theta if method in ("max_oracle", "decode") else truth
            began = time.perf_counter()
            answer_of(problem.oracle, method, i, given, size=theta.size if method == "features" else truth.size)
            took.append(time.perf_counter() - began)
            if time.monotonic() > end:
                break
        medians[method] = float(np.median(took))
    return medians


def _note_oracle(report: Report, problem: PythonOracle) -> None:
    """Notes on what costs memory, or keeps the path from lambda = 0."""
    touched = [np.mean(local(problem, i, truth) != 0.0) for i, truth, _ in _blocks_of(problem)]
    whole = problem.ids.size == 0
    if whole and report.d >= 1000 and max(touched) < 0.1:
        share = f"{100 * max(touched):.2g} %"
        report.notes.append(
            f"features are mostly 0 (at most {share} are not): coordinates(i) would save memory and time"
        )
    elif whole and 8 * report.blocks * report.d > 1e9:
        report.notes.append(f"the state takes {8e-9 * report.blocks * report.d:.1f} GB; coordinates(i) would save some")
    if not any(problem.least_loss(i) for i, _, _ in _blocks_of(problem)):
        report.notes.append(
            "least_loss is not given, so path.relative=true certifies no λ below the last one that is solved"
        )
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

    if not report.note("compiles", "{} labellings at hand to compare with", sample):
        return report
    no_margins, no_list = (optional_of(problem, name) is None for name in ("max_marginals", "n_best"))
    absent = {"max-marginals": no_margins, "n best": no_list, "several answers": not lists_several(problem)}
    for what, of in CHECKS.items():
        if absent.get(what, False):
            continue

        def tried(of: Callable[..., object] = of) -> int:
            done = 0
            for i in _while(list(rivals), seconds):
                of(called, i, rivals[i], rng)
                done += 1
            return done

        says = " ".join((of.__doc__ or "").split()).removesuffix(".")
        report.note(what, f"{says[0].lower()}{says[1:]} (blocks tried: {{}})", tried)
    if report.ok:
        report.seconds["max_oracle"] = _compiled_seconds(problem, draw_w(problem, rng), seconds)
        if not any(problem.least_loss(i) for i in some):
            report.notes.append(
                "least_loss is 0, so path.relative=true certifies no λ below the last one that is solved"
            )
        if no_margins:
            report.notes.append("max_marginals is not given: predictions have no margins")
        elif no_list:
            report.notes.append("n_best is not given: predictions are one labelling each")
    return report


def _while(blocks: list[int], seconds: float) -> Iterator[int]:
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
