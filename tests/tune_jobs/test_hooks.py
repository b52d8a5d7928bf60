"""Hooks: they see each iteration of trainings, resumptions and trials, and cannot end one."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from rllib_configs.config.loading import load_config
from rllib_configs.config.registries import HOOKS
from tests.registries import own_registrations
from tests.tune_jobs.sweeps.tiny import Quiet, sweep
from tune_jobs.runs.resuming import find_resumption
from tune_jobs.runs.training import run_training
from tune_jobs.sweeps.sweeping import run_sweep

pytestmark = pytest.mark.integration


@pytest.fixture
def seen(local_ray: None) -> Iterator[list[tuple[dict[str, float], Path]]]:
    """What a hook is called with, beside one that fails and one that changes its row."""
    calls: list[tuple[dict[str, float], Path]] = []
    with own_registrations((HOOKS,)):
        HOOKS.register("broken")(lambda row, run: row.clear() or 1 / 0)
        HOOKS.register("recorder")(lambda row, run: calls.append((row, run)))
        yield calls


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if "hook" in record.name]


def test_a_hook_sees_each_iteration_and_a_broken_one_is_off(seen, tmp_path, caplog) -> None:
    config = load_config("deeprm-smoke", ["tracking.enabled=false"])
    result = run_training(config, run_dir=tmp_path / "run")
    rows = result.run.history.rows()
    assert [row for row, _ in seen] == rows
    assert len(rows) == result.num_iterations == 4
    assert {run for _, run in seen} == {tmp_path / "run"}
    off = "the hook broken failed and is off now (ZeroDivisionError: division by zero)."
    assert warnings(caplog) == [off]
    seen.clear()
    shutil.rmtree(tmp_path / "run" / "checkpoints" / "iteration_000004")
    resumption = find_resumption(tmp_path / "run")
    run_training(resumption.config, resume=resumption)
    assert [row["iteration"] for row, _ in seen] == [3, 4]
    assert warnings(caplog) == [off, off]


def test_a_hook_sees_the_iterations_of_trials(seen, tmp_path, caplog) -> None:
    settings = {"training.iterations": 3, "tracking.enabled": False}
    space = {"task.objective": {"grid": ["slowdown", "makespan"]}}
    folder = run_sweep(sweep(settings=settings, space=space), runs=tmp_path, table=Quiet()).folder
    assert {trial.file.status for trial in folder.started()} == {"finished"}
    for trial in folder.started():
        assert [row for row, run in seen if run == trial.run.path] == trial.run.history.rows()
    assert len(seen) == 6
    assert len(warnings(caplog)) == 1
