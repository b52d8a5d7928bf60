"""Whole sweeps of tiny trials on a real Ray: what they leave, and kills; see `test_searches`."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from ray.exceptions import ObjectLostError

from rllib_configs.config.loading import load_config
from rllib_configs.policy_files import load_policy
from tests.clusters.services import psutil
from tests.tune_jobs.sweeps.tiny import GRID, ITERATIONS, Quiet, sweep
from tests.waiting import PATIENCE_S, wait_for
from tune_jobs.figures import draw_figure
from tune_jobs.runs.history import History
from tune_jobs.runs.resuming import find_resumption
from tune_jobs.sweeps.folder import TrialRecord, open_sweep
from tune_jobs.sweeps.sweeping import SweepResult, run_sweep
from tune_jobs.tables.frames import read_table
from tune_jobs.tracking import local_uri

pytestmark = [pytest.mark.integration, pytest.mark.slow]

# Measured with a clock, or a sum whose last digits depend on where an array lies in memory.
INEXACT = ("time/", "workers/", "train/gradient_norm")


def address_of_ray() -> str:
    """What other processes join the session with."""
    import ray

    return ray.get_runtime_context().gcs_address


@pytest.fixture(scope="module")
def whole(local_ray, tmp_path_factory) -> SweepResult:
    """Three trials, two at a time, recorded in a store of their own."""
    runs = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("MLFLOW_TRACKING_URI", raising=False)
        return run_sweep(sweep(concurrent=2), runs=runs, table=Quiet(), draw=draw_figure)


def numbers(trial: Path) -> list[dict[str, float]]:
    """All rows of a trial without what is inexact."""
    return [
        {name: value for name, value in row.items() if not name.startswith(INEXACT)}
        for row in History(trial / "metrics.csv").rows()
    ]


def trials_of(folder: Path) -> list[Path]:
    return sorted((folder / "trials").iterdir())


class TestWhole:
    def test_all_trials_finish_and_are_ordinary_runs(self, whole):
        assert whole.exit_status == 0
        assert whole.counts == {"finished": 3, "stopped": 0, "failed": 0, "left": 0}
        for trial in trials_of(whole.folder.path):
            rows = History(trial / "metrics.csv").rows()
            assert [row["iteration"] for row in rows] == list(range(1, ITERATIONS + 1))
            assert "eval/ratio" in rows[-1]
            _, config = load_policy(trial)
            assert config == load_config(trial / "config.yaml")
            longer = find_resumption(trial, [f"training.iterations={ITERATIONS + 1}"])
            assert longer.checkpoint.iteration == ITERATIONS

    def test_it_leaves_a_table_a_figure_and_a_config_to_train_with(self, whole):
        path = whole.folder.path
        rows = read_table(path / "trials.csv", ["score", "task.objective"])
        for row in rows:  # each with a task of its own
            best = load_config(path / f"best-{row['task.objective']}.yaml")
            assert best.task.objective == row["task.objective"]
            assert best.runs == Path("runs")  # not where it was found
        assert {file.name for file in (path / "figures").iterdir()} == {"sweep.png", "sweep.csv"}
        assert not (path / ".tune").exists()

    def test_the_share_of_time_in_training_is_measured(self, whole):
        assert 0 < whole.share < 1
        busy = sum(float(row["busy_s"]) for row in read_table(whole.folder.path / "trials.csv", []))
        assert whole.share == pytest.approx(busy / (whole.num_slots * whole.wall_s), rel=0.01)

    def test_every_metric_of_every_iteration_is_in_mlflow_below_one_parent(self, whole):
        import mlflow

        uri = local_uri(whole.folder.path.parent)
        client = mlflow.MlflowClient(uri, uri)
        experiment = client.get_experiment_by_name("metasched")
        found = {run.info.run_name: run for run in client.search_runs([experiment.experiment_id])}
        parent = found.pop(whole.folder.path.name)
        assert parent.data.metrics["finished"] == 3
        assert sorted(found) == [
            *("000 objective=slowdown", "001 objective=makespan", "002 objective=utilization")
        ]
        for run, trial in zip(
            (found[name] for name in sorted(found)), trials_of(whole.folder.path), strict=True
        ):
            assert run.data.tags["mlflow.parentRunId"] == parent.info.run_id
            assert run.info.status == "FINISHED"
            for name in ("train/return_mean", "eval/ratio"):
                points = client.get_metric_history(run.info.run_id, name)
                rows = History(trial / "metrics.csv").rows()
                wanted = {row["iteration"]: row[name] for row in rows if name in row}
                assert {point.step: point.value for point in points} == wanted
        assert {file.path for file in client.list_artifacts(parent.info.run_id)} >= {
            *("sweep.yaml", "trials.csv", "best-makespan.yaml", "figures")
        }


def kill_trials() -> None:
    """Kills the processes that train the trials of this process's Ray, busy or not."""
    for process in psutil.Process().children(recursive=True):
        if "SweepTrial" in process.name() or "ray::SweepTrial" in " ".join(process.cmdline()):
            process.kill()


def test_what_loses_a_process_or_an_object_at_any_time_goes_on(whole, local_ray, tmp_path):
    two = ["slowdown", "makespan"]
    killed = []

    def kill(trial: TrialRecord) -> None:
        # In mid-trial; then between two trials, when the process waits for the next one.
        moment = (trial.index, trial.file.status)
        if trial.done < 4 or moment in killed or trial.file.status == "waiting":
            return
        killed.append(moment)
        if moment == (1, "running"):
            raise ObjectLostError("00", None, "")  # as Tune raises it where nobody has the answer
        if trial.index == 0:
            kill_trials()

    result = run_sweep(
        sweep(
            space={"task.objective": {"grid": two}},
            concurrent=1,
            settings={**GRID["settings"], "tracking.enabled": False},
        ),
        runs=tmp_path,
        table=(table := Quiet(kill)),
    )
    assert len(killed) == 4
    assert result.counts["finished"] == 2
    lines = table.text.getvalue().splitlines()
    assert sum("(ObjectLostError): going on from what is recorded" in line for line in lines) == 1
    said = [line for line in lines if "tried again" in line]
    assert [line[:10] for line in said] == ["trial 000 ", "trial 001 "]
    assert all("its process died" in line for line in said)
    for one, other in zip(
        trials_of(result.folder.path), trials_of(whole.folder.path), strict=False
    ):
        assert numbers(one) == numbers(other)


@pytest.mark.service
def test_a_killed_sweep_comes_to_the_same_numbers(whole, local_ray, tmp_path):
    definition = tmp_path / "three.yaml"
    definition.write_text(yaml.safe_dump(GRID))
    folder = tmp_path / "killed"
    command = [sys.executable, "-m", "tune_jobs.tune", str(definition), "--out", str(folder)]
    process = subprocess.Popen(
        [
            *command,
            "--concurrent",
            "1",
            "--address",
            address_of_ray(),
            "--set",
            "tracking.enabled=false",
        ],
        stderr=subprocess.DEVNULL,
        cwd=Path(__file__).parents[3],
    )
    try:
        state = folder / "trials" / "trial-001" / "checkpoints"
        wait_for(
            lambda: list(state.glob("iteration_*")), "a checkpoint of trial 1", process=process
        )
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait(PATIENCE_S)
    assert len(trials_of(folder)) < 3
    first = (folder / "trials" / "trial-000" / "metrics.csv").stat().st_mtime_ns
    resumed = run_sweep(open_sweep(folder), table=Quiet())
    assert resumed.counts["finished"] == 3
    # What was finished has not been touched, and one trial at a time comes to what two came to.
    assert (folder / "trials" / "trial-000" / "metrics.csv").stat().st_mtime_ns == first
    for one, other in zip(trials_of(folder), trials_of(whole.folder.path), strict=True):
        assert numbers(one) == numbers(other)
        assert (one / "policy" / "weights.pt").read_bytes() == (
            other / "policy" / "weights.pt"
        ).read_bytes()
