"""REINFORCE as DeepRM uses it (section 3.3, figure 3), on RLlib's new API stack."""

from collections.abc import Sequence
from time import perf_counter
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
from ray.rllib.core import COMPONENT_LEARNER, COMPONENT_RL_MODULE, DEFAULT_MODULE_ID
from ray.rllib.core.columns import Columns
from ray.rllib.core.learner.torch.torch_learner import TorchLearner
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.policy.sample_batch import MultiAgentBatch, SampleBatch

from rllib_configs.learning.advantages import returns_to_go, subtract_decision_baseline
from rllib_configs.learning.losses import policy_gradient_loss
from rllib_configs.modules.deeprm_mlp import DeepRMModule
from rllib_configs.runners.batched import BatchedEnvRunner, SampleUnit
from rllib_configs.runners.gathering import gather
from rllib_configs.runners.rollout import Rollouts
from rllib_configs.schema import ExperimentConfig

_WEIGHTS = "advantages"
METRICS = "metasched"


class ReinforceConfig(AlgorithmConfig):
    """Config of `Reinforce`; everything of ours is in `experiment`."""

    def __init__(self, algo_class: type[Algorithm] | None = None) -> None:
        super().__init__(algo_class=algo_class or Reinforce)
        self.experiment = ExperimentConfig()
        self.env_runner_cls = BatchedEnvRunner
        self.max_requests_in_flight_per_env_runner = 8  # RLlib's 1 drops messages silently
        self.delay_between_env_runner_restarts_s = 1.0
        self.grad_clip = None

    def get_default_rl_module_spec(self) -> RLModuleSpec:
        """DeepRM's network."""
        experiment = self.experiment
        return RLModuleSpec(
            module_class=DeepRMModule,
            model_config={
                "cluster": experiment.task.cluster.model_dump(),
                "hidden": experiment.training.hidden,
                "since_column": experiment.training.since_column,
                "seed": experiment.seed,
            },
        )

    def get_default_learner_class(self) -> type[TorchLearner]:
        """See `ReinforceLearner`."""
        return ReinforceLearner


class RootMeanSquare(torch.optim.Optimizer):
    """RMSProp with its constant under the root, as in the released code of DeepRM.

    Torch adds the constant to the root instead, which makes it 3e4 times smaller: weights that
    hardly ever get a gradient would then take full steps.
    """

    def __init__(self, params: Any, lr: float, decay: float, eps: float) -> None:
        super().__init__(params, {"lr": lr, "decay": decay, "eps": eps})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """One update from the gradients of the parameters."""
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                state = self.state[parameter]
                if not state:
                    state["mean_square"] = torch.zeros_like(parameter)
                mean_square = state["mean_square"]
                mean_square.mul_(group["decay"])
                mean_square.addcmul_(parameter.grad, parameter.grad, value=1 - group["decay"])
                root = (mean_square + group["eps"]).sqrt_()
                parameter.addcdiv_(parameter.grad, root, value=-group["lr"])


class ReinforceLearner(TorchLearner):
    """One update per batch; rows are decisions, weighted by the driver."""

    def configure_optimizers_for_module(self, module_id: str, config: Any = None) -> None:
        """RMSProp with the experiment's settings."""
        training = self.config.experiment.training
        parameters = self.get_parameters(self._module[module_id])
        self.register_optimizer(
            module_id=module_id,
            optimizer=RootMeanSquare(
                parameters, training.lr, training.rmsprop_decay, training.rmsprop_eps
            ),
            params=parameters,
            lr_or_lr_schedule=training.lr,
        )

    def compute_loss_for_module(
        self, *, module_id: str, config: Any, batch: dict[str, Any], fwd_out: dict[str, Any]
    ) -> torch.Tensor:
        """Sum over the rows of this learner's share.

        As in figure 3 the gradient is a plain sum over all decisions; RMSProp takes no notice of
        its scale. RLlib averages gradients over learners, hence the factor.
        """
        loss, entropy = policy_gradient_loss(
            fwd_out[Columns.ACTION_DIST_INPUTS], batch[Columns.ACTIONS], batch[_WEIGHTS]
        )
        self.metrics.log_value((module_id, "entropy"), entropy.mean().item(), window=1)
        return loss * max(1, self.config.num_learners)

    def apply_gradients(self, gradients_dict: dict[Any, torch.Tensor]) -> None:
        """Applies what all learners agree on, and records its size."""
        squares = sum(float((gradient**2).sum()) for gradient in gradients_dict.values())
        self.metrics.log_value((DEFAULT_MODULE_ID, "gradient_norm"), squares**0.5, window=1)
        super().apply_gradients(gradients_dict)


class Reinforce(Algorithm):
    """Samples every jobset several times, and updates once, in each iteration."""

    @classmethod
    def get_default_config(cls) -> ReinforceConfig:
        """The paper's settings."""
        return ReinforceConfig()

    def restore_env_runners(self, env_runner_group: Any) -> list[int]:
        """Takes back restarted runners; they hold nothing that would have to be restored."""
        restored: list[int] = env_runner_group.probe_unhealthy_env_runners()
        return restored

    def training_step(self) -> None:
        """Sample, weigh, update."""
        started = perf_counter()
        training = self.config.experiment.training
        parts, sample_s = gather(
            self.env_runner_group,
            iteration_units(self.config.experiment, self.iteration),
            self._module_state(),
            self.iteration,
        )
        gathered = perf_counter()
        rollouts = Rollouts.join(parts)
        advantages, returns = reinforce_advantages(rollouts, training.gamma)
        batch = SampleBatch(
            {
                Columns.OBS: rollouts.codes,
                Columns.ACTIONS: rollouts.actions,
                _WEIGHTS: advantages.astype(np.float32),
            }
        )
        results = self.learner_group.update(
            batch=MultiAgentBatch({DEFAULT_MODULE_ID: batch}, env_steps=rollouts.num_rows)
        )
        if len(results) != max(1, self.config.num_learners):
            raise RuntimeError(
                f"{len(results)} of {max(1, self.config.num_learners)} learners updated; resume "
                "from the last checkpoint"
            )
        self.metrics.aggregate(results, key="learners")
        learned = perf_counter()
        self._log(
            {
                **_episode_metrics(rollouts, returns),
                "time/sample_s": gathered - started,
                "time/runner_s": sample_s,
                "time/learn_s": learned - gathered,
                "time/iteration_s": learned - started,
                "workers/healthy": self.env_runner_group.num_healthy_remote_env_runners(),
                "workers/restarts": self.env_runner_group.num_remote_worker_restarts(),
            }
        )
        self.metrics.log_value(
            (METRICS, "total/decisions"), rollouts.num_rows, reduce="lifetime_sum"
        )
        self.metrics.log_value(
            (METRICS, "total/episodes"), rollouts.num_episodes, reduce="lifetime_sum"
        )

    def _module_state(self) -> dict[str, NDArray[np.float32]]:
        path = f"{COMPONENT_LEARNER}/{COMPONENT_RL_MODULE}"
        state = self.learner_group.get_state(components=path)[COMPONENT_LEARNER]
        weights: dict[str, NDArray[np.float32]] = state[COMPONENT_RL_MODULE][DEFAULT_MODULE_ID]
        return weights

    def _log(self, values: dict[str, float]) -> None:
        for name, value in values.items():
            self.metrics.log_value((METRICS, name), float(value), window=1)


def iteration_units(experiment: ExperimentConfig, iteration: int) -> list[SampleUnit]:
    """Cuts the jobsets of an iteration into units, whatever the number of runners."""
    training = experiment.training
    first = iteration * training.jobsets if training.fresh_jobsets else 0
    size = training.jobsets_per_unit
    return [
        SampleUnit(
            index=unit,
            iteration=iteration,
            jobsets=tuple(range(first + unit * size, first + (unit + 1) * size)),
        )
        for unit in range(training.jobsets // size)
    ]


def reinforce_advantages(
    rollouts: Rollouts, gamma: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Advantage of each decision, ``(rows,)``, and undiscounted return of each episode."""
    count = rollouts.num_episodes
    to_go = returns_to_go(rollouts.rewards, rollouts.episode, count, gamma)
    advantages = subtract_decision_baseline(
        to_go, rollouts.episode, rollouts.decision, rollouts.jobset
    )
    returns = np.bincount(rollouts.episode, rollouts.rewards, count)
    return advantages, returns.astype(np.float64, copy=False)


def _episode_metrics(rollouts: Rollouts, returns: NDArray[np.float64]) -> dict[str, float]:
    best = _best_of_each(returns, rollouts.jobset)
    return {
        "train/return_mean": returns.mean(),
        "train/return_max": best.mean(),
        "train/slowdown": rollouts.slowdown_sum.sum() / max(1, rollouts.num_jobs.sum()),
        "train/unfinished_jobs": rollouts.num_unfinished.sum(),
        "train/decisions_per_episode": rollouts.num_rows / rollouts.num_episodes,
    }


def _best_of_each(
    values: NDArray[np.float64], group: Sequence[int] | NDArray[np.int32]
) -> NDArray[np.float64]:
    best = np.full(int(np.max(group)) + 1, -np.inf)
    np.maximum.at(best, np.asarray(group), values)
    return best
