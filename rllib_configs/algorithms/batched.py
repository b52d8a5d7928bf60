"""What every algorithm here shares: units done by runners, and a learner that adds nothing up."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar, cast

import numpy as np
import torch
from numpy.typing import NDArray
from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
from ray.rllib.core import COMPONENT_LEARNER, COMPONENT_RL_MODULE, DEFAULT_MODULE_ID
from ray.rllib.core.learner.torch.torch_learner import TorchLearner
from ray.rllib.utils.metrics import (
    ENV_RUNNER_RESULTS,
    EPISODE_LEN_MEAN,
    EPISODE_RETURN_MEAN,
    NUM_ENV_STEPS_SAMPLED,
    NUM_ENV_STEPS_SAMPLED_LIFETIME,
    NUM_EPISODES,
    NUM_EPISODES_LIFETIME,
)

from cluster_env.core.spec import spec_of
from rllib_configs.algorithms.config import BatchedConfig, config_class
from rllib_configs.learning.finite import FiniteUpdates, judge_skipped
from rllib_configs.learning.flat import (
    flat_parameters,
    flattened,
    joined,
    learned_parameters,
    shaped,
)
from rllib_configs.learning.optimizers import Adam
from rllib_configs.networks.registry import Weights
from rllib_configs.runners.dispatch import Iteration, Runners
from rllib_configs.runners.rollout import Rollouts
from rllib_configs.runners.units import Arrays, FunctionUnit, FunctionWork, Unit

METRICS = "metasched"
T = TypeVar("T")
Vector = NDArray[np.float32]  # (num_learned,)


@dataclass(frozen=True, eq=False)
class Updated:
    """What came of an update.

    Attributes:
        parameters: after it, float32 ``(num_learned,)``.
        norm: Euclidean norm of the gradient.
        accepted: whether it was made; not where the gradient is not finite.
    """

    parameters: Vector
    norm: float
    accepted: bool


class UnitLearner(FiniteUpdates, TorchLearner):
    """Takes steps along gradients that the runners have computed."""

    def step(self, gradient: Vector, lr: float) -> Updated:
        """An update of the optimizer, unless the gradient is not finite.

        Args:
            gradient: float32 ``(num_learned,)``, see `rllib_configs.learning.flat`.
            lr: learning rate.
        """
        self.set_options(lr)
        norm = math.sqrt(np.square(gradient, dtype=np.float64).sum())

        def by_parameter() -> dict[Any, torch.Tensor]:
            learned = learned_parameters(self.module[DEFAULT_MODULE_ID].unwrapped())
            return dict(shaped(gradient, learned))

        accepted = self.accepts(math.isfinite(norm), by_parameter)
        if accepted:  # RLlib's `apply_gradients` would look whether they are finite twice more
            for vector, piece in shaped(gradient, self._vectors):
                vector.grad = piece
            for optimizer in self._optimizer_parameters:
                optimizer.step()
        return Updated(flattened(self._vectors), norm, accepted)

    def configure_optimizers_for_module(self, module_id: str, config: Any = None) -> None:
        """An optimizer of a few vectors, in whose parts the parameters stand from then on."""
        learned = learned_parameters(self._module[module_id])
        groups = self.groups(learned)
        if [each for group in groups for each in group["params"]] != learned:
            raise RuntimeError("groups of parameters have to be in the module's order")
        self._vectors = [joined(group["params"]) for group in groups]
        each = [
            {**group, "params": [one]} for group, one in zip(groups, self._vectors, strict=True)
        ]
        self.register_optimizer(
            module_id=module_id,
            optimizer=self.make_optimizer(each),
            params=self._vectors,
            lr_or_lr_schedule=self.config.experiment.training.lr,
        )

    def groups(self, parameters: list[torch.nn.Parameter]) -> list[dict[str, Any]]:
        """Parameters that share options, in order; see `set_options`."""
        return [{"params": parameters}]

    def make_optimizer(self, groups: list[dict[str, Any]]) -> torch.optim.Optimizer:
        """The optimizer, with the experiment's settings; to be said by whoever learns so."""
        raise NotImplementedError

    def set_options(self, lr: float) -> None:
        """Sets what changes in the course of a run, or what a checkpoint may have brought back.

        Args:
            lr: learning rate, times the ``scale`` of groups that have one.
        """
        for optimizer in self._optimizer_parameters:
            for group in optimizer.param_groups:
                group["lr"] = lr * group.get("scale", 1.0)

    def compute_loss_for_module(self, **kwargs: Any) -> torch.Tensor:
        """Not used: losses are computed where the episodes were sampled."""
        raise NotImplementedError("runners compute losses and gradients")


class AdamLearner(UnitLearner):
    """Adam, as PPO's clipped objective is used to."""

    def make_optimizer(self, groups: list[dict[str, Any]]) -> Adam:
        """Adam with the experiment's learning rate."""
        return Adam(groups, self.config.experiment.training.lr, betas=(0.9, 0.99))


class WeightsHolder(UnitLearner):
    """Keeps what is learned without a gradient where RLlib's checkpoints look for it."""

    def configure_optimizers_for_module(self, module_id: str, config: Any = None) -> None:
        """There is no optimizer."""

    def hold(self, weights: Weights) -> None:
        """Takes weights of the module by name."""
        self.module[DEFAULT_MODULE_ID].set_state(dict(weights))


class UnitAlgorithm(Algorithm):
    """Has units done by runners, learns from their sums, and logs what happened in an iteration."""

    config: Any  # a `BatchedConfig`
    runners: Runners

    @classmethod
    def get_default_config(cls) -> BatchedConfig:
        """The config that names this algorithm, with its preset's experiment."""
        return config_class(cls)(cls)

    def _setup_logdir(self) -> None:
        """Makes no folder for logs, which nothing of ours writes.

        RLlib makes one below ``~/ray_results`` for each algorithm outside of Ray Tune, which stays
        there empty, and fails where the home directory cannot be written.
        """
        self._logdir = None
        if self._storage:
            super()._setup_logdir()

    def setup(self, config: AlgorithmConfig) -> None:
        """Builds what RLlib builds, with the driver's own runner alone, and starts the others.

        RLlib would wait for the others without a limit.
        """
        given: BatchedConfig = self.config
        self.config = given.copy(copy_frozen=False)
        self.config.num_env_runners = 0
        self.config.freeze()
        super().setup(config)
        self.config = given
        resources = given.experiment.resources
        # RLlib has given the first bundles of a trial's resources to runners that evaluate.
        self.env_runner_group._pg_offset = given.evaluation_num_env_runners
        self.runners = Runners(
            self.env_runner_group, resources.num_runners, resources.runner_timeout_s
        )

    def restore_env_runners(self, env_runner_group: Any) -> list[int]:
        """Takes back restarted runners; they hold nothing that would have to be restored."""
        return self.runners.restore()

    @cached_property
    def headline(self) -> str:
        """Name of the headline metric of the experiment's world."""
        return spec_of(self.config.experiment.task.world).headline

    def _before_evaluate(self) -> None:
        """Has the driver's runner evaluate on the same jobsets each time, as RLlib has others."""
        (self.eval_env_runner or self.env_runner).start_over()

    def cleanup(self) -> None:
        """Ends the runners first, because RLlib would wait for one that hangs."""
        if "runners" in vars(self):  # not where building has failed
            self.runners.stop()
        super().cleanup()

    def begin(self, units: Sequence[Unit], weights: Arrays) -> Iteration:
        """The rounds of this iteration."""
        return Iteration(self.runners, units, weights)

    def map(
        self,
        function: Callable[[Any, Any], Any],
        shared: Any,
        arguments: Sequence[Any],
        on_progress: Callable[[int], None] | None = None,
    ) -> list[Any]:
        """Has runners call a function, as for a validation; the driver, if there are none.

        Args:
            function: a pure function, of ``shared`` and an argument.
            shared: what all calls need.
            arguments: what differs.
            on_progress: called with the number of calls that are done, after each answer.

        Returns:
            What came of each, in order.
        """
        units = [FunctionUnit(index, argument) for index, argument in enumerate(arguments)]
        done = Iteration(self.runners, units, FunctionWork(function, shared)).play(on_progress)
        return [done.part.per_unit[unit.index] for unit in units]

    @property
    def left(self) -> float:
        """Share of the run that is left, from 1 to 0."""
        return max(0.0, 1.0 - self.iteration / self.config.experiment.training.iterations)

    @property
    def lr(self) -> float:
        """Learning rate of this iteration; it falls to ``lr_end_share`` where there is one."""
        training = self.config.experiment.training
        end = getattr(training, "lr_end_share", 1.0)
        return float(training.lr * (end + (1 - end) * self.left))

    def parameters(self) -> Vector:
        """What is learned, as the learner has it; see `rllib_configs.learning.flat`."""
        return self.on_learner(
            lambda learner: flat_parameters(learner.module[DEFAULT_MODULE_ID].unwrapped())
        )

    def learn(self, gradient: Vector | None) -> Updated:
        """Has the learner take a step; see `UnitLearner.step`."""
        assert gradient is not None
        return self.on_learner(lambda learner: learner.step(gradient, self.lr))

    def log_iteration(self, values: Mapping[str, float], **totals: int) -> None:
        """Logs numbers of this iteration, and how many runners there are and were replaced.

        Args:
            values: by name.
            totals: what this iteration adds to numbers of the whole run, ``total/NAME``.
        """
        workers = {
            "workers/healthy": len(self.runners.available()),
            "workers/restarts": self.runners.num_restarts,
        }
        for name, value in {**values, **workers}.items():
            self.metrics.log_value((METRICS, name), float(value), window=1)
        for name, total in totals.items():
            self.metrics.log_value((METRICS, f"total/{name}"), total, reduce="lifetime_sum")
        self._log_as_rllib(values, totals)

    def _log_as_rllib(self, values: Mapping[str, float], totals: Mapping[str, int]) -> None:
        """The same under the names that RLlib's env runners give it."""
        means = {
            EPISODE_RETURN_MEAN: values.get("train/return_mean"),
            EPISODE_LEN_MEAN: values.get("train/decisions_per_episode"),
        }
        for name, value in means.items():
            if value is not None:
                self.metrics.log_value((ENV_RUNNER_RESULTS, name), float(value), window=1)
        for name, lifetime, total in (
            (NUM_ENV_STEPS_SAMPLED, NUM_ENV_STEPS_SAMPLED_LIFETIME, "decisions"),
            (NUM_EPISODES, NUM_EPISODES_LIFETIME, "episodes"),
        ):
            sampled = totals.get(total, 0)
            self.metrics.log_value((ENV_RUNNER_RESULTS, name), sampled, reduce="sum")
            self.metrics.log_value((ENV_RUNNER_RESULTS, lifetime), sampled, reduce="lifetime_sum")

    def count_skipped(self) -> dict[str, int]:
        """How many updates of this iteration were left out, as a metric.

        Raises:
            Failure: if there is one and the run is to stop.
        """
        skipped = self.on_learner(FiniteUpdates.take_skipped)
        on_nan = self.config.experiment.training.on_nan
        return {"train/skipped_updates": judge_skipped(skipped, on_nan, self.iteration + 1)}

    def on_learner(self, function: Callable[[Any], T]) -> T:
        """What a function of the learner returns; it lives in this process."""
        (answer,) = self.learner_group.foreach_learner(function)
        return cast("T", answer.get())


def module_weights(algorithm: Algorithm) -> dict[str, NDArray[np.float32]]:
    """Weights of the learner's module by name."""
    path = f"{COMPONENT_LEARNER}/{COMPONENT_RL_MODULE}"
    state = algorithm.learner_group.get_state(components=path)[COMPONENT_LEARNER]
    weights = state[COMPONENT_RL_MODULE][DEFAULT_MODULE_ID]
    # RLlib makes a plain number of what has no dimensions.
    return {
        name: np.asarray(value, np.float32) if isinstance(value, float) else value
        for name, value in weights.items()
    }


def episode_metrics(sums: Mapping[str, float], headline: str) -> dict[str, float]:
    """Metrics of an iteration's episodes; see `episode_sums`."""
    return {
        "train/return_mean": sums["returns"] / sums["deciders"],
        "train/return_max": sums["best"] / sums["jobsets"],
        f"train/{headline}": sums["headline"] / max(1, sums["headline_count"]),
        "train/unfinished_jobs": sums["unfinished"],
        "train/decisions_per_episode": sums["decisions"] / sums["episodes"],
    }


def episode_sums(rollouts: Rollouts) -> dict[str, float]:
    """What metrics of episodes are made of, so that units can be added up."""
    returns = np.bincount(rollouts.row, rollouts.rewards, rollouts.row_jobset.size)
    best = np.full(int(rollouts.row_jobset.max()) + 1, -np.inf)
    np.maximum.at(best, rollouts.row_jobset, returns)
    outcome = rollouts.outcome
    return {
        "decisions": rollouts.num_rows,
        "episodes": rollouts.num_episodes,
        "deciders": returns.size,
        "returns": float(returns.sum()),
        "jobsets": best.size,
        "best": float(best.sum()),
        "headline": float(outcome["headline_sum"].sum()),
        "headline_count": int(outcome["headline_count"].sum()),
        "unfinished": int(outcome["num_unfinished"].sum()),
    }
