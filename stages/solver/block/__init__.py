"""One block at a time: the step, its views of a block, the moves, and the samplers that say which block is next."""

from pkgutil import extend_path

__path__ = extend_path(__path__, __name__)  # a folder on PYTHONPATH with the same tree adds parts
