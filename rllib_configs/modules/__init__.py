"""Policies as RLModules."""

from ray.rllib.core.rl_module.rl_module import RLModuleSpec

from rllib_configs.modules.deeprm_mlp import DeepRMModule
from rllib_configs.schema import ExperimentConfig


def network_spec(experiment: ExperimentConfig) -> RLModuleSpec:
    """What RLlib builds an experiment's network from."""
    return RLModuleSpec(
        module_class=DeepRMModule,
        model_config={
            "cluster": experiment.task.cluster.model_dump(),
            "hidden": experiment.training.hidden,
            "since_column": experiment.training.since_column,
            "seed": experiment.seed,
        },
    )
