"""RLlib's own multilayer perceptron under RLlib's own action mask, for RLlib's own PPO."""

import logging
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.core.rl_module.torch import TorchRLModule

from cluster_env.envs.view import View
from cluster_env.simulators.code import CodeLayout
from rllib_configs.modules.sampling import sample_actions
from rllib_configs.schema import ExperimentConfig

VIEW: dict[str, Any] = {"observation": "compact", "mask": "start_now", "mask_in_observation": True}
"""What the network sees: options of `cluster_env.envs.ClusterEnv`."""


def _import_module() -> type[TorchRLModule]:
    """Imports RLlib's example, but not the warning that it imports from where it should not."""
    logger = logging.getLogger("ray._common.deprecation")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        from ray.rllib.examples.rl_modules.classes.action_masking_rlm import (
            ActionMaskingTorchRLModule,
        )
    finally:
        logger.setLevel(before)
    return ActionMaskingTorchRLModule


MaskedMLPModule = _import_module()


def masked_mlp_config(experiment: ExperimentConfig) -> dict[str, Any]:
    """Two hidden layers for the policy, and two of their own for the critic."""
    hidden = experiment.training.hidden
    return asdict(DefaultModelConfig(fcnet_hiddens=[hidden, hidden], vf_share_layers=False))


class MaskedMLPSampler:
    """Samples actions from the network, outside of RLlib's runners.

    Args:
        experiment: what it was trained for.
        weights: by name, as the RLModule has them; those of the critic may be among them.

    Raises:
        RuntimeError: if the weights are those of another network.
    """

    def __init__(
        self, experiment: ExperimentConfig, weights: Mapping[str, NDArray[np.float32]]
    ) -> None:
        task = experiment.task
        self._view = View(CodeLayout(task.cluster.build()), task.build_rules(), **VIEW)
        self._module = RLModuleSpec(
            module_class=MaskedMLPModule,
            observation_space=self._view.observation_space,
            action_space=self._view.action_space,
            model_config=masked_mlp_config(experiment),
        ).build()
        self._module.load_state_dict(
            {name: torch.from_numpy(np.array(value)) for name, value in weights.items()}
        )

    def logits(self, codes: NDArray[np.uint8]) -> NDArray[np.float32]:
        """See `Sampler`."""
        seen = self._view.buffer(codes.shape[0])
        self._view.look(codes, seen)
        batch = {Columns.OBS: {name: torch.from_numpy(array) for name, array in seen.items()}}
        with torch.inference_mode():
            output = self._module.forward_inference(batch)
        logits: NDArray[np.float32] = output[Columns.ACTION_DIST_INPUTS].numpy()
        return logits

    def sample(
        self, codes: NDArray[np.uint8], uniforms: NDArray[np.float64]
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """See `Sampler`."""
        return sample_actions(self.logits(codes), uniforms)
