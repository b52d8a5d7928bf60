"""The first test that plays a rule may have to compile it, which takes a busy machine minutes."""

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "worlds/hpc" in item.path.as_posix():
            item.add_marker(pytest.mark.timeout(600))
