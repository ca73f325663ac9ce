"""Models that the catalog does not know, described by their repository on the Hub."""

from sparkrecipes.hub_models.repository import fetch, model_from_config

__all__ = ["fetch", "model_from_config"]
