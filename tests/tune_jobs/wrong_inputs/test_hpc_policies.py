"""Learned policies where they cannot be used, broken weights, and limits that contradict."""

import json
from pathlib import Path

import pytest

from rllib_configs.policy_files import read_weights, write_policy
from tests.tune_jobs.wrong_inputs.conftest import Refuse

LIMIT = "--set training.limits"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("compare --policies saf,deeprm-operation --config hpc-smoke", "world"),
        ("compare --policies sjf,hpc-order --config deeprm-smoke", "world"),
        ("compare --decide --policies deeprm-operation --config hpc-smoke", "world"),
        ("compare --decide --policies hpc-order --config deeprm-smoke", "world"),
        (
            "compare --decide --policies hpc-order --limit wait=0.1 --limit wait=0.5",
            "--limit is given twice for wait",
        ),
        (
            "compare --decide --policies hpc-order --limit wait=-0.1",
            "--limit takes a metric and a share",
        ),
        (
            f"train hpc-order --set task.objective=utilization {LIMIT}.utilization=0",
            "contradicts it",
        ),
    ],
)
def test_a_policy_of_another_world_and_limits_that_contradict_are_refused(
    line: str, words: str, refuse: Refuse
) -> None:
    assert words in refuse(line)


@pytest.mark.parametrize(
    "command",
    ["compare --policies saf,{}", "compare --decide --policies {}", "replay x --policies {}"],
)
def test_weights_that_are_not_finite_are_refused(
    command: str, tmp_path: Path, refuse: Refuse
) -> None:
    weights, config = read_weights("hpc-order")
    write_policy(weights, config, tmp_path / "p", as_text=True)
    file = tmp_path / "p" / "weights.json"
    data = json.loads(file.read_text())
    file.write_text(json.dumps(data | {"network.job": [float("nan"), *data["network.job"][1:]]}))
    if command.startswith("replay"):
        log = tmp_path / "jobs.csv"
        log.write_text("arrival,duration,processors\n0,9,1\n5,9,1\n")
        command = command.replace("x", f"{log} --processors 4", 1)
    assert "NaN or infinite" in refuse(command.format(tmp_path / "p"))
