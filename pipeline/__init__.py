from pkgutil import extend_path

__path__ = extend_path(__path__, __name__)  # a folder on PYTHONPATH with the same tree adds parts
