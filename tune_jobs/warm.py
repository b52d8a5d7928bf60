"""Compiles everything that is compiled, once: ``python -m tune_jobs.warm``.

Beside what `cluster_env.warm` compiles, that is what samples and learns with DeepRM's network and
with the scorer of slots.
"""

import logging
import multiprocessing
import warnings

import numpy as np

import cluster_env.warm
from cluster_env.worlds import WORLDS


def warm() -> None:
    """Runs everything once, the network's gradient included; Ray is not started."""
    cluster_env.warm.warm()
    import torch
    from ray.rllib.core.columns import Columns

    from rllib_configs.algorithms.batched import iteration_units
    from rllib_configs.builders import algorithm_config
    from rllib_configs.learning.advantages import (
        advantages_by_clock,
        equalize,
        returns_to_go,
        subtract_decision_baseline,
    )
    from rllib_configs.loading import load_config
    from rllib_configs.runners.batched import BatchedEnvRunner, SampleRequest
    from rllib_configs.runners.rollout import Rollouts
    from rllib_configs.runners.units import spaces_of

    config = load_config("deeprm-smoke")
    runner = BatchedEnvRunner(config=algorithm_config(config), worker_index=0)
    weights = {name: np.array(value) for name, value in runner.module.get_state().items()}
    result = runner.sample(request=SampleRequest(tuple(iteration_units(config, 0)), weights, 0))
    rollouts = Rollouts.join(list(result.answers.values()))
    episode = rollouts.episode
    returns = returns_to_go(
        rollouts.rewards, episode, rollouts.num_episodes, 1.0, rollouts.time, "decision"
    )
    subtract_decision_baseline(returns, episode, rollouts.decision, rollouts.jobset)
    values = np.zeros(rollouts.num_rows)
    advantages, _ = advantages_by_clock(
        rollouts.rewards, values, episode, rollouts.time, rollouts.jobset, 1.0, 1.0
    )
    equalize(advantages, rollouts.jobset[episode], 0.0)
    for repeats in (1, 4):  # many rows are summed up by several threads
        states = torch.from_numpy(np.tile(rollouts.states, (repeats, 1)))
        logits = runner.module.forward_train({Columns.OBS: states})[Columns.ACTION_DIST_INPUTS]
        logits.sum().backward()
    scorer = load_config("deeprm-ppo")
    module = algorithm_config(scorer).get_default_rl_module_spec()
    module.observation_space, module.action_space = spaces_of(scorer.task.build_world())
    states = torch.from_numpy(rollouts.states)
    logits = module.build().forward_train({Columns.OBS: states})[Columns.ACTION_DIST_INPUTS]
    logits.clamp(min=-1.0).sum().backward()


def main() -> None:
    """Entry point of ``python -m tune_jobs.warm``.

    A second process compiles the worlds from the last to the first, and each finds in the cache
    what the other has compiled by then.
    """
    logging.getLogger("ray").setLevel(logging.ERROR)
    backwards = tuple(reversed(WORLDS.names()))
    spawn = multiprocessing.get_context("spawn")
    second = spawn.Process(target=cluster_env.warm.main, args=(backwards,))
    second.start()
    with warnings.catch_warnings(action="ignore"):
        warm()
    second.join()


if __name__ == "__main__":
    main()
