"""Networks that are told of the objective do as they are told, as fast as those that are not."""

import numpy as np
import pytest
import torch

from cluster_env.core.errors import InputError
from cluster_env.objectives import get_objective
from meta.adaptation import adapt_policy, untrained_policy
from meta.tasks import Task
from rllib_configs.config.loading import load_config
from rllib_configs.config.schema import ExperimentConfig
from rllib_configs.networks.conditions import seen_world, with_objective
from rllib_configs.networks.set_scorer.network import SetScorer, SetScorerOptions
from rllib_configs.policy_files import policy_of
from tests.tune_jobs.untrained_runs import SMALL_TASK

TOLD = "training.conditioned_on=[slowdown, makespan]"
SMALL = (*SMALL_TASK, "training.algorithm=maml", "training.hidden=32")
HPC = (
    *("task.world={kind: hpc, processors: 16, queue: 4}", "task.workload={kind: lublin, jobs: 8}"),
    *("training.algorithm=maml", "training.hidden=32"),
)


def config_of(*overrides: str) -> ExperimentConfig:
    return load_config("deeprm-ppo", [*overrides, TOLD, "task.objective=slowdown"])


def logits_of(config: ExperimentConfig, objective: str, states: np.ndarray) -> np.ndarray:
    policy = untrained_policy(config, 1)
    found = policy_of(
        config, policy.weights, "one", "argmax", objective=get_objective(objective)
    ).network.logits(states)
    assert found.shape[0] == states.shape[0]
    return np.asarray(found)


def states_of(task: Task) -> np.ndarray:
    """What a policy that starts what it can meets, where there is more than one thing to do."""
    simulator = task.world.simulator()
    simulator.load([task.workload.sample(np.random.default_rng(3))], task.objective)
    row, reward, met = np.zeros(1, np.int32), np.zeros(1), []
    for _ in range(12):
        met.append(simulator.states[0].copy())
        allowed = task.world.features(simulator.states).allowed
        simulator.step(row, allowed.argmax(axis=1).astype(np.int32), reward)
    states = np.stack(met)
    states = states[task.world.features(states).allowed.sum(axis=1) > 1]
    assert len(states) > 2
    return states


@pytest.mark.parametrize("overrides", [SMALL, HPC])
def test_weights_of_what_is_told_move_biases_alone(overrides: tuple[str, ...]) -> None:
    config = config_of(*overrides)
    states = states_of(config.task.build())
    mixed = "1 slowdown + 3 makespan"
    world = seen_world(config.training, config.task.world, get_objective(mixed))
    policy = untrained_policy(config, 1)
    network = SetScorer(world.feature_names, SetScorerOptions.of(config.training))
    network.load_state_dict(policy.parameters)
    network.compiled = False
    with torch.no_grad():
        expected = network(world.features(states)).numpy()
    found = logits_of(config, mixed, states)
    assert np.allclose(found, expected, rtol=0, atol=1e-5)
    assert not np.allclose(found, logits_of(config, "makespan", states), rtol=0, atol=1e-5)


def test_a_policy_is_told_of_the_task_that_it_is_used_for() -> None:
    config = config_of(*SMALL)
    policy = untrained_policy(config, 1)
    states = states_of(config.task.build())
    found = []
    for objective in ("slowdown", "makespan"):
        task = config.task.model_copy(update={"objective": objective}).build()
        (parameters,) = adapt_policy(policy, task, 0).parameters
        told = policy.acting(task, parameters, "told").network.logits(states)
        assert np.array_equal(told, logits_of(config, objective, states))
        found.append(told)
    assert not np.array_equal(*found)
    acting = policy_of(config, policy.weights, "one", "argmax").acting_in(
        config.task.world, get_objective("makespan")
    )
    assert np.array_equal(acting.network.logits(states), found[1])


def test_a_policy_that_is_told_nothing_stays_what_it_is() -> None:
    plain = load_config("deeprm-ppo", SMALL_TASK)
    assert with_objective(plain, get_objective("makespan")) is plain
    world = plain.task.world
    assert seen_world(plain.training, world, get_objective("makespan")) is world


def test_only_who_learns_from_several_objectives_can_be_told() -> None:
    with pytest.raises(InputError, match=r"maml.*ppo.*learns from one.*conditioned_on"):
        load_config("deeprm-ppo", [*SMALL_TASK, TOLD])
    with pytest.raises(InputError, match=r"conditioned_on.*'slow'"):
        load_config("deeprm-maml", ["training.conditioned_on=[slow]"])
    config = config_of(*SMALL)
    with pytest.raises(InputError, match="cannot be used for the objective utilization"):
        logits_of(config, "utilization", np.zeros((1, 1)))
