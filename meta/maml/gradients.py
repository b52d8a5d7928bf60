"""The gradient of a task's outer loss by all that is learned, in either order."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import nn

from cluster_env.core.world import World
from meta.maml.first_order import FirstOrder
from meta.maml.module import NETWORK, RATES, MetaSetScorerModule, block
from meta.maml.options import maml_options
from meta.maml.stages import TaskSample
from meta.maml.steps import StepOptions, outer_loss, scorer_of
from rllib_configs.config.schema import ExperimentConfig
from rllib_configs.learning.flat import flat_gradient
from rllib_configs.networks.set_scorer.policy_gradient import Choices, PolicyLoss

Networks = Callable[[World], nn.Module]

KEPT_BYTES = 1 << 28
"""Features that a process may keep of an iteration's tasks from one pass to the next, in bytes."""


@dataclass(frozen=True, eq=False)
class TaskGradient:
    """What a task says.

    Attributes:
        flat: float32 ``(num_learned,)``, of the task's loss; see `rllib_configs.learning.flat`.
        entropy: mean over the decisions of the last stage, in nats.
    """

    flat: NDArray[np.float32]
    entropy: float
    inner_norm: float


TaskGradients = Callable[[TaskSample], TaskGradient | None]
"""Gradients of the tasks of an iteration, at the weights that a module has at the time.

That of a task is None if its last stage holds no decision.
"""


def task_gradients(
    experiment: ExperimentConfig, module: MetaSetScorerModule, networks: Networks
) -> TaskGradients:
    """Gradients in the order that an experiment asks for, by the weights of a module.

    There is a network for each world, whose own parameters are not used.
    """
    kind = FirstOrderGradients if experiment.training.order == "first" else GraphGradients
    return kind(experiment, module, networks)


def _policy_loss(experiment: ExperimentConfig, module: MetaSetScorerModule) -> PolicyLoss:
    """The loss of a last stage, with the bonus for entropy of the time."""
    return PolicyLoss(
        clip=experiment.training.clip, entropy_coefficient=float(module.entropy_coefficient)
    )


@dataclass(frozen=True, eq=False)
class GraphGradients:
    """By PyTorch, through the inner steps; see `task_gradients`.

    One task's graph at a time is in memory.
    """

    experiment: ExperimentConfig
    module: MetaSetScorerModule
    networks: Networks

    def __call__(self, task: TaskSample) -> TaskGradient | None:
        """See `TaskGradients`."""
        module, network = self.module, self.networks(task.world)
        if task.stages[-1].num_rows == 0:
            return None
        loss, entropy, inner_norm = outer_loss(
            scorer_of(network, task.world),
            module.parameters_by_name(),
            module.rates_by_name(),
            task.stages,
            StepOptions.of(maml_options(self.experiment), network),
            _policy_loss(self.experiment, module),
        )
        return TaskGradient(flat_gradient(loss, module), entropy, inner_norm)


class FirstOrderGradients:
    """Compiled, without a graph; see `task_gradients`.

    The features of the decisions stay from one pass over the tasks to the next, as far as they
    fit into `KEPT_BYTES`; those of later tasks are computed again.
    """

    def __init__(
        self, experiment: ExperimentConfig, module: MetaSetScorerModule, networks: Networks
    ) -> None:
        self._experiment, self._module, self._networks = experiment, module, networks
        self._kept: dict[TaskSample, list[Choices]] = {}
        self._room = KEPT_BYTES

    def __call__(self, task: TaskSample) -> TaskGradient | None:
        """See `TaskGradients`."""
        module = self._module
        if task.stages[-1].num_rows == 0:
            return None
        network = self._networks(task.world)
        options = StepOptions.of(maml_options(self._experiment), network)
        steps = FirstOrder(network, task.world, options)
        outer = steps.outer_gradient(
            steps.flatten(module.parameters_by_name()),
            steps.spread_rates(module.rates_by_name()),
            self._choices(task, steps),
            _policy_loss(self._experiment, module),
        )
        # In the order of what is learned: the network's parameters, then rates that are.
        slopes: dict[str, NDArray[np.float32]] = {
            f"{NETWORK}{name}": slope.ravel()
            for name, slope in steps.by_name(outer.parameters).items()
        }
        for name, value in steps.rates_by_name(outer.rates).items():
            slopes[f"{RATES}{block(name)}"] = np.array([value], np.float32)
        learned = [name for name, each in module.named_parameters() if each.requires_grad]
        flat = np.concatenate([slopes[name] for name in learned])
        return TaskGradient(flat, outer.entropy, outer.inner_norm)

    def _choices(self, task: TaskSample, steps: FirstOrder) -> list[Choices]:
        """Of all stages of a task."""
        if task in self._kept:
            return self._kept[task]
        *before, last = task.stages
        choices = [steps.choices(decisions, adapted_on=True) for decisions in before]
        choices.append(steps.choices(last, adapted_on=False))
        # Later passes over the iteration's tasks find them here, as long as there is room.
        size = sum(one.num_bytes for one in choices)
        if size <= self._room:
            self._room -= size
            self._kept[task] = choices
        return choices
