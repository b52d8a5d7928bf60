"""Specialists: trained on held-out tasks one by one, from the joint policy, and not twice."""

from pathlib import Path

import pytest
import torch
from click.testing import CliRunner, Result

from cluster_env.core.errors import InputError
from cluster_env.core.seeding import Split
from meta.tasks import TaskSplit, get_distribution
from rllib_configs.policy_files import read_weights
from tests.tune_jobs.untrained_scorers import FOMAML, JOINT, QUICK, make_family, make_scorer
from tune_jobs.study import command
from tune_jobs.tables.frames import number, read_table

pytestmark = pytest.mark.usefixtures("as_in_plans")

TRAINING = ("training.jobsets=2", "training.episodes_per_jobset=2", "resources.num_runners=0")


def call(run: Path, *args: str) -> Result:
    return CliRunner().invoke(command, [str(run), *QUICK, *args], catch_exceptions=False)


@pytest.mark.integration
def test_specialists_are_trained_on_their_task_alone_and_once(
    local_ray: None, tmp_path: Path
) -> None:
    family = make_family(tmp_path / "small.yaml")
    options = (*JOINT, *TRAINING, f"training.family={family}", "training.tasks=2")
    joint = make_scorer(tmp_path / "joint", *options)
    args = ("--specialists", "2", "--tasks", "4", "--iterations", "1", "--evaluate", "4")
    folders = ("--family", str(family), "--out", str(tmp_path / "rows"))
    runs = tmp_path / "rows" / "small" / "specialists"
    assert "headroom" in call(joint, *args, *folders).output
    rows = read_table(tmp_path / "rows" / "small" / "specialists.csv", ("task", "ratio"))
    tasks = TaskSplit(get_distribution(family), 0, Split.HELD_OUT).balanced(4)[:2]
    assert [row["task_name"] for row in rows] == [task.name for task in tasks]
    assert all(number(row, "ratio") > 0 for row in rows)
    before = read_weights(joint)[0]
    for index, task in enumerate(tasks):
        weights, config = read_weights(runs / f"small-{index}")
        assert config.task.objective == task.objective.name
        assert config.task.workload.load == task.workload.load
        moved = abs(weights["network.score.weight"] - before["network.score.weight"]).max()
        assert 0 < moved < 0.1  # it began with the joint policy
    metrics = runs / "small-0" / "metrics.csv"
    written = metrics.stat().st_mtime_ns
    call(joint, *args, *folders)
    assert metrics.stat().st_mtime_ns == written
    # One that was stopped has a policy, too, and goes on.
    further = ("--specialists", "1", "--tasks", "4", "--iterations", "2", "--evaluate", "4")
    call(joint, *further, *folders)
    assert len(metrics.read_text().splitlines()) == 3
    # That of another joint policy is not taken for one of this.
    weights = joint / "policy" / "weights.pt"
    torch.save({name: 2 * value for name, value in torch.load(weights).items()}, weights)
    with pytest.raises(InputError, match="small-0 is a specialist for another task, of another"):
        call(joint, *further, *folders)


def test_only_joint_training_has_specialists(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="was not trained jointly"):
        call(make_scorer(tmp_path / "fomaml", *FOMAML), "--specialists", "1")
