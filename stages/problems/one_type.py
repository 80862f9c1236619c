"""Read-only arrays as the type of those that are written.

Weights reach passes over blocks read-only (`parallel.Spread.blocks`), and steps write them; true labels are read-only, and
oracles write theirs. numba has a type for each, and would compile all that a structure's methods call for both.
"""

from __future__ import annotations

from gapwise.stages.problems.simd import operation


@operation(lambda array: array)
def one_type(typingctx, array):
    """The same array as the type of one that is written; the caller must not write it."""

    def codegen(context, builder, signature, args):
        if context.enable_nrt:
            context.nrt.incref(builder, signature.return_type, args[0])
        return args[0]

    return array.copy(readonly=False)(array), codegen
