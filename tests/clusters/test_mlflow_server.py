"""The MLflow server of `docker/start-mlflow.sh` keeps to the folder that it was given."""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.clusters.services import DOCKER, Service, free_ports, of_programs, request
from tests.waiting import wait_for

pytestmark = [pytest.mark.integration, pytest.mark.slow]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("mlflow")


@pytest.fixture(scope="module")
def uri(folder: Path) -> Iterator[str]:
    (port,) = free_ports(1)
    environment = {
        **of_programs(),
        "METASCHED_MLFLOW_PORT": str(port),
        "MLFLOW_BACKEND_STORE_URI": f"sqlite:///{folder}/mlflow.db",
        "MLFLOW_ARTIFACTS_DESTINATION": str(folder / "artifacts"),
    }
    server = Service(["sh", str(DOCKER / "start-mlflow.sh")], environment, folder / "log")
    server.start()
    try:
        address = f"http://127.0.0.1:{port}"
        is_up = partial(request, f"{address}/health")
        wait_for(lambda: is_up()[0] == 200 or server.has_ended(), "the start of MLflow")
        assert not server.has_ended(), server.log()
        yield address
    finally:
        server.stop()


def write_through(uri: str, experiment: bytes, name: str) -> tuple[int, dict[str, Any]]:
    """Makes an experiment with a run, has the server write a file for it, and says what it said."""
    status, answer = request(f"{uri}/api/2.0/mlflow/experiments/create", experiment)
    if status != 200:
        return status, answer
    run = json.dumps({"experiment_id": answer["experiment_id"]}).encode()
    _, answer = request(f"{uri}/api/2.0/mlflow/runs/create", run)
    run_id = answer["run"]["info"]["run_id"]
    place = f"{uri}/ajax-api/2.0/mlflow/upload-artifact?run_uuid={run_id}&path={name}"
    return request(place, b'"of a stranger"')


@pytest.mark.parametrize("spelling", ["artifact_location", "artifactLocation"])
@pytest.mark.parametrize("wrapped", [False, True], ids=["plain", "wrapped"])
def test_a_client_cannot_choose_where_it_writes(uri, tmp_path, spelling, wrapped):
    elsewhere = tmp_path / "of-another"
    body = json.dumps({"name": f"{spelling}{wrapped}", spelling: elsewhere.as_uri()})
    status, answer = write_through(
        uri, (json.dumps(body) if wrapped else body).encode(), "stranger.json"
    )
    assert not elsewhere.exists()
    assert status == 403
    assert "chooses where artifacts lie" in answer["message"]


@pytest.mark.parametrize("spelling", ["default_artifact_root", "defaultArtifactRoot"])
def test_a_client_cannot_choose_where_a_workspace_lies(uri, tmp_path, spelling):
    """MLflow takes such a root of artifacts for all experiments below a workspace."""
    body = json.dumps({"name": "of-a-stranger", spelling: (tmp_path / "of-another").as_uri()})
    status, answer = request(f"{uri}/api/3.0/mlflow/workspaces", body.encode())
    assert status == 403
    assert "chooses where artifacts lie" in answer["message"]


def test_what_it_is_sent_lies_in_its_folder(uri, folder):
    status, _ = write_through(uri, b'{"name": "ordinary"}', "ours.json")
    assert status == 200
    (written,) = folder.glob("artifacts/**/ours.json")
    assert written.read_text() == '"of a stranger"'
