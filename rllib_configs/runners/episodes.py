"""Episodes as RLlib's users know them: for evaluations, callbacks and whoever asks a runner."""

from collections.abc import Sequence
from itertools import count, islice
from typing import Any, cast

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray
from ray.rllib.env.single_agent_episode import SingleAgentEpisode
from ray.rllib.utils.metrics import (
    EPISODE_LEN_MEAN,
    EPISODE_RETURN_MAX,
    EPISODE_RETURN_MEAN,
    EPISODE_RETURN_MIN,
    NUM_ENV_STEPS_SAMPLED,
    NUM_EPISODES,
)

from cluster_env.core.seeding import Split, episode_keys
from cluster_env.core.world import State, World
from rllib_configs.config.registries import NETWORKS
from rllib_configs.networks.registry import Weights
from rllib_configs.networks.sampling import Draws
from rllib_configs.policy_files import Decode, LearnedPolicy, policy_of
from rllib_configs.runners.rollout import Rollouts, rollout

SIDE_BY_SIDE = 16
"""Episodes that are played side by side at most, where a number of decisions is asked for."""


class EpisodePlayer:
    """Plays validation jobsets with the weights of the moment.

    Runner k of n has jobsets k, k + n, k + 2 n and so on, counted from 0, so that no two runners
    play the same. What comes out depends on the seed, the jobset and the weights alone.

    Args:
        config: RLlib's, with an experiment.
        worker_index: of the runner, from 1; 0 for the driver's own.
        num_workers: how many runners there are beside the driver's.
    """

    def __init__(self, config: Any, worker_index: int, num_workers: int) -> None:
        self._experiment = config.experiment
        self._task = self._experiment.task.build(seed=self._experiment.seed)
        self._jobsets = count(max(0, worker_index - 1), max(1, num_workers))

    def play(
        self, weights: Weights, explore: bool, num_episodes: int | None, num_steps: int | None
    ) -> list[SingleAgentEpisode]:
        """Episodes of the next jobsets.

        Args:
            weights: of the module.
            explore: whether actions are drawn, where the network's are.
            num_episodes: how many jobsets; None: as many as the decisions need, or one.
            num_steps: how many decisions at least.
        """
        draws = explore and NETWORKS.get(self._experiment.training.network).has_gradient
        weights = {name: np.asarray(value, np.float32) for name, value in weights.items()}
        decode: Decode = "sample" if draws else "argmax"
        policy = policy_of(self._experiment, weights, "policy", decode, self._task.world)
        if num_episodes is not None or not num_steps:
            return self._play(policy, 1 if num_episodes is None else num_episodes)
        episodes: list[SingleAgentEpisode] = []
        while (played := sum(map(len, episodes))) < num_steps:
            each = played / len(episodes) if episodes else num_steps
            more = min(SIDE_BY_SIDE, int(np.ceil((num_steps - played) / each)))
            episodes += self._play(policy, more)
        return episodes

    def _play(self, policy: LearnedPolicy, num_jobsets: int) -> list[SingleAgentEpisode]:
        indices = list(islice(self._jobsets, num_jobsets))
        if not indices:
            return []
        jobsets = self._task.jobsets(Split.VALIDATION, indices)
        seed = self._experiment.seed
        keys = [episode_keys(seed, Split.VALIDATION, index, count=1) for index in indices]
        world = self._task.world
        rollouts = rollout(
            *(world, _Acting(policy), jobsets, self._task.objective, 1, np.concatenate(keys)),
            keep_final=True,
        )
        return episodes_of(rollouts, world)


class _Acting:
    """A policy where one that samples is asked for; it does not say how likely its actions are."""

    def __init__(self, policy: LearnedPolicy) -> None:
        self._policy = policy

    def sample(self, states: State, uniforms: NDArray[np.float64]) -> Draws:
        """See `SamplingPolicy`."""
        if self._policy.decode == "sample":
            return self._policy.network.sample(states, uniforms)
        return self._policy.act(states, uniforms), np.zeros(len(states), np.float32)


def episodes_of(rollouts: Rollouts, world: World) -> list[SingleAgentEpisode]:
    """RLlib's episodes of rollouts, one for each decider, in order.

    Where the rollouts keep no final states, the last observation is that of the last decision.
    """
    observation_space, action_space = spaces_of(world)
    episodes = []
    for row in range(rollouts.row_jobset.size):
        rows = np.flatnonzero(rollouts.row == row)
        if not rows.size:  # an agent that never decides
            continue
        states = rollouts.states[rows]
        last = states[-1] if rollouts.final is None else rollouts.final[row]
        episodes.append(
            SingleAgentEpisode(
                observations=[*states, last],
                observation_space=observation_space,
                actions=list(rollouts.actions[rows]),
                action_space=action_space,
                rewards=rollouts.rewards[rows].tolist(),
                extra_model_outputs={"action_logp": list(rollouts.log_probabilities[rows])},
                terminated=True,
                len_lookback_buffer=0,
            )
        )
    return episodes


def log_episodes(metrics: Any, episodes: Sequence[SingleAgentEpisode]) -> None:
    """Logs what RLlib's env runners log of episodes, under the same names."""
    if not episodes:
        return
    returns = [episode.get_return() for episode in episodes]
    steps = [len(episode) for episode in episodes]
    for name, value in (
        (EPISODE_RETURN_MEAN, np.mean(returns)),
        (EPISODE_RETURN_MIN, np.min(returns)),
        (EPISODE_RETURN_MAX, np.max(returns)),
        (EPISODE_LEN_MEAN, np.mean(steps)),
    ):
        metrics.log_value(name, float(value), window=1)
    metrics.log_value(NUM_ENV_STEPS_SAMPLED, sum(steps), reduce="sum")
    metrics.log_value(NUM_EPISODES, len(episodes), reduce="sum")


def spaces_of(world: World) -> tuple[gym.Space[Any], gym.Space[Any]]:
    """Spaces of the states and the actions of a world."""
    return cast("gym.Space[Any]", world.state_space), gym.spaces.Discrete(world.num_actions)
