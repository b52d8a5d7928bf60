"""RLlib's own multilayer perceptron under RLlib's own action mask, for RLlib's own PPO."""

import logging
from dataclasses import asdict
from typing import Any

from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig
from ray.rllib.core.rl_module.torch import TorchRLModule

from rllib_configs.schema import ExperimentConfig


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
