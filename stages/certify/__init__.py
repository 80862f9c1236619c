"""Every certificate once more, by code of its own: it shares the structures with the solver, and nothing else.

`recompute` makes a breakpoint's numbers from its supports and weights, `audit` compares them with what is stored, and one
twin a path rule (`one_sided`, `two_sided`, `paper`, `given`) checks what the rule certifies between breakpoints.
"""

from pkgutil import extend_path

__path__ = extend_path(__path__, __name__)  # a folder on PYTHONPATH with the same tree adds parts
