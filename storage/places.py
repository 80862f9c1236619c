"""Former names of `storage.backend`, for modules that still import them."""

from storage.backend import Location as Place
from storage.backend import UrlPath as ObjectPlace
from storage.backend import location as place
from storage.files import listed

__all__ = ["ObjectPlace", "Place", "listed", "place"]
