"""Each search on a real Ray, with tiny trials."""

import os
import signal

import pytest

from cluster_env.core.errors import InputError
from tests.tune_jobs.sweeps.tiny import GRID, ITERATIONS, Quiet, sweep
from tune_jobs.sweeps.folder import open_sweep
from tune_jobs.sweeps.points import list_points
from tune_jobs.sweeps.progress_table import TrialLine
from tune_jobs.sweeps.sweeping import run_sweep

pytestmark = [pytest.mark.integration, pytest.mark.slow]


@pytest.mark.service
def test_a_population_that_is_stopped_goes_on(local_ray, tmp_path):
    population = sweep(
        name="population",
        space={
            "training.lr": {"log_uniform": [1e-4, 1e-2]},
            "training.rmsprop_decay": {"choice": [0.8, 0.9]},
        },
        search="pbt",
        pbt={"interval": 10},
        concurrent=1,
        trials=3,
        settings={**GRID["settings"], "tracking.enabled": False, "checkpoint.every": 10},
    )

    def stop_once(line: TrialLine) -> None:
        if line.done == 20 and line.index == 2:
            os.kill(os.getpid(), signal.SIGTERM)

    stopped = run_sweep(population, runs=tmp_path, table=Quiet(stop_once))
    assert stopped.exit_status == 143
    assert stopped.counts["left"] > 0
    table = Quiet()
    resumed = run_sweep(open_sweep(stopped.folder.path), table=table)
    assert resumed.counts["finished"] == 3
    assert "Resuming" in table.text.getvalue()
    for file, run in resumed.folder.started():
        assert run.config().training.lr == file.point.settings["training.lr"]
        assert [row["iteration"] for row in run.history.rows()] == list(range(1, ITERATIONS + 1))
    before = [point.settings for point in list_points(population)]
    assert [file.point.settings for file, _ in resumed.folder.started()] != before


def test_asha_stops_trials_early(local_ray, tmp_path):
    halving = sweep(
        name="halving",
        space={"training.lr": {"grid": [1e-3, 1e-1, 1.0]}},
        search="asha",
        asha={"grace": 1, "reduction": 2},
        concurrent=1,
        settings={"training.iterations": 8, "evaluation.every": 1, "tracking.enabled": False},
    )
    result = run_sweep(halving, runs=tmp_path, table=Quiet())
    assert result.counts["stopped"] >= 1
    assert result.counts["finished"] + result.counts["stopped"] == 3
    short = [run for file, run in result.folder.started() if file.status == "stopped"]
    assert all(len(run.history.rows()) < 8 for run in short)


def test_a_metric_that_there_is_not_ends_the_sweep_at_once(local_ray, tmp_path):
    lost = sweep(metric="eval/slowdwn", concurrent=1, settings={"tracking.enabled": False})
    with pytest.raises(InputError, match=r"no metric eval/slowdwn .* eval/slowdown"):
        run_sweep(lost, runs=tmp_path, table=Quiet())
    (folder,) = tmp_path.iterdir()
    assert [file.status for file, _ in open_sweep(folder).started()] == ["failed"]


def test_optuna_chooses_among_tables_and_numbers(local_ray, tmp_path):
    mixtures = ["slowdown", {"slowdown": 1, "makespan": 0.5}]
    searching = sweep(
        name="searching",
        space={
            "task.objective": {"choice": mixtures},
            "training.lr": {"log_uniform": [1e-4, 1e-2]},
            "training.hidden": {"integer": [4, 8]},
        },
        search="optuna",
        concurrent=1,
        trials=3,
        settings={"training.iterations": 2, "tracking.enabled": False},
    )
    result = run_sweep(searching, runs=tmp_path, table=Quiet())
    assert result.counts["finished"] == 3
    for file, run in result.folder.started():
        assert file.point.settings["task.objective"] in mixtures
        assert run.config().training.hidden == file.point.settings["training.hidden"]
