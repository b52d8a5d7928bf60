"""What an adaptation and a study of adaptations are asked for, and whether that can be done.

Needs no PyTorch, so that a command that refuses its options does so at once.
"""

import math
from dataclasses import dataclass

from cluster_env.core.errors import InputError
from cluster_env.core.seeding import Split
from cluster_env.core.task import Task
from cluster_env.core.world import World, differences
from meta.scoring import DEFAULT_JOBSETS
from meta.tasks import TaskDistribution, TaskSplit
from rllib_configs.loading import preset_names
from rllib_configs.policy_files import Decode
from rllib_configs.registries import NETWORKS
from rllib_configs.schema import ExperimentConfig

MAX_STEPS = 1000
"""Most steps of an adaptation, so that no two seeds share a jobset."""

RATES = (0.0625, 0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
"""Inner rates that are tried for a policy that has learned none."""


@dataclass(frozen=True)
class StudyPlan:
    """On what methods are compared; all methods have the same one.

    Attributes:
        num_tasks: tasks of the split, from the first, at least 1.
        task_seed: seed of the tasks, at least 0.
        num_seeds: adaptations of each task, with the seeds 0, 1, ...
        steps: after how many steps policies are evaluated, ascending.
        num_episodes: episodes of a step, over all its jobsets.
        num_jobsets: jobsets of a step.
        num_evaluation_jobsets: held-out jobsets of a task that costs are means over.
        rates: inner rates to choose from for a policy that has learned none.
        num_rate_tasks: validation tasks on which it is chosen.
        decode: how adapted policies act, see `rllib_configs.policies.LearnedPolicy`. Those of
            `meta.fine_tuning` draw, as they are trained to: the likeliest action would leave jobs
            waiting for ever.
    """

    num_tasks: int = 40
    task_seed: int = 0
    num_seeds: int = 3
    steps: tuple[int, ...] = (0, 1, 2, 3, 5, 10)
    num_episodes: int = 20
    num_jobsets: int = 4
    num_evaluation_jobsets: int = DEFAULT_JOBSETS
    rates: tuple[float, ...] = RATES
    num_rate_tasks: int = 15
    decode: Decode = "argmax"

    def __post_init__(self) -> None:
        for name in ("num_tasks", "num_seeds", "num_evaluation_jobsets", "num_rate_tasks"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} must be at least 1, but {getattr(self, name)} was given")
        if not self.steps or self.steps[0] < 0 or list(self.steps) != sorted(set(self.steps)):
            raise InputError(
                f"the steps after which policies are evaluated must be whole numbers from 0, "
                f"ascending, not {list(self.steps)}"
            )
        if not self.rates or not all(0 < rate < math.inf for rate in self.rates):
            raise InputError(f"inner rates must be above 0, but {list(self.rates)} were given")

    def split(self, distribution: TaskDistribution, split: Split) -> list[Task]:
        """The tasks that are reported (`Split.HELD_OUT`), or those that rates are chosen on.

        They are as many of each kind of objective, see `TaskSplit.balanced`.
        """
        count = self.num_tasks if split is Split.HELD_OUT else self.num_rate_tasks
        return TaskSplit(distribution, self.task_seed, split).balanced(count)


def check_numbers(num_steps: int, num_episodes: int, num_jobsets: int, seed: int) -> None:
    """Makes sure that `meta.adaptation.adapt_policy` can take these numbers.

    Raises:
        InputError: if it has none.
    """
    if not 0 <= num_steps <= MAX_STEPS:
        raise InputError(f"the steps of an adaptation must lie in 0..{MAX_STEPS}, not {num_steps}")
    if num_jobsets < 1 or num_episodes < 2 * num_jobsets or num_episodes % num_jobsets:
        raise InputError(
            f"the episodes of a step are shared out to its jobsets, at least 2 each and all alike, "
            f"but {num_episodes} episodes and {num_jobsets} jobsets were given"
        )
    if seed < 0:
        raise InputError(f"a seed must be 0 or larger, but {seed} was given")


def require_scorer(config: ExperimentConfig, what: str) -> None:
    """Makes sure that the network of a config can be adapted; ``what`` names its policy in errors.

    Raises:
        InputError: if not.
    """
    if not NETWORKS.get(config.training.network).scores_items:
        adaptable = [name for name in NETWORKS.names() if NETWORKS.get(name).scores_items]
        preset = f"{config.task.world.kind}-maml"
        how = f"; metasched train {preset} trains one" if preset in preset_names() else ""
        raise InputError(
            f"{what} has the network {config.training.network}, but only a "
            f"{' or '.join(adaptable)} can be adapted{how}"
        )


def require_features(config: ExperimentConfig, world: World, what: str) -> None:
    """Makes sure that a policy sees the same features in a world as where it was trained.

    Args:
        config: of the policy.
        world: where it is to be adapted.
        what: names the policy in errors.

    Raises:
        InputError: if it does not.
    """
    trained = config.task.build_world()
    if trained.feature_names == world.feature_names:
        return
    found = list(differences(trained, world))
    theirs = " and ".join(f"{name} {theirs}" for name, theirs, _ in found)
    ours = " and ".join(f"{name} {ours}" for name, _, ours in found)
    raise InputError(
        f"{what} cannot be adapted to a world with {ours}, because it was trained in one with "
        f"{theirs} and would see other features there; take a task that agrees, or train for it"
    )
