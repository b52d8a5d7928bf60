"""The set scorer in task graphs: it picks stages and says how many executors they get."""

from typing import Any

import numpy as np
import pytest

from cluster_env.worlds.graphs.features import CONTEXT
from rllib_configs.algorithms.batched import module_weights
from rllib_configs.builders import build_algorithm
from rllib_configs.config.loading import make_config
from rllib_configs.config.schema import ExperimentConfig, prepare

pytestmark = pytest.mark.usefixtures("local_ray")

TASK = {
    "world": {"kind": "graphs", "executors": 4},
    "workload": {"kind": "generated", "jobs": 4, "gap_s": 2.0, "most": 4},
    "objective": "completion_time",
}
SMALL = {"network": "set_scorer", "hidden": 8, "jobsets": 2, "episodes_per_jobset": 2}
LEARNERS = {
    "ppo": {"task": TASK, "training": {**SMALL, "algorithm": "ppo"}},
    "maml": {
        "training": {**SMALL, "algorithm": "maml", "family": "shifts", "tasks": 2, "jobsets": 1}
    },
}


def config_of(learner: str) -> ExperimentConfig:
    data: dict[str, Any] = {**LEARNERS[learner], "resources": {"num_runners": 0}}
    return prepare(make_config(data))


@pytest.mark.parametrize("learner", LEARNERS)
def test_both_phases_of_a_decision_are_learned(learner: str) -> None:
    config = config_of(learner)
    algorithm = build_algorithm(config)
    try:
        before = {name: np.array(value) for name, value in module_weights(algorithm).items()}
        algorithm.train()
        after = module_weights(algorithm)
    finally:
        algorithm.stop()
    changed = [name for name in before if (before[name] != after[name]).any()]
    assert changed
    assert all(np.isfinite(value).all() for value in after.values())
    # The weight by which it sees that executors are counted.
    context = next(name for name in before if name.endswith("context.weight"))
    assert (before[context][:, CONTEXT.counting] != after[context][:, CONTEXT.counting]).any()
