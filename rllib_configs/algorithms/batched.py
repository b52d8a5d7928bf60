"""What every algorithm here shares: units sampled by batched runners, then updates."""

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from functools import cached_property
from time import perf_counter
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from ray.exceptions import RayActorError
from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
from ray.rllib.core import COMPONENT_LEARNER, COMPONENT_RL_MODULE, DEFAULT_MODULE_ID
from ray.rllib.core.learner.torch.torch_learner import TorchLearner
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.policy.sample_batch import MultiAgentBatch, SampleBatch

from cluster_env.core.errors import Failure, InputError
from cluster_env.core.world import kind_of
from rllib_configs.learning.finite import FiniteUpdates, judge_skipped
from rllib_configs.networks import network_spec
from rllib_configs.runners.batched import BatchedEnvRunner, SampleUnit
from rllib_configs.runners.gathering import Gathered, Patience, gather
from rllib_configs.runners.rollout import Rollouts
from rllib_configs.schema import ExperimentConfig

METRICS = "metasched"
WEIGHTS = "advantages"
Columns = dict[str, NDArray[Any]]


class BatchedConfig(AlgorithmConfig):
    """Config of a `BatchedAlgorithm`; everything of ours is in `experiment`."""

    def __init__(self, algo_class: type[Algorithm]) -> None:
        super().__init__(algo_class=algo_class)
        self.experiment = ExperimentConfig()
        self.env_runner_cls = BatchedEnvRunner
        self.max_requests_in_flight_per_env_runner = 8  # RLlib's 1 drops messages silently
        self.delay_between_env_runner_restarts_s = 1.0
        self.grad_clip = None

    def get_default_rl_module_spec(self) -> RLModuleSpec:
        """The experiment's network."""
        return network_spec(self.experiment)


class GradientLearner(FiniteUpdates, TorchLearner):
    """A learner that records the size of the gradient that all learners agree on."""

    def apply_gradients(self, gradients_dict: dict[Any, torch.Tensor]) -> None:
        """Records, then applies what is finite."""
        squares = sum(float((gradient**2).sum()) for gradient in gradients_dict.values())
        self.metrics.log_value((DEFAULT_MODULE_ID, "gradient_norm"), squares**0.5, window=1)
        if self.accepts(gradients_dict):
            super().apply_gradients(gradients_dict)


class UnitAlgorithm(Algorithm):
    """Has units done by runners that hold nothing, and logs what happened in an iteration."""

    def restore_env_runners(self, env_runner_group: Any) -> list[int]:
        """Takes back restarted runners; they hold nothing that would have to be restored."""
        restored: list[int] = env_runner_group.probe_unhealthy_env_runners()
        return restored

    @cached_property
    def headline(self) -> str:
        """Name of the headline metric of the experiment's world."""
        return kind_of(self.config.experiment.task.build_world()).headline

    @cached_property
    def _patience(self) -> Patience:
        return Patience(self.config.experiment.resources.runner_timeout_s)

    def gather(self, units: Sequence[Any], weights: Any) -> Gathered:
        """Has units of this iteration done; see `rllib_configs.runners.gathering.gather`."""
        return gather(self.env_runner_group, units, weights, self.iteration, self._patience)

    def log_workers(self) -> None:
        """Logs how many runners there are, and how often one was replaced."""
        group = self.env_runner_group
        self.log_values(
            {
                "workers/healthy": group.num_healthy_remote_env_runners(),
                "workers/restarts": group.num_remote_worker_restarts(),
            }
        )

    def log_values(self, values: dict[str, float]) -> None:
        """Logs numbers of this iteration."""
        for name, value in values.items():
            self.metrics.log_value((METRICS, name), float(value), window=1)

    def count(self, values: dict[str, int]) -> None:
        """Adds to numbers of the whole run."""
        for name, value in values.items():
            self.metrics.log_value((METRICS, name), value, reduce="lifetime_sum")

    def train(self) -> dict[str, Any]:
        """An iteration.

        Raises:
            Failure: if a learner has died in it, or a gradient is not finite and the run is to
                stop.
        """
        try:
            return super().train()
        except (Failure, InputError):
            raise
        except Exception as error:
            # A runner that dies is replaced, so an actor that is gone is a learner. The others then
            # fail as well, with whatever they have heard of it.
            if isinstance(error, RayActorError) or self._lacks_learners():
                raise Failure(_learner_lost(self.config.num_learners)) from error
            raise

    def _lacks_learners(self) -> bool:
        manager = getattr(self.learner_group, "_worker_manager", None)
        return manager is not None and manager.num_healthy_actors() < self.config.num_learners

    def count_skipped(self) -> dict[str, int]:
        """How many updates of this iteration were left out, as a metric.

        Raises:
            Failure: if there is one and the run is to stop.
        """
        skipped = self.on_learners(FiniteUpdates.take_skipped)[0]
        on_nan = self.config.experiment.training.on_nan
        return {"train/skipped_updates": judge_skipped(skipped, on_nan, self.iteration + 1)}

    def on_learners(self, function: Any) -> list[Any]:
        """Calls a function of the learner on all of them.

        Raises:
            Failure: if one did not answer.
            RuntimeError: if the function is at fault.
        """
        answers = [answer.get() for answer in self.learner_group.foreach_learner(function)]
        for answer in answers:
            if isinstance(answer, RayActorError):
                raise Failure(_learner_lost(self.config.num_learners)) from answer
            if isinstance(answer, Exception):
                raise RuntimeError(f"a learner failed: {answer}") from answer
        self.require_all_learners(len(answers))
        return answers

    def require_all_learners(self, num_results: int) -> None:
        """Makes sure that every learner has updated; RLlib goes on without those that failed.

        Raises:
            Failure: if one did not.
        """
        if num_results != max(1, self.config.num_learners):
            raise Failure(_learner_lost(self.config.num_learners))


class BatchedAlgorithm(UnitAlgorithm):
    """Samples every jobset several times, then updates, in each iteration."""

    @abstractmethod
    def batches(self, rollouts: Rollouts) -> Iterable[tuple[Columns, int | None]]:
        """What the learners update from.

        Args:
            rollouts: all episodes of the iteration.

        Yields:
            Columns of equally many rows, and the number of rows of an update; None for all.
        """

    def training_step(self) -> None:
        """Sample, weigh, update."""
        started = perf_counter()
        units = iteration_units(self.config.experiment, self.iteration)
        sampled = self.gather(units, module_weights(self))
        gathered = perf_counter()
        rollouts = Rollouts.join(sampled.answers)
        for columns, minibatch_size in self.batches(rollouts):
            self._update(columns, minibatch_size)
        learned = perf_counter()
        self.log_values(
            {
                **_episode_metrics(rollouts, self.headline),
                **self.count_skipped(),
                "time/sample_s": gathered - started,
                "time/runner_s": sampled.runner_s,
                "time/learn_s": learned - gathered,
                "time/iteration_s": learned - started,
            }
        )
        self.log_workers()
        self.count({"total/decisions": rollouts.num_rows, "total/episodes": rollouts.num_episodes})

    def _update(self, columns: Columns, minibatch_size: int | None) -> None:
        rows = len(next(iter(columns.values())))
        results = self.learner_group.update(
            batch=MultiAgentBatch({DEFAULT_MODULE_ID: SampleBatch(columns)}, env_steps=rows),
            minibatch_size=minibatch_size,
        )
        self.require_all_learners(len(results))
        self.metrics.aggregate(results, key="learners")


def _learner_lost(num_learners: int) -> str:
    return (
        f"a learner process has died (there should be {num_learners}), and what it knew is in the "
        "last checkpoint alone; its machine may be out of memory"
    )


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


def _episode_metrics(rollouts: Rollouts, headline: str) -> dict[str, float]:
    returns = np.bincount(rollouts.row, rollouts.rewards, rollouts.row_jobset.size)
    outcome = rollouts.outcome
    return {
        "train/return_mean": returns.mean(),
        "train/return_max": _best_of_each(returns, rollouts.row_jobset).mean(),
        f"train/{headline}": rollouts.headline,
        "train/unfinished_jobs": outcome["num_unfinished"].sum(),
        "train/decisions_per_episode": rollouts.num_rows / rollouts.num_episodes,
    }


def _best_of_each(
    values: NDArray[Any], group: Sequence[int] | NDArray[np.int32]
) -> NDArray[np.float64]:
    best = np.full(int(np.max(group)) + 1, -np.inf)
    np.maximum.at(best, np.asarray(group), values)
    return best
