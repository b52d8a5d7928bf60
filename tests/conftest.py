"""What all tests share: a quiet environment, Hypothesis profiles, golden data, a small Ray."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

REPOSITORY = Path(__file__).resolve().parent.parent

# Set before any test imports the libraries that read them.
os.environ["MPLBACKEND"] = "Agg"
os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
os.environ["RAY_AUTH_MODE"] = "disabled"
os.environ["METASCHED_IMPORTS"] = "tests"  # configs may name distributions of the tests

# No deadline: the first example of a test may compile the simulator.
settings.register_profile("local", deadline=None, max_examples=50)
settings.register_profile("ci", settings.get_profile("local"), derandomize=True, database=None)
settings.load_profile("ci" if os.environ.get("CI") else "local")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks as ``golden`` each test that uses the fixture, so that ``-m golden`` finds them all."""
    for item in items:
        if "golden" in getattr(item, "fixturenames", ()):
            item.add_marker("golden")
        if item.get_closest_marker("service") and not os.environ.get("METASCHED_SERVICE"):
            item.add_marker(pytest.mark.skip(reason="takes minutes: make test-service"))


@pytest.fixture(scope="session")
def golden() -> Path:
    """Folder of the golden data; a test that needs it is skipped where it is absent."""
    folder = Path(os.environ.get("METASCHED_GOLDEN") or REPOSITORY.parent / "shared" / "golden")
    if not any(folder.glob("*/*")):
        pytest.skip(f"no golden data in {folder}; METASCHED_GOLDEN can name another folder")
    return folder


@pytest.fixture(scope="session")
def local_ray() -> Iterator[None]:
    """Ray with four logical CPUs, whatever the machine has."""
    import ray

    from tune_jobs.terminal.ray_session import start_patiently

    start_patiently(
        num_cpus=4,
        include_dashboard=False,
        log_to_driver=False,
        logging_level="ERROR",
        _node_ip_address="127.0.0.1",
    )
    yield
    ray.shutdown()
