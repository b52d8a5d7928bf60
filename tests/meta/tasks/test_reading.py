"""From what a user writes to a task."""

from pathlib import Path

import pytest

from cluster_env.core.errors import InputError
from cluster_env.worlds.deeprm.log import DeepRMLog
from meta.tasks import read_task
from rllib_configs.config.loading import load_config
from rllib_configs.config.task_schema import TaskSection
from tests.cluster_env.worlds.deeprm.random_trace import make_trace

HOME = load_config("deeprm", ["task.world.rules=released", "task.workload.load=0.9"]).task


def test_changes_alone_change_the_home_task() -> None:
    task = read_task(["objective=makespan", "workload.window=40"], HOME, seed=3)
    assert (task.name, task.seed) == ("my task", 3)
    assert (task.objective.name, task.workload.load, task.workload.window) == ("makespan", 0.9, 40)
    assert task.world.rules == "released"


def test_a_task_of_a_family_can_be_changed() -> None:
    whole, changed = (
        read_task(texts, HOME) for texts in (["mixed:4"], ["mixed:4", "objective=makespan"])
    )
    assert (whole.name, changed.name) == ("mixed:4", "mixed:4, changed")
    assert (changed.workload, changed.seed) == (whole.workload, whole.seed)
    assert changed.objective.name == "makespan"


def test_a_file_says_what_differs_from_the_home_task(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("objective: {slowdown: 1, makespan: 0.5}\nworkload: {window: 40}\n")
    task = read_task([str(path), "workload.load=0.5"], HOME)
    assert task.name == "mine, changed"
    assert (task.workload.load, task.workload.window) == (0.5, 40)
    assert task.world.rules == "released"
    assert task.objective.name == "1 slowdown + 0.5 makespan"


@pytest.mark.parametrize("text", ["{kind: trace, path: jobs.csv}", "{trace: jobs.csv}"])
def test_a_trace_of_a_file_lies_beside_it(tmp_path: Path, text: str) -> None:
    trace = make_trace(tmp_path / "jobs.csv")
    path = tmp_path / "mine.yaml"
    path.write_text(f"workload: {text}\n")
    task = read_task([str(path)], HOME)
    assert isinstance(task.workload, DeepRMLog)
    assert task.workload.path == trace
    assert TaskSection.of(task).build(task.name, task.seed).workload.path == trace
    made_up = read_task(["workload.trace=null"], TaskSection.of(task))
    assert made_up.workload.load == 0.7


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ([], "nothing was given"),
        (["objectives:1", "mixed:2"], "'objectives:1' and 'mixed:2' was given"),
        (["objectives"], "a task is named as in"),
        (["nowhere.yaml"], r"there is no file nowhere\.yaml"),
        (["workload.lod=1"], r"did you mean 'workload\.load'\?"),
        (["workload.load=3"], "out of reach"),
    ],
)
def test_what_is_no_task_is_said_in_one_sentence(texts: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        read_task(texts, HOME)
    assert "\n" not in str(caught.value)
