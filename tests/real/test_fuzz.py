"""Ten thousand documents: no traceback, and nothing accepted that the schema refuses."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from sparkrecipes.catalog import open_catalog
from tests.support import foreign_recipes

CATALOG = open_catalog()


@pytest.mark.real
@settings(
    max_examples=10_000,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(text=foreign_recipes.DOCUMENTS)
def test_ten_thousand_documents(text: str) -> None:
    """Each is validated and imported."""
    foreign_recipes.hold(text, CATALOG)
