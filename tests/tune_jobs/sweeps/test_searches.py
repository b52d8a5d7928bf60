"""Each search on a real Ray, with tiny trials."""

import os
import signal

import pytest

from cluster_env.core.errors import InputError
from tests.tune_jobs.sweeps.tiny import GRID, ITERATIONS, Quiet, sweep
from tune_jobs.sweeps.folder import TrialRecord, open_sweep
from tune_jobs.sweeps.points import list_points
from tune_jobs.sweeps.sweeping import run_sweep

pytestmark = [pytest.mark.integration, pytest.mark.slow]


@pytest.mark.service  # in a Ray of its own: a resumed sweep has waited there for ever beside others
def test_a_population_that_is_stopped_goes_on(local_ray, tmp_path):
    population = sweep(
        name="population",
        space={
            "training.lr": {"log_uniform": [1e-4, 1e-2]},
            "training.rmsprop_decay": {"choice": [0.8, 0.9]},
        },
        search="pbt",
        pbt={"interval": 5},
        concurrent=1,
        trials=3,
        settings={**GRID["settings"], "tracking.enabled": False, "checkpoint.every": 5},
    )

    def stop_once(trial: TrialRecord) -> None:
        if trial.done == 10 and trial.index == 2:
            os.kill(os.getpid(), signal.SIGTERM)

    stopped = run_sweep(population, runs=tmp_path, table=Quiet(stop_once))
    assert stopped.exit_status == 143
    assert stopped.counts["left"] > 0
    table = Quiet()
    resumed = run_sweep(open_sweep(stopped.folder.path), table=table)
    assert resumed.counts["finished"] == 3
    assert "Resuming" in table.text.getvalue()
    for trial in resumed.folder.started():
        assert trial.config.training.lr == trial.file.point.settings["training.lr"]
        rows = trial.run.history.rows()
        assert [row["iteration"] for row in rows] == list(range(1, ITERATIONS + 1))
    before = [point.settings for point in list_points(population)]
    assert [trial.file.point.settings for trial in resumed.folder.started()] != before


def test_asha_stops_trials_early(local_ray, tmp_path):
    halving = sweep(
        name="halving",
        space={"training.lr": {"grid": [1e-3, 1e-1, 1.0]}},
        search="asha",
        asha={"grace": 1, "reduction": 2},
        concurrent=1,
        settings={"training.iterations": 8, "evaluation.every": 1, "tracking.enabled": False},
    )
    result = run_sweep(halving, runs=tmp_path, table=(table := Quiet(interactive=True)))
    assert "3/3 trials over" in table.text.getvalue()
    assert result.counts["stopped"] >= 1
    assert result.counts["finished"] + result.counts["stopped"] == 3
    short = [trial for trial in result.folder.started() if trial.file.status == "stopped"]
    assert all(trial.done < 8 for trial in short)


def test_a_metric_that_there_is_not_ends_the_sweep_at_once(local_ray, tmp_path):
    lost = sweep(metric="eval/slowdwn", concurrent=1, settings={"tracking.enabled": False})
    with pytest.raises(InputError, match=r"no metric eval/slowdwn .* eval/slowdown"):
        run_sweep(lost, runs=tmp_path, table=Quiet())
    (folder,) = tmp_path.iterdir()
    assert [trial.file.status for trial in open_sweep(folder).started()] == ["failed"]


def test_optuna_chooses_among_tables_and_numbers_and_goes_on_after_a_stop(local_ray, tmp_path):
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
        settings={"training.iterations": 4, "checkpoint.every": 1, "tracking.enabled": False},
    )

    def stop_once(trial: TrialRecord) -> None:
        if (trial.index, trial.done) == (1, 2):
            os.kill(os.getpid(), signal.SIGTERM)

    stopped = run_sweep(searching, runs=tmp_path, table=Quiet(stop_once))
    assert (stopped.exit_status, stopped.counts["finished"], stopped.counts["left"]) == (143, 1, 2)
    before = [trial.file.point for trial in stopped.folder.started()]
    resumed = run_sweep(open_sweep(stopped.folder.path), table=Quiet())
    assert resumed.counts["finished"] == 3
    trials = resumed.folder.started()
    assert [trial.file.point for trial in trials][:2] == before
    for trial in trials:
        settings = trial.file.point.settings
        assert settings["task.objective"] in mixtures
        assert trial.config.training.hidden == settings["training.hidden"]
        assert [row["iteration"] for row in trial.run.history.rows()] == [1, 2, 3, 4]
