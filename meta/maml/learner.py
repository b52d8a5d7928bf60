"""Learner of MAML: the same gradient however many of them share its tasks."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.core.learner.torch.torch_learner import TorchLearner
from torch import distributed

from cluster_env.core.world import World
from meta.maml.gradients import TaskGradients, learned_tensors, task_gradients
from meta.maml.module import MetaSetScorerModule
from meta.maml.stages import TaskSample
from meta.maml.steps import sum_of_squares
from rllib_configs.learning.finite import FiniteUpdates
from rllib_configs.learning.optimizers import Adam
from rllib_configs.networks.set_scorer.network import (
    FeatureNames,
    SetScorer,
    SetScorerOptions,
)


@dataclass(frozen=True)
class UpdateStats:
    """What the updates of an iteration say, the same on all learners.

    Attributes:
        entropy: mean entropy of adapted policies over decisions and updates, in nats.
        inner_norm: mean norm of the displacement by inner steps.
        gradient_norm: mean norm of the outer gradient.
        num_updates: updates that were made.
        finite: whether all gradients were; an update without is left out.
    """

    entropy: float
    inner_norm: float
    gradient_norm: float
    num_updates: int
    finite: bool


class MAMLLearner(FiniteUpdates, TorchLearner):
    """Adam on the outer loss; the learning rate falls with the run.

    RLlib cuts batches by rows, but what is to be shared here are tasks, each with several stages of
    its own length. So RLlib's `update` is not used: every learner gets all tasks, takes its own of
    each update, and gradients are summed over the learners.
    """

    def build(self) -> None:
        """Starts without networks of other worlds."""
        super().build()
        self._networks: dict[FeatureNames, SetScorer] = {}

    def configure_optimizers_for_module(self, module_id: str, config: Any = None) -> None:
        """Adam with the experiment's learning rate; inner rates have one of their own."""
        experiment = self.config.experiment
        found = [p for p in self.get_parameters(self._module[module_id]) if p.requires_grad]
        rates = [p for p in found if p.ndim == 0]
        parameters = [p for p in found if p.ndim > 0]
        groups = [{"params": parameters, "scale": 1.0}]
        if rates:
            groups.append({"params": rates, "scale": experiment.training.rates_lr})
        lr = experiment.training.lr
        self.register_optimizer(
            module_id=module_id,
            optimizer=Adam(groups, lr, betas=(0.9, 0.99), fused=True),
            params=[*parameters, *rates],
            lr_or_lr_schedule=lr,
        )

    def compute_loss_for_module(self, **kwargs: Any) -> torch.Tensor:
        """Not used; see `update_tasks`."""
        raise NotImplementedError("MAML learns from tasks, not from batches")

    def update_tasks(
        self, tasks: Sequence[TaskSample], plan: Sequence[Sequence[int]], lr: float
    ) -> UpdateStats:
        """Makes the updates of an iteration.

        Args:
            tasks: of the iteration; all learners get the same.
            plan: indices of the tasks of each update, in order.
            lr: learning rate.
        """
        for optimizer in self._optimizer_parameters:
            for group in optimizer.param_groups:
                group["lr"] = lr * group["scale"]
        gradients = task_gradients(self.config.experiment, self._meta_module, self._network, tasks)
        rows = [self._update_once(gradients, indices) for indices in plan]
        made = [row for row in rows if row is not None]
        entropy, inner_norm, norm = torch.tensor(made or [(0.0, 0.0, 0.0)]).mean(0).tolist()
        return UpdateStats(entropy, inner_norm, norm, len(made), len(made) == len(rows))

    def set_entropy_coefficient(self, value: float) -> None:
        """Sets the bonus for entropy; it is part of the weights."""
        self._meta_module.entropy_coefficient.fill_(value)

    def go_back(self, weights: dict[str, Any]) -> None:
        """Takes earlier weights, and forgets what Adam has gathered since."""
        self._meta_module.set_state(weights)
        for optimizer in self._optimizer_parameters:
            optimizer.state.clear()

    @property
    def _meta_module(self) -> MetaSetScorerModule:
        found: MetaSetScorerModule = self.module[DEFAULT_MODULE_ID].unwrapped()
        return found

    def _update_once(
        self, gradients: TaskGradients, indices: Sequence[int]
    ) -> tuple[float, float, float] | None:
        """Entropy, norm of the inner displacement and of the gradient; None if it is not finite."""
        num_learners = max(1, self.config.num_learners)
        rank = distributed.get_rank() if num_learners > 1 else 0
        flat = self._flat_gradient(gradients, indices[rank::num_learners], len(indices))
        if num_learners > 1:
            distributed.all_reduce(flat)
        entropy, inner_norm, count = flat[-3:].tolist()
        gradient = flat[:-3]
        learned = learned_tensors(self._meta_module)
        pieces = gradient.split([parameter.numel() for parameter in learned])
        if not self.accepts(dict(zip(map(self.get_param_ref, learned), pieces, strict=True))):
            return None
        self._descend(gradient)
        norm = float(torch.sqrt(sum_of_squares([gradient])))
        return entropy / max(1.0, count), inner_norm / max(1.0, count), norm

    def _descend(self, gradient: torch.Tensor) -> None:
        """Makes the optimizer's step along a gradient that is known to be finite."""
        learned = learned_tensors(self._meta_module)
        sizes = [parameter.numel() for parameter in learned]
        for parameter, piece in zip(learned, gradient.split(sizes), strict=True):
            parameter.grad = piece.view_as(parameter)
        for optimizer in self._optimizer_parameters:
            optimizer.step()

    def _flat_gradient(
        self, gradients: TaskGradients, indices: Sequence[int], count: int
    ) -> torch.Tensor:
        """This learner's part of the gradient of the mean over `count` tasks.

        Three numbers follow: sums over tasks of entropy and inner norm, and how many tasks these
        are over. It adds up in the same order for zero and one learner.
        """
        size = sum(parameter.numel() for parameter in learned_tensors(self._meta_module))
        total = torch.zeros(size + 3)
        for index in indices:
            found = gradients(index)
            if found is not None:
                total[:-3] += found.flat / count
                total[-3:] += torch.tensor([found.entropy, found.inner_norm, 1.0])
        return total

    def _network(self, world: World) -> SetScorer:
        """A network for the features of a world; its own parameters are not used."""
        names = world.feature_names
        if names not in self._networks:
            experiment = self.config.experiment
            options = SetScorerOptions.of(experiment.training).without_critic
            network = SetScorer(names, options)
            network.compiled = experiment.training.order == "first"  # else PyTorch's, twice derived
            self._networks[names] = network
        return self._networks[names]
