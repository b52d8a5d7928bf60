"""A folder of runs that was moved or copied keeps its figures, its models and its records."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from tune_jobs.tracking import Tracker, local_store, local_uri
from tune_jobs.tracking.moving import mend_addresses
from tune_jobs.tracking.store import LocalStore


@pytest.fixture
def recorded(tmp_path: Path, empty_store: Path) -> Path:
    """A folder with a store and a run that has a figure and a registered model."""
    runs = tmp_path / "the runs"  # addresses hold %20
    runs.mkdir()
    shutil.copy(empty_store, local_store(runs))
    record(runs / "run", 1)
    client = client_of(runs)
    [run] = found(client)
    model = client.create_logged_model(run.info.experiment_id, "policy", run.info.run_id)
    client.log_model_artifacts(model.model_id, str(runs / "run" / "figures"))
    client.finalize_logged_model(model.model_id, "READY")
    client.create_registered_model("m")
    source = client.get_logged_model(model.model_id).artifact_location
    client.create_model_version("m", source, run.info.run_id, model_id=model.model_id)
    return runs


def record(run_dir: Path, step: int) -> None:
    (run_dir / "figures").mkdir(parents=True, exist_ok=True)
    (run_dir / "figures" / "curve.png").write_text(f"figure {step}")
    client_of(run_dir.parent)
    with Tracker.open(run_dir, run_name="r") as tracker:
        tracker.metrics({"a": step}, step)
        tracker.artifact(run_dir / "figures")


def client_of(runs: Path) -> Any:
    import mlflow
    from mlflow.tracking._tracking_service import utils

    utils._artifact_repos_cache.clear()  # of this process, which has seen the old addresses
    return mlflow.MlflowClient(local_uri(runs), local_uri(runs))


def found(client: Any) -> list[Any]:
    return list(client.search_runs([client.get_experiment_by_name("metasched").experiment_id]))


def figure(runs: Path) -> str:
    client = client_of(runs)
    [run] = found(client)
    return Path(client.download_artifacts(run.info.run_id, "figures/curve.png")).read_text()


def test_a_moved_folder_finds_figures_and_models(recorded: Path, tmp_path: Path) -> None:
    new = tmp_path / "archive" / "of 2026"
    new.parent.mkdir()
    recorded.rename(new)
    assert mend_addresses(local_store(new)) == [recorded]
    assert figure(new) == "figure 1"
    client = client_of(new)
    for address in (
        client.get_model_version_download_uri("m", 1),
        client.search_logged_models(["1"])[0].artifact_location,
    ):
        assert Path(address.removeprefix("file://").replace("%20", " ")).is_relative_to(new)
    assert str(recorded).encode() not in local_store(new).read_bytes().replace(b"%20", b" ")
    assert mend_addresses(local_store(new)) == []


def test_a_run_in_a_moved_folder_goes_on_where_it_was(recorded: Path, tmp_path: Path) -> None:
    new = tmp_path / "moved"
    recorded.rename(new)
    record(new / "run", 2)
    assert figure(new) == "figure 2"
    client = client_of(new)
    [run] = found(client)
    history = client.get_metric_history(run.info.run_id, "a")
    assert [point.step for point in history] == [1, 2]
    assert not recorded.exists()  # nothing is written to the old place


def test_a_copy_has_figures_of_its_own(recorded: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(recorded, copy)
    record(copy / "run", 2)
    assert (figure(copy), figure(recorded)) == ("figure 2", "figure 1")


def test_a_store_whose_artifacts_lie_elsewhere_is_left_alone(
    recorded: Path, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    shutil.copy(local_store(recorded), local_store(tmp_path / "other"))
    assert mend_addresses(local_store(tmp_path / "other")) == []
    assert figure(tmp_path / "other") == "figure 1"
    LocalStore(recorded)
    assert mend_addresses(local_store(recorded)) == []


def test_what_is_no_database_of_mlflow_is_left_alone(tmp_path: Path) -> None:
    local_store(tmp_path).touch()
    assert mend_addresses(local_store(tmp_path)) == []
