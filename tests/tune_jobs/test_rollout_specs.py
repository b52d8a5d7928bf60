"""``rollout:POLICY:FUTURES`` in comparisons: its lines, whoever evaluates, and what is refused."""

import json
from typing import Any

import pytest
from click.testing import CliRunner

from cluster_env.core.errors import InputError
from cluster_env.core.seeding import Split
from cluster_env.evaluation import evaluate, get_metric, summarize
from cluster_env.evaluation.lookahead import Lookahead, RolloutPolicy
from rllib_configs.config.loading import load_config
from rllib_configs.policy_files import load_policy
from tune_jobs.compare import command
from tune_jobs.measuring.rollout_specs import rollout_spec

JOBSETS = ("--jobsets", "2", "--loads", "0.9", "--window", "40", "--rules", "released")
NAMES = "fcfs,rollout:fcfs:8,rollout:deeprm-operation:4"


def rows_of(*args: str) -> list[dict[str, Any]]:
    result = CliRunner().invoke(command, ["--json", *args], catch_exceptions=False)
    rows: list[dict[str, Any]] = json.loads(result.stdout)
    return rows


@pytest.mark.integration
def test_lines_are_the_same_whoever_evaluates(local_ray: None) -> None:
    here = rows_of("--policies", NAMES, *JOBSETS)
    assert here == rows_of("--policies", NAMES, *JOBSETS, "--runners", "1")
    names = [row["policy"] for row in here]
    assert sorted(names) == sorted(NAMES.split(","))
    learned = {row["policy"]: row["learned"] for row in here}
    assert learned["rollout:deeprm-operation:4"]
    assert not learned["rollout:fcfs:8"]
    costs = {row["policy"]: row["slowdown"] for row in here}
    assert costs["rollout:fcfs:8"] < costs["fcfs"]


def test_a_line_is_that_of_the_policy_on_held_out_jobsets() -> None:
    row = rows_of("--policies", "rollout:deeprm-operation:4", *JOBSETS)[0]
    options = ["task.workload.load=0.9", "task.workload.window=40"]
    task = load_config("deeprm-operation", options).task.build(seed=0)
    base, _ = load_policy("deeprm-operation", "sample")
    policy = RolloutPolicy("r", base, Lookahead(task, 4))
    jobsets = task.jobsets(Split.HELD_OUT, range(2))
    schedule = evaluate(policy, jobsets, task.world)
    assert get_metric("slowdown").per == "job"
    assert row["slowdown"] == summarize(schedule).mean("slowdown")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("rollout:sjf", "are named rollout:POLICY:FUTURES, .* not 'rollout:sjf'"),
        ("rollout:sjf:x", "are named rollout:POLICY:FUTURES"),
        ("rollout::4", "are named rollout:POLICY:FUTURES"),
        ("rollout:sjff:4", "unknown policy or run directory 'sjff': did you mean 'sjf'"),
        ("rollout:hold:x:4", "'hold:' needs a number"),
        ("rollout:sjf:1", "at least 2 futures, .* but 1 was given"),
    ],
)
def test_other_names_are_refused(name: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        rows_of("--policies", name, *JOBSETS)


def test_worlds_without_futures_are_refused() -> None:
    with pytest.raises(InputError, match=r"need sampled futures, which .* in the world accrual"):
        rows_of("--policies", "rollout:dasa:4", "--config", "accrual-smoke")


def test_rollouts_of_a_rule_that_is_tuned_have_its_number() -> None:
    spec = rollout_spec("rollout:tetris:0.01:5", "sample")
    assert (spec.key, spec.num_futures, spec.learned) == ("rollout:tetris:0.01:5", 5, False)
