"""A head that was killed starts again, while workers of the old one have not noticed yet."""

import importlib.util
import socket
from collections.abc import Callable

import pytest
from ray._private import services

from tests.conftest import REPOSITORY


def test_only_a_head_that_answers_is_in_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as alive, socket.socket() as dead:
        alive.bind(("127.0.0.1", 0))
        alive.listen()
        dead.bind(("127.0.0.1", 0))
        addresses = [f"127.0.0.1:{one.getsockname()[1]}" for one in (alive, dead)]

        def find() -> frozenset[str]:
            """What Ray finds on the command lines of all processes."""
            return frozenset(addresses)

        find.cache_clear = lambda: None  # type: ignore[attr-defined]
        monkeypatch.setattr(services, "find_gcs_addresses", find)
        monkeypatch.delenv("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", raising=False)
        path = REPOSITORY / "docker" / "ray_cli.py"
        spec = importlib.util.spec_from_file_location("ray_cli", path)
        spec.loader.exec_module(importlib.util.module_from_spec(spec))
        patched: Callable[[], frozenset[str]] = services.find_gcs_addresses
        assert patched() == {addresses[0]}
