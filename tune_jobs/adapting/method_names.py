"""What a trained run is in a comparison of methods, read from its config."""

from meta.maml.options import MAMLOptions
from rllib_configs.schema import ExperimentConfig

_ORDERS = {
    ("first", "ratio"): "FOMAML",
    ("first", "log_probability"): "FOMAML (log)",
    ("second", "log_probability"): "MAML",
    ("second", "ratio"): "ProMP",
}


def method_of(config: ExperimentConfig) -> str:
    """Name of the method that a run belongs to.

    ``joint`` is meta-training without inner steps, ``one task`` PPO on a single task, and
    meta-training is called after its order and surrogate, with the number of inner steps:
    ``FOMAML K=1``, and what else differs from the defaults.
    """
    meta = config.training
    if not isinstance(meta, MAMLOptions):
        return "DeepRM" if config.training.algorithm == "reinforce" else "one task"
    if meta.inner_steps == 0:
        return "joint"
    notes = [
        f"{_ORDERS[meta.order, meta.surrogate]} K={meta.inner_steps}",
        *(["head"] if meta.adapt == "head" else []),
        *([] if meta.learn_rates else ["fixed rates"]),
    ]
    return ", ".join(notes)


def trained_on(config: ExperimentConfig) -> str:
    """Family of tasks that a run was trained on, or the objective of its only task."""
    if isinstance(config.training, MAMLOptions):
        return config.training.family
    return config.task.build_objective().name
