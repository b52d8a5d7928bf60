"""MAML on RLlib: tasks go to the runners, their stages to the learners."""

from collections.abc import Sequence
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
from ray.rllib.core.rl_module.rl_module import RLModuleSpec

from cluster_env.core.errors import InputError
from cluster_env.core.seeding import Purpose, generator
from meta.maml.guard import CollapseGuard, Weights, next_coefficient
from meta.maml.learner import MAMLLearner, UpdateStats
from meta.maml.module import ENTROPY, MetaSetScorerModule, meta_model_config
from meta.maml.runner import MetaWork, is_warm_up, iteration_tasks
from meta.maml.stages import TaskSample
from rllib_configs.algorithms.batched import BatchedConfig, UnitAlgorithm, module_weights
from rllib_configs.registries import prepare
from rllib_configs.schema import ExperimentConfig

_GUARD = "guard"


class MAMLConfig(BatchedConfig):
    """Config of `MAML`; everything of ours is in `experiment`, with `MAMLOptions`."""

    def __init__(self, algo_class: type[Algorithm] | None = None) -> None:
        super().__init__(algo_class=algo_class or MAML)

    def make_work(self, module: Any) -> MetaWork:
        """See `MetaWork`."""
        return MetaWork(self.experiment)

    def get_default_rl_module_spec(self) -> RLModuleSpec:
        """The experiment's network, with what is learned beside it."""
        return RLModuleSpec(
            module_class=MetaSetScorerModule, model_config=meta_model_config(self.experiment)
        )

    def get_default_learner_class(self) -> type[MAMLLearner]:
        """See `MAMLLearner`."""
        return MAMLLearner


class MAML(UnitAlgorithm):
    """Several passes over the tasks of an iteration, in updates of a few tasks.

    One algorithm with several names; see `meta.maml.options.MAMLOptions`.
    """

    @classmethod
    def get_default_config(cls) -> MAMLConfig:
        """See `meta.maml.options.MAMLOptions`."""
        return MAMLConfig()

    def setup(self, config: AlgorithmConfig) -> None:
        """Builds runners and learners.

        Raises:
            InputError: if the experiment's task is not the base of its family.
        """
        experiment = config.experiment
        if prepare(experiment) != experiment:
            raise InputError(
                "the task of a maml run is the base of its family; "
                "rllib_configs.registries.prepare puts it there"
            )
        self._guard = CollapseGuard()
        super().setup(config)

    def training_step(self) -> None:
        """Sample, adapt, sample, update."""
        started = perf_counter()
        experiment: ExperimentConfig = self.config.experiment
        weights = module_weights(self)
        tasks = iteration_tasks(experiment, self.iteration)
        sampled = self.begin(tasks, weights).play()
        samples: list[TaskSample] = [one for _, one in sorted(sampled.part.apart.items())]
        gathered = perf_counter()
        stats = self._learn(samples)
        skipped = self.count_skipped()
        self._set_coefficient(weights, stats)
        collapsed = self._look_after(weights, samples, stats)
        learned = perf_counter()
        self.log_values(
            {
                **_scores(samples, self.headline),
                **skipped,
                "train/entropy": stats.entropy,
                "train/gradient_norm": stats.gradient_norm,
                "meta/inner_norm": stats.inner_norm,
                "meta/entropy_coefficient": float(weights[ENTROPY]),
                "meta/collapsed": float(collapsed),
                "time/sample_s": gathered - started,
                "time/runner_s": sampled.runner_s,
                "time/adapt_s": _longest_adaptation(samples),
                "time/learn_s": learned - gathered,
                "time/iteration_s": learned - started,
                "time/decisions_per_s": _decisions(samples) / (learned - started),
            }
        )
        self.log_workers()
        episodes = sum(score.num_episodes for sample in samples for score in sample.scores)
        self.count({"total/decisions": _decisions(samples), "total/episodes": episodes})

    def _learn(self, samples: Sequence[TaskSample]) -> UpdateStats:
        experiment: ExperimentConfig = self.config.experiment
        training = experiment.training
        left = max(0.0, 1.0 - self.iteration / training.iterations)
        lr = training.lr * (training.lr_end_share + (1 - training.lr_end_share) * left)
        results = self.on_learners(
            partial(
                MAMLLearner.update_tasks,
                tasks=samples,
                plan=update_plan(experiment, self.iteration),
                lr=lr * self._guard.scale,
            )
        )
        stats: UpdateStats = results[0]
        return stats

    def _set_coefficient(self, weights: Weights, stats: UpdateStats) -> None:
        experiment: ExperimentConfig = self.config.experiment
        if not stats.num_updates:
            return
        value = next_coefficient(
            float(weights[ENTROPY]), stats.entropy, experiment.training.entropy_target
        )
        self.on_learners(partial(MAMLLearner.set_entropy_coefficient, value=value))

    def _look_after(
        self, weights: Weights, samples: Sequence[TaskSample], stats: UpdateStats
    ) -> bool:
        """Goes back if the run has collapsed, and says whether it has."""
        experiment: ExperimentConfig = self.config.experiment
        value = float(np.mean([sample.scores[-1].value for sample in samples]))
        best = self._guard.observe(weights, value, stats.entropy, stats.finite)
        if best is not None:
            # Too little of the bonus may have been what was wrong, so it stays as it is now.
            kept = {ENTROPY: module_weights(self)[ENTROPY]}
            self.on_learners(partial(MAMLLearner.go_back, weights={**best, **kept}))
        iteration = self.iteration
        if is_warm_up(experiment, iteration) and not is_warm_up(experiment, iteration + 1):
            self._guard.reset()
        return best is not None

    def get_state(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """RLlib's state, and that of the collapse guard."""
        state: dict[str, Any] = super().get_state(*args, **kwargs)
        return state | {_GUARD: self._guard.get_state()}

    def set_state(self, state: dict[str, Any]) -> None:
        """Takes over what `get_state` gave."""
        super().set_state({name: value for name, value in state.items() if name != _GUARD})
        if _GUARD in state:
            self._guard.set_state(state[_GUARD])


def update_plan(experiment: ExperimentConfig, iteration: int) -> list[list[int]]:
    """Indices of the tasks of each update of an iteration.

    Each pass has an order of its own, which depends on seed, iteration and pass alone.
    """
    meta = experiment.training
    assert meta is not None
    plan = []
    for epoch in range(experiment.training.epochs):
        rng = generator(experiment.seed, Purpose.SHUFFLE, iteration, epoch)
        order = rng.permutation(meta.tasks).tolist()
        size = meta.tasks_per_update
        plan += [order[first : first + size] for first in range(0, meta.tasks, size)]
    return plan


def _scores(samples: Sequence[TaskSample], headline: str) -> dict[str, float]:
    before = [sample.scores[0] for sample in samples]
    after = [sample.scores[-1] for sample in samples]
    value_before = np.mean([score.value for score in before])
    value_after = np.mean([score.value for score in after])
    episodes = sum(score.num_episodes for sample in samples for score in sample.scores)
    return {
        "meta/return_before": float(value_before),
        "meta/return_after": float(value_after),
        "meta/gain": float(value_after - value_before),
        f"meta/{headline}_before": float(np.mean([score.headline for score in before])),
        f"train/{headline}": float(np.mean([score.headline for score in after])),
        "train/return_mean": float(np.mean([score.return_mean for score in after])),
        "train/return_max": float(np.mean([score.return_max for score in after])),
        "train/decisions_per_episode": _decisions(samples) / episodes,
    }


def _decisions(samples: Sequence[TaskSample]) -> int:
    return sum(score.num_decisions for sample in samples for score in sample.scores)


def _longest_adaptation(samples: Sequence[TaskSample]) -> float:
    """Longest time that a runner spent on inner steps, in seconds."""
    spent: dict[int, float] = {}
    for sample in samples:
        spent[sample.worker] = spent.get(sample.worker, 0.0) + sample.adapt_s
    return max(spent.values())
