"""An algorithm of one's own: REINFORCE with the whole episode's return for each decision.

Known to every command with METASCHED_IMPORTS=own_algorithm in the environment:
metasched train deeprm --set training.algorithm=whole_return
"""

import numpy as np

from rllib_configs.algorithms.reinforce import ReinforceConfig, ReinforceWork
from rllib_configs.config.options import ReinforceOptions
from rllib_configs.config.registries import ALGORITHMS, Algorithm


class WholeReturnWork(ReinforceWork):
    def advantages(self, rollouts):
        returns = np.bincount(rollouts.episode, rollouts.rewards, rollouts.num_episodes)
        mean = np.bincount(rollouts.jobset, returns) / np.bincount(rollouts.jobset)
        return (returns - mean[rollouts.jobset])[rollouts.episode]


class WholeReturnConfig(ReinforceConfig):
    def make_work(self, module):
        return WholeReturnWork(self.experiment, module)


ALGORITHMS.register("whole_return")(Algorithm(ReinforceOptions, WholeReturnConfig))
