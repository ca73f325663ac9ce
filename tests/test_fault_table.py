"""``docs/faults.md`` against what it names: tests that exist, and codes that the product gives."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.fault_table import Fault, faults

TESTS = Path(__file__).parent
PRODUCT = Path(__file__).parents[1] / "sparkrecipes"
FAULTS = faults()
SOURCE = "\n".join(path.read_text() for path in PRODUCT.rglob("*.py"))


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_each_row_names_tests_and_codes_that_exist(fault: Fault) -> None:
    """No row promises what no test holds, and no code is made up."""
    assert fault.held_by
    for file, function in fault.held_by:
        assert re.search(rf"^def {function}\(", (TESTS / file).read_text(), re.M), (file, function)
    for code in fault.codes:
        assert f'"{code}"' in SOURCE
    assert {0, 1, 2, 3, 130} >= set(fault.exits)


@pytest.mark.parametrize(
    "word",
    [
        *("port taken", "name taken", "NVIDIA", "another platform", "image gone", "429"),
        *("token", "disk full", "download killed", "killed while loading", "ends at once"),
        *("hangs", "unknown to the engine", "two installs"),
    ],
)
def test_every_fault_that_must_be_known_has_a_row(word: str) -> None:
    """The list that an installer must survive is covered."""
    assert any(word in name for name in FAULTS)
