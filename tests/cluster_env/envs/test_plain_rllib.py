"""RLlib's own PPO trains in the environments as they are, with its own masks and without."""

from typing import Any

import numpy as np
import pytest

from cluster_env.objectives import get_objective
from cluster_env.task import Task
from cluster_env.worlds.panda import Panda
from cluster_env.worlds.panda.workloads import ClusteredWorkload, Supply
from rllib_configs.worlds.panda.multi_agent import PandaMultiAgentEnv

NAMES = ("DeepRM-v0", "HPC-v0", "Accrual-v0", "panda")
SCALES = {"DeepRM-v0": 0.03, "HPC-v0": 0.001, "Accrual-v0": 0.0005, "panda": 0.01}
"""As cluster_env/README.md has them."""


def panda() -> Task:
    world = Panda(observed=4, held=4, patience=4, max_time=100)
    workload = ClusteredWorkload(world.nodes, load=0.4, window=20, supply=Supply(stays=60, away=5))
    return Task(world, workload, get_objective("completion_time"), seed=0)


def config_of(name: str, masked: bool) -> Any:
    """PPO as it comes with RLlib, small."""
    from ray.rllib.algorithms.ppo import PPOConfig
    from ray.rllib.core.rl_module.rl_module import RLModuleSpec
    from ray.rllib.examples.rl_modules.classes import action_masking_rlm

    config = PPOConfig().debugging(seed=0)
    options = {"mask_in_observation": masked, "reward_scale": SCALES[name]}
    config.env_runners(num_env_runners=0)
    config.training(train_batch_size_per_learner=200, minibatch_size=100, num_epochs=2)
    if name == "panda":
        config.environment(PandaMultiAgentEnv, env_config={"task": panda(), **options})
        config.multi_agent(
            policies={"shared"}, policy_mapping_fn=lambda agent, episode, **kwargs: "shared"
        )
    else:
        config.environment(f"metasched:{name}", env_config={"observation": "flat", **options})
        config.env_runners(num_envs_per_env_runner=4, gym_env_vectorize_mode="vector_entry_point")
    if masked:
        module = action_masking_rlm.ActionMaskingTorchRLModule
        config.rl_module(rl_module_spec=RLModuleSpec(module_class=module))
    return config


@pytest.mark.integration
@pytest.mark.parametrize(
    ("name", "masked"),
    [*((name, True) for name in NAMES), ("DeepRM-v0", False), ("panda", False)],
)
def test_rllibs_ppo_trains(name: str, masked: bool, local_ray: None) -> None:
    algorithm = config_of(name, masked).build_algo()
    try:
        result = algorithm.train()
        module = "shared" if name == "panda" else "default_policy"
        loss = result["learners"][module]["vf_loss_unclipped"]
        episodes = algorithm.env_runner.sample(num_timesteps=50, random_actions=False)
    finally:
        algorithm.stop()
    assert 0 < loss < 10  # where RLlib clips it by default; without scales it is above 1,000
    if name == "panda":
        episodes = [one for all_of in episodes for one in all_of.agent_episodes.values()]
    taken = 0
    for episode in episodes if masked else ():
        actions = np.asarray(episode.get_actions())
        masks = np.asarray(episode.to_numpy().get_observations()["action_mask"])[: len(actions)]
        if name == "panda":  # two logits for each bit
            masks = masks.reshape(*actions.shape, 2)
        assert np.take_along_axis(masks, actions[..., None], -1).all()
        taken += len(actions)
    assert taken >= 50 * masked
