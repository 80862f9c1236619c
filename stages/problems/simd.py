"""Eight doubles at a time, for loops over matrix rows that the compiler does not vectorise well; and prefetches.

numba has no type for a SIMD vector, so this adds one: an LLVM ``<8 x double>``, which processors hold in one, two or four
registers. If the number of columns is not known at compile time, a plain loop ends in scalar steps, and if its arrays might
overlap it stores its sums at every step; values of this type stay in registers. If K >= 8 is not a multiple of eight, the
last eight columns overlap those before: see `columns`. With the JIT off the same functions work on NumPy arrays.

A prefetch asks the processor for memory that will be read soon, so that it arrives while other work is done. Visits in
random order read a few hundred bytes here and there for each block; which block comes next is known long before. A prefetch
loads nothing into a register, waits for nothing and never faults. With the JIT off it does nothing.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from llvmlite import ir
from numba import config, errors, types
from numba.core import cgutils
from numba.extending import intrinsic, models, register_model

from gapwise.stages.problems.compiled import inner
from gapwise.stages.problems.kernel_cache import Kernel
from gapwise.stages.problems.protocol import PLAIN

WIDTH = 8
GROUP = 4 * WIDTH
"""Columns that loops take at a time: four vectors, which fit in the registers together with their addends."""

LINE = 64
"""Bytes that a prefetch brings."""

_VECTOR = ir.VectorType(ir.DoubleType(), WIDTH)


class Packed(types.Type):
    """Eight doubles."""

    def __init__(self) -> None:
        super().__init__(name="Packed")


packed = Packed()


@register_model(Packed)
class _PackedModel(models.PrimitiveModel):
    def __init__(self, dmm: object, fe_type: types.Type) -> None:
        super().__init__(dmm, fe_type, _VECTOR)


def operation(plain: Kernel) -> Callable[[Kernel], Kernel]:
    """Decorator of an intrinsic: with the JIT off, `plain` replaces it and works on NumPy arrays."""
    return lambda typed: plain if vars(config)["DISABLE_JIT"] else intrinsic(typed)


def _is_row_of_doubles(array: types.Type) -> None:
    if not (
        isinstance(array, types.Array) and array.dtype == types.float64 and array.ndim == 1 and array.layout == "C"
    ):
        raise errors.TypingError(f"expected a contiguous one-dimensional array of float64, got {array}")


def _address(context, builder, array_type, array, index):
    data = cgutils.create_struct_proxy(array_type)(context, builder, value=array).data
    return builder.bitcast(builder.gep(data, [index]), _VECTOR.as_pointer())


@operation(lambda array, index: array[int(index) : int(index) + WIDTH].copy())
def load(typingctx, array, index):
    """array[index:index + 8]; nothing is checked."""
    _is_row_of_doubles(array)

    def codegen(context, builder, signature, args):
        return builder.load(_address(context, builder, signature.args[0], *args), align=8)

    return packed(array, index), codegen


@operation(
    lambda array, index, stride: array[int(index) : int(index) + (WIDTH - 1) * int(stride) + 1 : int(stride)].copy()
)
def strided(typingctx, array, index, stride):
    """array[index], array[index + stride], ..., eight of them; nothing is checked."""
    _is_row_of_doubles(array)

    def codegen(context, builder, signature, args):
        data = cgutils.create_struct_proxy(signature.args[0])(context, builder, value=args[0]).data
        values = ir.Constant(_VECTOR, ir.Undefined)
        for k in range(WIDTH):
            element = builder.add(args[1], builder.mul(args[2], ir.Constant(args[2].type, k)))
            values = builder.insert_element(
                values, builder.load(builder.gep(data, [element])), ir.Constant(ir.IntType(32), k)
            )
        return values

    return packed(array, types.uint64, types.uint64), codegen


@operation(lambda array, index, value: array.__setitem__(slice(int(index), int(index) + WIDTH), value))
def store(typingctx, array, index, value):
    """array[index:index + 8] = value; nothing is checked."""
    _is_row_of_doubles(array)

    def codegen(context, builder, signature, args):
        builder.store(args[2], _address(context, builder, signature.args[0], *args[:2]), align=8)
        return context.get_dummy_value()

    return types.void(array, index, packed), codegen


@operation(lambda x: np.full(WIDTH, x))
def broadcast(typingctx, x):
    """Eight times x."""

    def codegen(context, builder, signature, args):
        lanes = ir.VectorType(ir.IntType(32), WIDTH)
        first = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), args[0], ir.Constant(ir.IntType(32), 0))
        return builder.shuffle_vector(first, ir.Constant(_VECTOR, ir.Undefined), ir.Constant(lanes, [0] * WIDTH))

    return packed(types.float64), codegen


@operation(np.add)
def add(typingctx, a, b):
    """a + b."""
    return packed(packed, packed), lambda context, builder, signature, args: builder.fadd(*args)


@operation(np.subtract)
def subtract(typingctx, a, b):
    """a - b."""
    return packed(packed, packed), lambda context, builder, signature, args: builder.fsub(*args)


@operation(np.multiply)
def multiply(typingctx, a, b):
    """a * b."""
    return packed(packed, packed), lambda context, builder, signature, args: builder.fmul(*args)


@operation(lambda a, b: np.where(a > b, a, b))
def larger(typingctx, a, b):
    """a where a > b, else b."""

    def codegen(context, builder, signature, args):
        return builder.select(builder.fcmp_ordered(">", *args), *args)

    return packed(packed, packed), codegen


def _folded(builder, values, combine):
    """One of eight: the upper half combined with the lower one, three times."""
    size = WIDTH
    while size > 1:
        size //= 2
        half = ir.VectorType(ir.IntType(32), size)
        undefined = ir.Constant(values.type, ir.Undefined)
        low = builder.shuffle_vector(values, undefined, ir.Constant(half, list(range(size))))
        high = builder.shuffle_vector(values, undefined, ir.Constant(half, list(range(size, 2 * size))))
        values = combine(low, high)
    return builder.extract_element(values, ir.Constant(ir.IntType(32), 0))


@operation(lambda x: float(np.max(x)))
def largest(typingctx, x):
    """The largest of the eight; nan is not looked for."""

    def codegen(context, builder, signature, args):
        def pick(low, high):
            return builder.select(builder.fcmp_ordered(">", low, high), low, high)

        return _folded(builder, args[0], pick)

    return types.float64(packed), codegen


@operation(lambda x: float(np.sum(x)))
def total(typingctx, x):
    """The sum of the eight."""
    return types.float64(packed), lambda context, builder, signature, args: _folded(builder, args[0], builder.fadd)


def _mask(holds: np.ndarray) -> int:
    return int(sum(1 << k for k in range(WIDTH) if holds[k]))


def _comparison(sign: str) -> Kernel:
    def bits_of(typingctx, a, b):
        def codegen(context, builder, signature, args):
            bits = builder.bitcast(builder.fcmp_ordered(sign, *args), ir.IntType(8))
            return builder.zext(bits, ir.IntType(64))

        return types.uint64(packed, packed), codegen

    return bits_of


equal_bits = operation(lambda a, b: _mask(a == b))(_comparison("=="))
"""uint64 whose bit k says whether a[k] == b[k], for k < 8."""

greater_bits = operation(lambda a, b: _mask(a > b))(_comparison(">"))
"""uint64 whose bit k says whether a[k] > b[k], for k < 8."""


@operation(lambda array, index: _mask(array[int(index) : int(index) + WIDTH] != 0.0))
def nonzero_bits(typingctx, array, index):
    """uint64 whose bit k says whether array[index + k] != 0, for k < 8; nothing is checked."""
    _is_row_of_doubles(array)

    def codegen(context, builder, signature, args):
        values = builder.load(_address(context, builder, signature.args[0], *args), align=8)
        bits = builder.bitcast(builder.fcmp_unordered("!=", values, ir.Constant(_VECTOR, [0.0] * WIDTH)), ir.IntType(8))
        return builder.zext(bits, ir.IntType(64))

    return types.uint64(array, index), codegen


@operation(lambda bits: (int(bits) & -int(bits)).bit_length() - 1)
def lowest_bit(typingctx, bits):
    """uint64: the place of the lowest bit of a uint64 that is not 0."""

    def codegen(context, builder, signature, args):
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), codegen


@operation(lambda bits: int(bits).bit_length() - 1)
def highest_bit(typingctx, bits):
    """uint64: the place of the highest bit of a uint64 that is not 0."""

    def codegen(context, builder, signature, args):
        zeros = builder.ctlz(args[0], ir.Constant(ir.IntType(1), 1))
        return builder.sub(ir.Constant(zeros.type, 63), zeros)

    return types.uint64(types.uint64), codegen


@inner(**PLAIN)
def columns(first, K):
    """First columns of the four vectors of the group that starts at column `first`; for K >= 8 each ends at K or before."""
    last = K - WIDTH
    return (
        np.uint64(min(first, last)),
        np.uint64(min(first + WIDTH, last)),
        np.uint64(min(first + 2 * WIDTH, last)),
        np.uint64(min(first + 3 * WIDTH, last)),
    )


@inner(**PLAIN)
def broadcast4(x):
    """Four vectors of x."""
    every = broadcast(x)
    return every, every, every, every


@inner(**PLAIN)
def load4(array, row, c):
    """The four vectors of a row that begins at `row`, at the `columns` c. Of 17 to 24 columns the last two are the same."""
    third = load(array, row + c[2])
    fourth = third if c[2] == c[3] else load(array, row + c[3])
    return load(array, row + c[0]), load(array, row + c[1]), third, fourth


@inner(**PLAIN)
def store4(array, row, c, values):
    """Four vectors into a row that begins at `row`, at the `columns` c."""
    store(array, row + c[0], values[0])
    store(array, row + c[1], values[1])
    store(array, row + c[2], values[2])
    store(array, row + c[3], values[3])


@inner(**PLAIN)
def add4(a, b):
    """a + b."""
    return add(a[0], b[0]), add(a[1], b[1]), add(a[2], b[2]), add(a[3], b[3])


@inner(**PLAIN)
def multiply4(x, a):
    """x a, for a number x."""
    every = broadcast(x)
    return multiply(every, a[0]), multiply(every, a[1]), multiply(every, a[2]), multiply(every, a[3])


@inner(**PLAIN)
def larger4(a, b):
    """a where a > b, else b."""
    return larger(a[0], b[0]), larger(a[1], b[1]), larger(a[2], b[2]), larger(a[3], b[3])


@operation(lambda array: array)
def one_type(typingctx, array):
    """The same array as the type of one that is written; the caller must not write it.

    Weights reach passes over blocks read-only (`parallel.Spread.blocks`), and steps write them; true labels are read-only,
    and oracles write theirs. numba has a type for each, and would compile all that a structure's methods call for both.
    """

    def codegen(context, builder, signature, args):
        if context.enable_nrt:
            context.nrt.incref(builder, signature.return_type, args[0])
        return args[0]

    return array.copy(readonly=False)(array), codegen


@operation(lambda array, index: None)
def prefetch(typingctx, array, index):
    """Fetch the cache line of element `index` of a C-contiguous array, counted over all its dimensions."""

    def codegen(context, builder, signature, args):
        byte, integer = ir.IntType(8).as_pointer(), ir.IntType(32)
        data = cgutils.create_struct_proxy(signature.args[0])(context, builder, value=args[0]).data
        kind = ir.FunctionType(ir.VoidType(), [byte, integer, integer, integer])
        llvm_prefetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        read, keep, of_data = integer(0), integer(3), integer(1)
        builder.call(llvm_prefetch, [builder.bitcast(builder.gep(data, [args[1]]), byte), read, keep, of_data])
        return context.get_dummy_value()

    return types.void(array, types.int64), codegen


@inner(**PLAIN)
def prefetch_range(array, start, stop):
    """Fetch elements start..stop - 1 of a C-contiguous array."""
    for j in range(start, stop, LINE // array.itemsize):
        prefetch(array, j)
    if stop > start:
        prefetch(array, stop - 1)
