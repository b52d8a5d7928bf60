"""The gradient of a task's outer loss by all that is learned, in either order."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch

from cluster_env.core.world import World
from meta.maml.first_order import FirstOrder, StepOptions
from meta.maml.module import MetaSetScorerModule
from meta.maml.options import maml_options
from meta.maml.stages import TaskSample
from meta.maml.steps import adapted_names, outer_loss, scorer_of
from rllib_configs.networks.set_scorer.network import SetScorer
from rllib_configs.networks.set_scorer.policy_gradient import Choices, PolicyLoss
from rllib_configs.schema import ExperimentConfig

Networks = Callable[[World], SetScorer]

KEPT_BYTES = 1 << 28
"""Features that the tasks of an iteration may keep from one pass to the next, in bytes."""


@dataclass(frozen=True, eq=False)
class TaskGradient:
    """What a task says.

    Attributes:
        flat: float32 ``(num_learned,)``, of the task's loss by what `learned_tensors` lists.
        entropy: mean over the decisions of the last stage, in nats.
        inner_norm: norm of the displacement by inner steps.
    """

    flat: torch.Tensor
    entropy: float
    inner_norm: float


class TaskGradients(Protocol):
    """Gradients of the tasks of an iteration, at the weights that a module has at the time."""

    def __call__(self, index: int) -> TaskGradient | None:
        """That of a task; None if its last stage holds no decision."""


def task_gradients(
    experiment: ExperimentConfig,
    module: MetaSetScorerModule,
    networks: Networks,
    tasks: Sequence[TaskSample],
) -> TaskGradients:
    """Gradients in the order that an experiment asks for.

    Args:
        experiment: how steps are made.
        module: whose weights count.
        networks: a network for each world; its own parameters are not used.
        tasks: of an iteration.
    """
    kind = FirstOrderGradients if experiment.training.order == "first" else GraphGradients
    return kind(experiment, module, networks, tasks)


def learned_tensors(module: MetaSetScorerModule) -> list[torch.Tensor]:
    """What is learned: the network's parameters, and the inner rates unless they are fixed."""
    parameters = [*module.parameters_by_name().values(), *module.rates_by_name().values()]
    return [parameter for parameter in parameters if parameter.requires_grad]


class GraphGradients:
    """By PyTorch, through the inner steps; see `task_gradients`.

    One task's graph at a time is in memory.
    """

    def __init__(
        self,
        experiment: ExperimentConfig,
        module: MetaSetScorerModule,
        networks: Networks,
        tasks: Sequence[TaskSample],
    ) -> None:
        self._experiment, self._module = experiment, module
        self._networks, self._tasks = networks, tasks

    def __call__(self, index: int) -> TaskGradient | None:
        """See `TaskGradients`."""
        module, task, meta = self._module, self._tasks[index], self._experiment.training
        assert meta is not None
        parameters = module.parameters_by_name()
        network = self._networks(task.world)
        loss, stats = outer_loss(
            scorer_of(network, task.world),
            parameters,
            module.rates_by_name(),
            [task.stages],
            clip=self._experiment.training.clip,
            entropy_coefficient=float(module.entropy_coefficient),
            surrogate=meta.surrogate,
            create_graph=meta.order == "second",
            gradient_clip=meta.gradient_clip,
            shrink=meta.shrink,
            names=adapted_names(tuple(parameters), meta.adapt, network.head_names),
        )
        if not stats.num_tasks:
            return None
        gradients = torch.autograd.grad(
            loss, learned_tensors(module), allow_unused=True, materialize_grads=True
        )
        flat = torch.cat([gradient.reshape(-1) for gradient in gradients])
        return TaskGradient(flat, stats.entropy, stats.inner_norm)


class FirstOrderGradients:
    """Compiled, without a graph; see `task_gradients`.

    The features of the decisions stay from one pass over the tasks to the next, as far as they
    fit into `KEPT_BYTES`; those of later tasks are computed again.
    """

    def __init__(
        self,
        experiment: ExperimentConfig,
        module: MetaSetScorerModule,
        networks: Networks,
        tasks: Sequence[TaskSample],
    ) -> None:
        self._options = StepOptions.of(maml_options(experiment))
        self._experiment, self._module = experiment, module
        self._networks, self._tasks = networks, tasks
        self._steps: dict[World, FirstOrder] = {}
        self._kept: dict[int, list[Choices]] = {}
        self._room = KEPT_BYTES

    def __call__(self, index: int) -> TaskGradient | None:
        """See `TaskGradients`."""
        module, task = self._module, self._tasks[index]
        if task.stages[-1].num_rows == 0:
            return None
        steps = self._steps_in(task.world)
        parameters, rates = module.parameters_by_name(), module.rates_by_name()
        found = steps.outer_gradient(
            steps.flatten(parameters),
            steps.spread_rates(rates),
            self._choices(index, steps),
            PolicyLoss(
                clip=self._experiment.training.clip,
                entropy_coefficient=float(module.entropy_coefficient),
            ),
        )
        by_name = steps.by_name(found.parameters)
        pieces = [torch.from_numpy(by_name[name]).reshape(-1) for name in parameters]
        by_block = steps.rates_by_name(found.rates)
        learned = [by_block[name] for name, rate in rates.items() if rate.requires_grad]
        flat = torch.cat([*pieces, torch.tensor(learned)])
        return TaskGradient(flat, found.entropy, found.inner_norm)

    def _choices(self, index: int, steps: FirstOrder) -> list[Choices]:
        """Of all stages of a task."""
        if index in self._kept:
            return self._kept[index]
        *before, last = self._tasks[index].stages
        found = [steps.choices(decisions, adapted_on=True) for decisions in before]
        found.append(steps.choices(last, adapted_on=False))
        size = sum(choices.num_bytes for choices in found)
        if size <= self._room:
            self._room -= size
            self._kept[index] = found
        return found

    def _steps_in(self, world: World) -> FirstOrder:
        if world not in self._steps:
            self._steps[world] = FirstOrder(self._networks(world), world, self._options)
        return self._steps[world]
