"""The policy advisor of an experiment."""

from typing import TYPE_CHECKING, Any, cast

from cluster_env.core.jobs import JobSet
from cluster_env.core.seeding import Split
from cluster_env.core.world import World
from meta.panda.advisor import LEVELS, TREES, ActorShape, PolicyAdvisor
from meta.panda.plans import PlanShape
from meta.panda.specifications import SAMPLE, SPECIFICATION, Tree, columns_of, grown_tree

if TYPE_CHECKING:
    from rllib_configs.schema import ExperimentConfig

_MOST_JOBSETS = 64


def made(experiment: "ExperimentConfig", world: World, tree: Tree | None = None) -> PolicyAdvisor:
    """The network of an experiment, its weights drawn from the run's seed.

    Args:
        experiment: with a policy advisor as its network.
        world: where it acts.
        tree: what the topology follows, if it is not to be loaded.

    Raises:
        InputError: if agents of the world have no specification.
    """
    training, acting = experiment.training, cast("Any", world)
    columns = columns_of(world, SPECIFICATION)
    of_item, of_context = world.feature_names
    if training.actor == "plans":
        shape: ActorShape | PlanShape = PlanShape(LEVELS)
    else:
        shape = ActorShape(tuple(of_item), len(of_context), training.hidden)
    return PolicyAdvisor(
        shape,
        columns,
        training.advisor,
        training.classes,
        training.units,
        int(max(acting.nodes.core_type)) + 1,
        tree,
        experiment.seed,
    )


def planted(experiment: "ExperimentConfig", world: World) -> PolicyAdvisor:
    """The same, with a tree of the consumers that it is trained on if it needs one."""
    if experiment.training.advisor not in TREES:
        return made(experiment, world)
    task = experiment.task.build(seed=experiment.seed)
    jobsets: list[JobSet] = []
    while sum(one.num_jobs for one in jobsets) < SAMPLE and len(jobsets) < _MOST_JOBSETS:
        jobsets += task.jobsets(Split.TRAIN, [len(jobsets)])
    clustered = experiment.training.advisor == "tree"
    tree = grown_tree(task.world, jobsets, experiment.training.classes, clustered)
    return made(experiment, world, tree)
