"""A figure that is recorded: a run of its own beside those that it was drawn from."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from tests.tune_jobs.untrained_runs import make_run
from tune_jobs import figure
from tune_jobs.tracking import Tracker

Runs = Callable[[], dict[str, Any]]


def test_image_and_table_go_to_the_store_and_experiment_of_the_first_run(
    run_dir: Path, client: Any
) -> None:
    make_run(run_dir)
    with Tracker.open(run_dir, experiment="mine", run_name="trained"):
        pass
    out = run_dir.parent / "elsewhere" / "figures"
    args = ["learning-curves", "--runs", str(run_dir), "--out", str(out), "--track"]
    for _ in range(2):
        CliRunner().invoke(figure.command, args, catch_exceptions=False)
    experiment = client.get_experiment_by_name("mine").experiment_id
    found = {run.info.run_name: run for run in client.search_runs([experiment])}
    assert found.keys() == {"trained", "learning-curves figure"}
    recorded = found["learning-curves figure"]
    assert recorded.data.tags["mlflow.parentRunId"] == found["trained"].info.run_id
    assert (recorded.info.status, recorded.data.tags["kind"]) == ("FINISHED", "figure")
    files = {file.path for file in client.list_artifacts(recorded.info.run_id, "figures")}
    assert files == {"figures/learning-curves.png", "figures/learning-curves.csv"}


def test_without_runs_it_goes_to_the_results_beside_the_folder(
    run_dir: Path, client: Any, runs: Runs
) -> None:
    trained = make_run(run_dir.parent / "untracked" / "run")
    out = run_dir.parent / "figures"
    draw = ["learning-curves", "--out", str(out)]
    CliRunner().invoke(figure.command, [*draw, "--runs", str(trained)], catch_exceptions=False)
    assert not (out / "learning-curves").exists()
    again = [*draw, "--rows", str(out / "learning-curves.csv"), "--track"]
    CliRunner().invoke(figure.command, again, catch_exceptions=False)
    assert runs() == {}
    experiment = client.get_experiment_by_name("metasched results").experiment_id
    found = client.search_runs([experiment])
    assert [run.info.run_name for run in found] == ["learning-curves figure"]
