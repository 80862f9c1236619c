"""What a structure must offer, and how its ordinary methods become compiled code.

A problem is a ``NamedTuple`` of arrays. The solver uses only the methods below, which work in local coordinates: block
i's joint feature map (phi(x_i, y) in LJ13, O16 and S15) is B_i m_i(y) with m_i(y) in R^{p_i}. Inside compiled code,
`numba.extending.overload_method` forwards a call ``problem.scores(...)`` to the class's own method; outside it, and under
``NUMBA_DISABLE_JIT=1``, it is the plain Python method.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from operator import attrgetter
from types import ModuleType
from typing import Any, Protocol, Self, TypeVar

import numpy as np
from numba import types
from numba.extending import overload_method
from numpy.typing import DTypeLike

from gapwise.stages.problems.compiled import CLOSED, COUNTED, LINKED, UNCOUNTED, inner
from gapwise.stages.problems.kernel_cache import JitOptions, Kernel

JIT: JitOptions = {"error_model": "numpy", "nogil": True, **COUNTED, **CLOSED}
"""Options of compiled functions that allocate, or call back to Python, such as all that Python calls with a problem."""

PLAIN: JitOptions = {"error_model": "numpy", "nogil": True, **UNCOUNTED}
"""Options of compiled functions that do neither, such as all methods of structures except `scratch`. They keep no reference
counts, whose atomic updates took a fifth of a step, and may call functions with the options `JIT`."""

INLINED: JitOptions = {**PLAIN, "inline": "always"}
"""Those of functions with few callers: numba copies their code into these, and unpacks no problem and state for a call."""

FAST: JitOptions = {**PLAIN, "fastmath": {"reassoc", "contract", "nsz"}}
"""Options of pure reductions. Not ``fastmath=True``, which lets the compiler assume that inf and nan do not occur."""

U = np.uint64
"""Type of indices in inner loops, mostly those read from arrays: a signed one is first tested for counting from the end."""

Scratch = tuple[object, ...]
"""The workspace of one thread: arrays, or tuples of them, that only the structure itself reads."""


class Problem(Protocol):
    """A structured prediction problem with n blocks (training examples) and d weights.

    Attributes
    ----------
    n, d : int
        Number of blocks; length of the weight vector.
    local_ptr : int64 array, shape (n + 1,)
        Block i's local coordinates are ``local_ptr[i]:local_ptr[i + 1]`` of any flat local vector.
    label_ptr : int64 array, shape (n + 1,)
        Block i's labelling has ``label_ptr[i + 1] - label_ptr[i]`` entries.
    truth : uint8 or int16 array, shape (label_ptr[-1],)
        The true labellings, flat. Every labelling has this dtype.
    lower, upper : float64 array, shape (d,) or (0,)
        Box constraints on w; length 0 means none.
    labels : int
        Entries of a labelling are 0, ..., labels - 1. Not read by compiled code.

    Notes
    -----
    Arguments of the methods:

    i : int
        The block, from 0.
    w : float64 array, shape (d,)
        Weights.
    theta : float64 array, shape (p_i,)
        Local scores, B_i^T w.
    delta, out : float64 array, shape (p_i,)
        A local vector; `out` is written.
    y : uint8 or int16 array, shape (entries of the block's labellings,)
        A labelling; oracles write it.
    c : float
        A factor.
    scratch : Scratch
        What `scratch()` has made, for this thread.

    Compiled code cannot raise: constructors check the arrays, and methods rely on them.

    Examples
    --------
    Three classes, three rows of numbers; at w = 0 the most tempting answer is any wrong class, whose loss is 1:

    >>> from gapwise import MulticlassSVM
    >>> problem = MulticlassSVM().problem(np.eye(3), [0, 1, 2])
    >>> problem.n, problem.d, problem.truth.tolist()
    (3, 12, [0, 1, 2])
    >>> theta, y = np.empty(problem.local_ptr[1]), np.zeros(1, problem.truth.dtype)
    >>> problem.scores(0, np.zeros(problem.d), theta)
    >>> float(problem.max_oracle(0, theta, y, problem.scratch()))
    1.0
    """

    @property
    def n(self) -> int: ...
    @property
    def d(self) -> int: ...
    @property
    def local_ptr(self) -> np.ndarray: ...
    @property
    def label_ptr(self) -> np.ndarray: ...
    @property
    def truth(self) -> np.ndarray: ...
    @property
    def lower(self) -> np.ndarray: ...
    @property
    def upper(self) -> np.ndarray: ...
    @property
    def labels(self) -> int: ...

    def scores(self, i: int, w: np.ndarray, theta: np.ndarray) -> None:
        """theta <- B_i^T w."""

    def max_oracle(self, i: int, theta: np.ndarray, y: np.ndarray, scratch: Scratch) -> float:
        """y <- argmax_y L_i(y) + <theta, m_i(y)>; returns L_i(y)."""

    def decode(self, i: int, theta: np.ndarray, y: np.ndarray, scratch: Scratch) -> None:
        """y <- argmax_y <theta, m_i(y)>."""

    def value(self, i: int, theta: np.ndarray, y: np.ndarray) -> float:
        """<theta, m_i(y)>."""

    def add(self, i: int, y: np.ndarray, c: float, out: np.ndarray) -> None:
        """out += c m_i(y)."""

    def norm2(self, i: int, delta: np.ndarray) -> float:
        """||B_i delta||^2."""

    def push(self, i: int, c: float, delta: np.ndarray, w: np.ndarray) -> None:
        """w += c B_i delta."""

    def loss(self, i: int, y: np.ndarray) -> float:
        """Task loss L_i(y) >= 0, zero at the truth."""

    def least_loss(self, i: int) -> float:
        """A lower bound on L_i over all labellings but the truth; 0 if none is known.

        Only paths with `path.relative` need it, to reach lambda = 0. Not called from compiled code.
        """

    def scratch(self) -> Scratch:
        """A tuple of arrays: the workspace of one thread."""


class Bounded(Problem, Protocol):
    """A structure whose max-oracle is approximate: it returns a labelling that may not be the best.

    Its hinges are then too small, and a gap computed from them certifies nothing. With a bound on each maximum the gap
    counts again: P <= lambda/2 ||w||^2 + (1/n) sum_i (max_bound_i - <theta_i, m_i(y_i)>) for any answers of the oracle.

    Examples
    --------
    An oracle that tries a single wrong class. No loss is above 1, so 1 plus the largest score bounds the maximum.

    >>> from gapwise import MulticlassSVM
    >>> from gapwise.stages.problems.capabilities import UPPER_BOUNDED
    >>> exact = MulticlassSVM().problem(np.eye(3), [0, 1, 2])
    >>> class Hasty(type(exact)):
    ...     certainty = UPPER_BOUNDED
    ...
    ...     def max_oracle(self, i, theta, y, scratch):
    ...         y[0] = (self.truth[i] + 1) % 3
    ...         return 1.0
    ...
    ...     def max_bound(self, i, theta, y, scratch):
    ...         return 1.0 + theta.max()
    ...
    ...     def tightened(self):
    ...         return self
    >>> problem, theta, y = Hasty(*exact), np.array([0.0, 0.5, 0.75]), np.zeros(1, exact.truth.dtype)
    >>> float(problem.max_oracle(0, theta, y, ()) + problem.value(0, theta, y))  # the maximum is 1.75
    1.5
    >>> float(problem.max_bound(0, theta, y, ()))
    1.75

    Attributes
    ----------
    certainty : str
        UPPER_BOUNDED if `max_bound` is to be used, ESTIMATE if there is no bound (`capabilities`). Not compiled.
    """

    @property
    def certainty(self) -> str: ...

    def max_bound(self, i: int, theta: np.ndarray, y: np.ndarray, scratch: Scratch) -> float:
        """A number >= max_y L_i(y) + <theta, m_i(y)>.

        It is called right after ``max_oracle(i, theta, y, scratch)``, whose work is still in `scratch`; y is its answer.
        The bound must hold whatever `scratch` contains. (`upper` is the name of the box.)
        """

    def tightened(self) -> Self:
        """The same problem with bounds that are as tight as possible and never above these; verify uses them.

        A bound may jump where rounding decides when it is tight enough. So stored numbers cannot be expected to the last
        digit, but a certificate holds if bounds that are at most as large confirm it. Not called from compiled code.
        """


class Summable(Problem, Protocol):
    """A structure that can also sum over all labellings of a block, which `solver.method=eg` needs.

    Examples
    --------
    A sentence of two tokens with labels a and b. At w = 0 all four labellings have the weight 1, and half of their tokens
    are wrong.

    >>> from gapwise import ChainSVM
    >>> problem = ChainSVM().problem([[["x"], ["y"]]], [["a", "b"]])
    >>> theta, mu = np.zeros(problem.local_ptr[1]), np.empty(problem.local_ptr[1])
    >>> log_sum, mean_loss = problem.marginals(0, theta, 0.0, mu, problem.scratch())
    >>> round(float(np.exp(log_sum))), round(float(mean_loss), 6)
    (4, 0.5)
    """

    def marginals(self, i: int, theta: np.ndarray, c: float, mu: np.ndarray, scratch: Scratch) -> tuple[float, float]:
        """mu <- the mean of m_i(y) with weights proportional to exp(c L_i(y) + <theta, m_i(y)>).

        The vector mu must be a mean of m_i(y) up to rounding, however large the scores are.

        Parameters
        ----------
        i, theta, scratch
            As in `Problem`.
        c : float
            Factor of the loss.
        mu : float64 array, shape (p_i,)
            Is written.

        Returns
        -------
        float, float
            The log of the sum of the exponentials, and the mean of L_i(y).
        """


class Listing(Problem, Protocol):
    """A structure whose max-oracle returns several labellings, which all go into a block's cache.

    Attributes
    ----------
    lists : bool
        False if it has the methods, but not for this problem; True if the class does not say.
    """

    def max_oracles(
        self, i: int, theta: np.ndarray, m: int, labels: np.ndarray, losses: np.ndarray, scratch: Scratch
    ) -> int:
        """labels (m, entries) <- different labellings of large L_i(y) + <theta, m_i(y)>, losses (m,) <- their L_i(y).

        Returns how many there are, from 1 to m. The first is the answer of `max_oracle`, of equals, too, so hinges, gaps
        and certificates do not depend on m. The others should be the next best, but need not be.
        """

    def max_oracles_scratch(self, m: int) -> Scratch:
        """The workspace of one thread for `max_oracles` of at most m labellings; `max_bound` may be called after it, too."""


class Scored(Problem, Protocol):
    """A structure that knows how much better its answer is than others; its module's `Capabilities` say so (`margins`)."""

    def max_marginals(self, i: int, theta: np.ndarray, y: np.ndarray, out: np.ndarray, scratch: Scratch) -> None:
        """y <- the answer of `decode`; out <- what is worth the best labelling with each label at each entry.

        out is (entries of a labelling, `labels`), float64; -inf where no labelling has that label there. What a labelling is
        worth is what `decode` maximises, up to a number that all labellings of the block have in common.
        """

    def ranked_scratch(self, m: int) -> Scratch:
        """The workspace of one thread for `max_marginals`, and for `n_best` of at most m labellings."""


class Ranked(Scored, Protocol):
    """A structure that lists its best labellings; its module's `Capabilities` say so (`n_best`)."""

    def n_best(
        self, i: int, theta: np.ndarray, m: int, labels: np.ndarray, values: np.ndarray, scratch: Scratch
    ) -> int:
        """labels (m, entries) <- the m labellings of largest <theta, m_i(y)>, values (m,) <- that, by falling value.

        Returns how many there are, at most m. The first is the answer of `decode`; equal values come in a fixed order. With
        a loss that is a sum over the same parts added to theta, these are the most violating labellings.
        """


Structure = TypeVar("Structure")


def takes(source: type | ModuleType, *names: str) -> Callable[[type[Structure]], type[Structure]]:
    """Decorate a problem class: it gets these methods and properties of `source`, a class or a module of functions.

    Problems are NamedTuples, which numba knows and which inherit nothing. AttributeError if `source` lacks a name; TypeError
    if the class has one of its own.
    """

    def decorate(structure: type[Structure]) -> type[Structure]:
        for name in names:
            if name in vars(structure):
                raise TypeError(f"{structure.__name__}: {name} is its own, and is taken from {source.__name__}")
            setattr(structure, name, getattr(source, name))
        return structure

    return decorate


def own_function(declared: Kernel, function_of: Callable[[type], Kernel]) -> Kernel:
    """For numba: maps the types of a call's arguments to `function_of` the first one's class, which numba compiles."""

    def choose(record, *arguments):
        return function_of(record.instance_class)

    choose.__signature__ = inspect.signature(declared)  # type: ignore[attr-defined]  # numba forwards no *args
    return choose


def compile_methods(protocol: type, *names: str) -> None:
    """Let compiled code call methods that `protocol` declares, all or `names`, of any `NamedTuple` that has them."""
    register: Kernel = overload_method  # its stub lacks jit_options
    declared = [name for name, method in vars(protocol).items() if inspect.isfunction(method) and name[0] != "_"]
    for name in names or declared:
        options = {**(JIT if name.endswith("scratch") else PLAIN), **LINKED}
        method = own_function(getattr(protocol, name), attrgetter(name))
        register(types.BaseNamedTuple, name, jit_options=options, strict=False)(method)


compile_methods(Problem, "scores", "max_oracle", "decode", "value", "add", "norm2", "push", "loss", "scratch")
compile_methods(Bounded, "max_bound")
compile_methods(Summable, "marginals")
compile_methods(Listing, "max_oracles", "max_oracles_scratch")
compile_methods(Ranked, "max_marginals", "n_best", "ranked_scratch")


@inner(**FAST)
def dot(a, b):
    """<a, b>."""
    total = 0.0
    for j in range(a.size):
        total += a[j] * b[j]
    return total


@inner(**FAST)
def add_scaled(c, a, u):
    """u += c a."""
    for j in range(u.size):
        u[j] += c * a[j]


@inner(**PLAIN)
def widest_block(local_ptr):
    """Largest p_i, in compiled code."""
    widest = 0
    for i in range(local_ptr.size - 1):
        widest = max(widest, local_ptr[i + 1] - local_ptr[i])
    return widest


@inner(**PLAIN)
def largest(counts):
    """Largest of `counts` >= 0, in compiled code: `counts.max()` takes .4 s longer to compile."""
    most = 0
    for i in range(counts.size):
        most = max(most, counts[i])
    return most


def frozen(array: np.ndarray, dtype: DTypeLike | None = None) -> np.ndarray:
    """A C-contiguous, read-only view or copy of `array`: the form in which problems hold arrays.

    Memory-mapped and in-memory features then have the same compiled type, and no kernel can write to the data.
    """
    view = np.ascontiguousarray(array, dtype=dtype).view(np.ndarray)
    if view.flags.writeable:
        view = view.view()
        view.flags.writeable = False
    return view


def leaves(record: Any, of: str = "") -> Iterator[tuple[str, Any]]:
    """The fields of a problem with their names; those of nested records one by one, as ``images.edges``."""
    for name, value in record._asdict().items():
        if isinstance(value, tuple):
            yield from leaves(value, f"{of}{name}.")
        else:
            yield f"{of}{name}", value


def max_label_length(problem: Problem) -> int:
    """Length of the longest labelling."""
    return int(np.diff(problem.label_ptr).max())


def max_local_size(problem: Problem) -> int:
    """Largest p_i."""
    return int(np.diff(problem.local_ptr).max())
