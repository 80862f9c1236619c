"""Recomputes every certificate with separate code, which shares only the structures with the solver.

`recompute` derives a breakpoint's numbers from its supports and weights, `audit` compares them with the stored ones, and
the verifier of each path rule, the module of its name, checks what it certifies between breakpoints.
"""
