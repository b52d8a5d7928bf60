"""Whether a policy can be adapted to a task, by so many steps.

Needs no PyTorch, so that a command that refuses its options does so at once.
"""

from cluster_env.core.errors import InputError
from cluster_env.core.world import World, differences
from rllib_configs.config.loading import preset_names
from rllib_configs.config.registries import NETWORKS
from rllib_configs.config.schema import ExperimentConfig

MAX_STEPS = 1000
"""Most steps of an adaptation, so that no two seeds share a jobset."""


def check_numbers(num_steps: int, num_episodes: int, num_jobsets: int, seed: int) -> None:
    """Makes sure that `meta.adaptation.adapt_policy` can take these numbers.

    Raises:
        InputError: if it has none.
    """
    if not 0 <= num_steps <= MAX_STEPS:
        raise InputError(f"the steps of an adaptation must lie in 0..{MAX_STEPS}, not {num_steps}")
    if num_jobsets < 1 or num_episodes < 2 * num_jobsets or num_episodes % num_jobsets:
        raise InputError(
            "the episodes of a step must divide evenly among its jobsets, with at least 2 "
            f"each, but {num_episodes} episodes and {num_jobsets} jobsets were given"
        )
    if seed < 0:
        raise InputError(f"a seed must be 0 or larger, but {seed} was given")


def require_scorer(config: ExperimentConfig, what: str) -> None:
    """Makes sure that the network of a config can be adapted; ``what`` names its policy in errors.

    Raises:
        InputError: if not.
    """
    if not NETWORKS.get(config.training.network).scores_items:
        adaptable = sorted(one for one in NETWORKS.names() if NETWORKS.get(one).scores_items)
        preset = f"{config.task.world.kind}-maml"
        how = f"; metasched train {preset} trains one" if preset in preset_names() else ""
        if config.training.algorithm == "evolution":
            how += "; to go on training this one, set training.start to it in metasched train"
        raise InputError(
            f"{what} has the network {config.training.network}, but only a "
            f"{' or '.join(adaptable)} can be adapted{how}"
        )


def require_features(config: ExperimentConfig, world: World, what: str) -> None:
    """Makes sure that a policy, named so in errors, sees the same features as where it was trained.

    Raises:
        InputError: if it does not in this world.
    """
    trained = config.task.world
    if trained.feature_names == world.feature_names:
        return
    differing = list(differences(trained, world))
    theirs = " and ".join(f"{name} {theirs}" for name, theirs, _ in differing)
    ours = " and ".join(f"{name} {ours}" for name, _, ours in differing)
    raise InputError(
        f"{what} cannot be adapted to a world with {ours}, because it was trained in one "
        f"with {theirs}, where features differ; take a task that agrees, or train for this "
        "one"
    )
