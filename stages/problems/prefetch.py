"""Ask the processor for memory that will be read soon, so that it arrives while other work is done.

Visits in random order read a few hundred bytes here and there for each block; which block comes next is known long before.
A prefetch loads nothing into a register, waits for nothing and never faults. With the JIT off it does nothing.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils

from gapwise.stages.problems.inner import inner
from gapwise.stages.problems.protocol import PLAIN
from gapwise.stages.problems.simd import operation

LINE = 64
"""Bytes that one prefetch brings."""


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
