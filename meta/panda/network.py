"""The policy advisor of an experiment."""

from typing import TYPE_CHECKING

from cluster_env.core.jobs import JobSet
from cluster_env.core.seeding import Split
from cluster_env.core.world import World
from meta.panda.actors import ActorShape, PlanShape
from meta.panda.advisor import TREES, PolicyAdvisor
from meta.panda.specifications import (
    SAMPLE,
    Tree,
    consumer_tree,
    num_core_types,
    panda_of,
    specification_places,
)

if TYPE_CHECKING:
    from rllib_configs.schema import ExperimentConfig

_MOST_JOBSETS = 64


def build_advisor(
    experiment: "ExperimentConfig", world: World, tree: Tree | None = None
) -> PolicyAdvisor:
    """The network of an experiment, its weights drawn from the run's seed.

    Args:
        experiment: with a policy advisor as its network.
        world: where it acts.
        tree: what the topology follows, if it is not to be loaded.

    Raises:
        InputError: if agents of the world have no specification.
    """
    cloud, training = panda_of(world), experiment.training
    items, context = cloud.feature_names
    shape = (
        PlanShape()
        if training.actor == "plans"
        else ActorShape(items, len(context), training.hidden)
    )
    places, core_types = specification_places(cloud), num_core_types(cloud)
    return PolicyAdvisor(shape, places, training, core_types, tree, experiment.seed)


def initial_advisor(experiment: "ExperimentConfig", world: World) -> PolicyAdvisor:
    """The same, with a tree of the consumers that it is trained on if it needs one."""
    if experiment.training.advisor not in TREES:
        return build_advisor(experiment, world)
    task = experiment.task.build(seed=experiment.seed)
    jobsets: list[JobSet] = []
    while sum(one.num_jobs for one in jobsets) < SAMPLE and len(jobsets) < _MOST_JOBSETS:
        jobsets += task.jobsets(Split.TRAIN, [len(jobsets)])
    clustered = experiment.training.advisor == "tree"
    tree = consumer_tree(task.world, jobsets, experiment.training.classes, clustered)
    return build_advisor(experiment, world, tree)
