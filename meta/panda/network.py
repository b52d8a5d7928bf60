"""The policy advisor for the registry of networks."""

from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.core.seeding import Split
from cluster_env.core.world import World
from meta.panda.advisor import LEVELS, TREES, ActorShape, PolicyAdvisor
from meta.panda.plans import PlanShape
from meta.panda.sampler import AdvisedSampler
from meta.panda.specifications import SAMPLE, SPECIFICATION, Tree, columns_of, grown_tree
from rllib_configs.networks.registry import Network, Shapes, Weights

if TYPE_CHECKING:
    from ray.rllib.core.rl_module.torch import TorchRLModule

    from rllib_configs.schema import ExperimentConfig

_MOST_JOBSETS = 64
_DRAWING_NOTHING = ("evolution", "offline")  # algorithms that learn from what is likeliest


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


def _module() -> "type[TorchRLModule]":
    from meta.panda.module import AdvisorModule

    return AdvisorModule


def _model_config(experiment: "ExperimentConfig", world: World) -> dict[str, Any]:
    return {"experiment": experiment, "world": world}


def _sampler(experiment: "ExperimentConfig", weights: Weights, world: World) -> AdvisedSampler:
    draws = experiment.training.algorithm not in _DRAWING_NOTHING
    return AdvisedSampler(made(experiment, world), weights, world, draws)


def _shapes(experiment: "ExperimentConfig", world: World) -> Shapes:
    state = made(experiment, world).state_dict()
    return {f"network.{name}": tuple(value.shape) for name, value in state.items()}


def as_advised(
    source: "ExperimentConfig", given: Weights, config: "ExperimentConfig", own: Weights
) -> dict[str, NDArray[np.float32]]:
    """Weights that begin as a shared actor that is trained: the advisor adds nothing to it yet.

    Args:
        source: config of the policy to begin with.
        given: its weights.
        config: of the run.
        own: its weights.

    Raises:
        InputError: if that policy has other actors, or another advisor.
    """
    needed = {"network.shared"} if source.training.advisor == "none" else {*own, *given}
    shapes = [{name: of[name].shape for name in needed & set(of)} for of in (given, own)]
    if shapes[0] != shapes[1]:
        raise InputError(
            "agents can begin as others whose training.actor, advisor, hidden, classes and units "
            "are the same, or as some without an advisor whose actors are the same"
        )
    begun = {name: given.get(name, value) for name, value in own.items()}
    if "network.made" not in given and "network.made" in own:
        begun["network.made"] = np.zeros_like(own["network.made"])
    return begun


NETWORK = Network(
    _module,
    _model_config,
    _sampler,
    _shapes,
    transfers=("observed", "held"),
    fixed=("network.tree_statistics", "network.tree_parent", "network.tree_model"),
)
