"""What tests of several worlds need."""

import pytest


@pytest.fixture
def solver() -> None:
    pytest.importorskip("ortools", reason="needs the extra clairvoyant")
