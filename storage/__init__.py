from pkgutil import extend_path

__path__ = extend_path(__path__, __name__)  # parts of one's own, in a folder on PYTHONPATH that repeats this tree
