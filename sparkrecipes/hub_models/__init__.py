"""Models that the catalog does not know, and sizes of those it knows, as the Hub has them."""

from sparkrecipes.hub_models.repository import fetch, model_from_config
from sparkrecipes.hub_models.sizes import FileSize, file_sizes

__all__ = ["FileSize", "fetch", "file_sizes", "model_from_config"]
