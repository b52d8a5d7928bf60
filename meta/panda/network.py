"""The policy advisor for the registry of networks."""

from typing import TYPE_CHECKING, Any, cast

from cluster_env.core.jobs import JobSet
from cluster_env.core.seeding import Split
from cluster_env.core.world import World
from meta.panda.advisor import LEVELS, ActorShape, PolicyAdvisor
from meta.panda.plans import PlanShape
from meta.panda.sampler import AdvisedSampler
from meta.panda.specifications import SAMPLE, SPECIFICATION, Tree, columns_of, grown_tree
from rllib_configs.networks.registry import Network, Shapes, Weights

if TYPE_CHECKING:
    from ray.rllib.core.rl_module.torch import TorchRLModule

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
    if experiment.training.advisor != "tree":
        return made(experiment, world)
    task = experiment.task.build(seed=experiment.seed)
    jobsets: list[JobSet] = []
    while sum(one.num_jobs for one in jobsets) < SAMPLE and len(jobsets) < _MOST_JOBSETS:
        jobsets += task.jobsets(Split.TRAIN, [len(jobsets)])
    return made(experiment, world, grown_tree(task.world, jobsets, experiment.training.classes))


def _module() -> "type[TorchRLModule]":
    from meta.panda.module import AdvisorModule

    return AdvisorModule


def _model_config(experiment: "ExperimentConfig", world: World) -> dict[str, Any]:
    return {"experiment": experiment, "world": world}


def _sampler(experiment: "ExperimentConfig", weights: Weights, world: World) -> AdvisedSampler:
    searched = experiment.training.algorithm == "evolution"
    return AdvisedSampler(made(experiment, world), weights, world, draws=not searched)


def _shapes(experiment: "ExperimentConfig", world: World) -> Shapes:
    state = made(experiment, world).state_dict()
    return {f"network.{name}": tuple(value.shape) for name, value in state.items()}


NETWORK = Network(_module, _model_config, _sampler, _shapes)
