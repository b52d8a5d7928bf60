"""From trained weights to a `Policy` that needs neither Ray nor RLlib's checkpoints."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.core import DEFAULT_MODULE_ID

from cluster_env.core.errors import InputError
from rllib_configs.algorithms.batched import module_weights
from rllib_configs.loading import parse_config, read_yaml, write_config
from rllib_configs.modules import Weights, make_sampler
from rllib_configs.modules.sampling import Sampler
from rllib_configs.policy_files import (
    CONFIG_FILE,
    WEIGHTS_FILE,
    policy_folder,
    stored_weights,
)
from rllib_configs.schema import ExperimentConfig

Decode = Literal["sample", "argmax"]


@dataclass(frozen=True)
class LearnedPolicy:
    """A trained network as a `Policy`.

    Attributes:
        name: what tables call it.
        network: computes logits from codes.
        decode: ``sample`` draws from the network's distribution, as DeepRM is evaluated;
            ``argmax`` takes the likeliest action, which may wait for ever.
        haste: what the logit of void is lowered by, with ``argmax``: with a large one the policy
            never waits where it may start a job, and only chooses which; with a negative one it
            waits more often than it was trained to.
    """

    name: str
    network: Sampler
    decode: Decode = "sample"
    haste: float = 0.0

    def act(self, codes: NDArray[np.uint8], uniforms: NDArray[np.float64]) -> NDArray[np.int32]:
        """See `cluster_env.core.policy.Policy`."""
        if self.decode == "sample":
            return self.network.sample(codes, uniforms)[0]
        logits = self.network.logits(codes)
        if self.haste:
            logits[:, -1] -= np.float32(self.haste)
        return logits.argmax(axis=1).astype(np.int32)


def learned_policy(
    algorithm: Algorithm, name: str = "learned", decode: Decode = "sample"
) -> LearnedPolicy:
    """The policy of an algorithm, with the weights that it has now."""
    config: ExperimentConfig = algorithm.config.experiment
    return _policy(config, module_weights(algorithm), name, decode)


def save_policy(algorithm: Algorithm, config: ExperimentConfig, folder: Path) -> None:
    """Writes what `load_policy` needs: the weights as plain tensors, and the config."""
    write_policy(module_weights(algorithm), config, folder)


def write_policy(weights: Weights, config: ExperimentConfig, folder: Path) -> None:
    """Writes weights, by name as the RLModule has them, and their config; see `load_policy`."""
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {name: torch.from_numpy(value.copy()) for name, value in weights.items()}
    for file, write in (
        (WEIGHTS_FILE, lambda path: torch.save(tensors, path)),
        (CONFIG_FILE, lambda path: write_config(config, path)),
    ):
        aside = folder / f".{file}"
        write(aside)
        aside.replace(folder / file)


def load_policy(
    path: str | Path, decode: Decode = "sample", name: str | None = None
) -> tuple[LearnedPolicy, ExperimentConfig]:
    """Reads a policy back.

    Args:
        path: a run's folder, or a folder that `save_policy` wrote.
        decode: see `LearnedPolicy`.
        name: what tables call it; the name in its config if not given.

    Raises:
        InputError: if there is no policy, or it is broken. No code in the file is ever run.
    """
    folder = policy_folder(path)
    config = parse_config(read_yaml(folder / CONFIG_FILE))
    try:
        weights = stored_weights(folder)
        policy = _policy(config, weights, name or config.name, decode)
    except Exception as error:
        raise InputError(
            f"{folder / WEIGHTS_FILE} is broken or of another network: {error}"
        ) from None
    return policy, config


def read_weights(path: str | Path) -> tuple[Weights, ExperimentConfig]:
    """Reads the weights of a policy as they were written, and its config; see `load_policy`.

    Raises:
        InputError: if there is no policy, or it is broken. No code in the file is ever run.
    """
    folder = policy_folder(path)
    config = parse_config(read_yaml(folder / CONFIG_FILE))
    try:
        return stored_weights(folder), config
    except Exception as error:
        raise InputError(f"{folder / WEIGHTS_FILE} is broken: {error}") from None


def start_from(algorithm: Algorithm, path: Path) -> None:
    """Gives all learners of an algorithm the weights of a trained policy.

    Args:
        algorithm: not trained yet.
        path: see `load_policy`. Only a critic may be missing there, and what maml learns beside
            the network; they then start anew.

    Raises:
        InputError: if there is no policy, or it is broken or of another network.
    """
    folder = policy_folder(path)
    own = module_weights(algorithm)
    try:
        found = stored_weights(folder)
    except Exception as error:
        raise InputError(f"{folder / WEIGHTS_FILE} is broken: {error}") from None
    kept = {name: value for name, value in own.items() if _may_be_missing(name)}
    weights = {**kept, **{name: value for name, value in found.items() if name in own}}
    shapes = {name: value.shape for name, value in weights.items()}
    if shapes != {name: value.shape for name, value in own.items()}:
        raise InputError(
            f"the policy in {path} is of another network than this experiment's, so it cannot be "
            f"started from; train both with the same training.network, training.hidden and cluster"
        )
    algorithm.learner_group.foreach_learner(partial(_set_weights, weights=weights))


def _may_be_missing(name: str) -> bool:
    return ".critic" in name or name.startswith(("rates.", "entropy_coefficient"))


def _set_weights(learner: Any, weights: Weights) -> None:
    learner.module[DEFAULT_MODULE_ID].set_state(weights)


def _policy(config: ExperimentConfig, weights: Weights, name: str, decode: Decode) -> LearnedPolicy:
    return LearnedPolicy(name, make_sampler(config, weights), decode)
