"""An algorithm of one's own: REINFORCE with the whole episode's return for each decision.

Known to every command with METASCHED_IMPORTS=own_algorithm in the environment:
metasched train deeprm --set training.algorithm=whole_return
"""

import numpy as np
from ray.rllib.core.columns import Columns

from rllib_configs.algorithms.batched import WEIGHTS
from rllib_configs.algorithms.reinforce import Reinforce, ReinforceConfig
from rllib_configs.options import ReinforceOptions
from rllib_configs.registries import ALGORITHMS, Algorithm


class WholeReturn(Reinforce):
    @classmethod
    def get_default_config(cls):
        return WholeReturnConfig()

    def batches(self, rollouts):
        returns = np.bincount(rollouts.episode, rollouts.rewards, rollouts.num_episodes)
        mean = np.bincount(rollouts.jobset, returns) / np.bincount(rollouts.jobset)
        advantages = (returns - mean[rollouts.jobset])[rollouts.episode]
        yield (
            {
                Columns.OBS: rollouts.states,
                Columns.ACTIONS: rollouts.actions,
                WEIGHTS: advantages.astype(np.float32),
            },
            None,
        )


class WholeReturnConfig(ReinforceConfig):
    def __init__(self, algo_class=None):
        super().__init__(algo_class or WholeReturn)


ALGORITHMS.register("whole_return")(Algorithm(ReinforceOptions, WholeReturnConfig))
