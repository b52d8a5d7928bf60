"""From an algorithm to a policy and back; `rllib_configs.policy_files` has what needs no Ray."""

from pathlib import Path

from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.core import DEFAULT_MODULE_ID

from rllib_configs.algorithms.batched import module_weights
from rllib_configs.config.schema import ExperimentConfig
from rllib_configs.policy_files import (
    Decode,
    LearnedPolicy,
    policy_of,
    starting_weights,
    write_policy,
)


def learned_policy(
    algorithm: Algorithm, name: str = "learned", decode: Decode = "sample"
) -> LearnedPolicy:
    """The policy of an algorithm, with the weights that it has now."""
    config: ExperimentConfig = algorithm.config.experiment
    return policy_of(config, module_weights(algorithm), name, decode)


def save_policy(algorithm: Algorithm, config: ExperimentConfig, folder: Path) -> None:
    """Writes what `load_policy` needs: the weights as plain tensors, and the config."""
    write_policy(module_weights(algorithm), config, folder)


def start_from(algorithm: Algorithm, path: Path) -> None:
    """Gives the learner of an algorithm the weights of a trained policy.

    Args:
        algorithm: not trained yet.
        path: see `rllib_configs.policy_files.starting_weights`.

    Raises:
        InputError: if there is no policy, or it is broken or of another network.
    """
    weights = starting_weights(algorithm.config.experiment, path, module_weights(algorithm))
    algorithm.learner_group.foreach_learner(
        lambda learner: learner.module[DEFAULT_MODULE_ID].set_state(weights)
    )
