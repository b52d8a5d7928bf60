"""A small local Ray for the tests of this folder."""

import os
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session")
def local_ray() -> Iterator[None]:
    """Ray with four logical CPUs, whatever the machine has."""
    os.environ["RAY_AUTH_MODE"] = "disabled"
    import ray

    ray.init(
        num_cpus=4,
        include_dashboard=False,
        log_to_driver=False,
        logging_level="ERROR",
        _node_ip_address="127.0.0.1",
    )
    yield
    ray.shutdown()
