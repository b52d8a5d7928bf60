"""Stores for the tests of tracking: a real SQLite database, made once and copied."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.ports import free_ports
from tests.waiting import PATIENCE_S
from tune_jobs.tracking import Tracker, local_store, local_uri
from tune_jobs.tracking.store import LocalStore


@pytest.fixture(autouse=True)
def _no_server_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)


@pytest.fixture(autouse=True)
def _patient_trackers(monkeypatch: pytest.MonkeyPatch) -> None:
    """What should arrive has as long as a busy machine may take."""
    monkeypatch.setattr(Tracker.close, "__defaults__", (PATIENCE_S,))


@pytest.fixture(scope="session")
def empty_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with MLflow's tables; making them takes seconds."""
    folder = tmp_path_factory.mktemp("store")
    LocalStore(folder)
    return local_store(folder)


@pytest.fixture
def run_dir(tmp_path: Path, empty_store: Path) -> Path:
    """A run directory beside a local store."""
    shutil.copy(empty_store, local_store(tmp_path))
    return tmp_path / "run"


@pytest.fixture
def client(tmp_path: Path) -> Any:
    """MLflow's own client on the store beside `run_dir`, to look at what arrived."""
    import mlflow

    return mlflow.MlflowClient(local_uri(tmp_path), local_uri(tmp_path))


@pytest.fixture
def runs(client: Any) -> Callable[[], dict[str, Any]]:
    """All runs of the experiment ``metasched`` by name."""

    def find() -> dict[str, Any]:
        experiment = client.get_experiment_by_name("metasched")
        found = client.search_runs([experiment.experiment_id]) if experiment else []
        return {run.info.run_name: run for run in found}

    return find


@pytest.fixture
def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on."""
    return free_ports(1)[0]


@pytest.fixture
def nowhere(free_port: int) -> str:
    """The address of a server that is not there."""
    return f"http://127.0.0.1:{free_port}"
