"""``metasched train rllib-ppo``: RLlib's own PPO goes through all that a run of ours does."""

import math
from pathlib import Path

import pytest

from cluster_env.core.seeding import Split
from cluster_env.evaluation import evaluate_summary
from cluster_env.workloads import sample_jobsets
from rllib_configs.loading import load_config
from rllib_configs.policies import load_policy
from tune_jobs import cli
from tune_jobs.ray_session import ray_session
from tune_jobs.runs import open_run

TINY = {
    "training.iterations": 2,
    "training.decisions": 1600,
    "training.epochs": 2,
    "training.minibatches": 4,
    "training.hidden": 16,
    "evaluation.every": 1,
    "evaluation.jobsets": 5,
}


@pytest.mark.integration
@pytest.mark.slow
def test_it_trains_evaluates_saves_loads_and_resumes(tmp_path: Path) -> None:
    run = tmp_path / "run"
    settings = [word for key, value in TINY.items() for word in ("--set", f"{key}={value}")]
    start = ["rllib-ppo", "--run", str(run), "--no-track", "--runners", "0", *settings]
    more = ["--resume", str(run), "--set", "training.iterations=3"]
    with ray_session(load_config("rllib-ppo")):
        assert cli.run(cli.metasched, ["train", *start]) == 0
        assert [checkpoint.iteration for checkpoint in open_run(run).checkpoints.all()] == [2]
        assert cli.run(cli.metasched, ["train", *more, "--runners", "1"]) == 0

    rows = open_run(run).history.rows()
    assert [row["iteration"] for row in rows] == [1, 2, 3]
    counts = [row["total/decisions"] for row in rows]
    assert all(1600 <= more < 1700 for more in (counts[0], counts[1] - counts[0]))
    assert 1600 <= counts[2] - counts[1] < 1700  # they go on
    assert [row["workers/healthy"] for row in rows] == [0, 0, 1]
    for row in rows:
        assert row["eval/slowdown"] > 1
        assert math.isfinite(row["train/return_mean"])
        assert row["time/decisions_per_s"] > 0
    assert (run / "figures" / "deeprm-fig6.png").is_file()

    policy, config = load_policy(run)
    jobsets = sample_jobsets(config.task.build_workload(), 0, Split.VALIDATION, range(5))
    again = evaluate_summary(policy, jobsets, config.task.cluster.build(), run_seed=0)
    assert again["slowdown"] == rows[-1]["eval/slowdown"]
