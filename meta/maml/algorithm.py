"""MAML on RLlib: tasks are played by runners, which answer with their outer gradients."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
from ray.rllib.core.rl_module.rl_module import RLModuleSpec

from cluster_env.core.errors import InputError
from cluster_env.core.seeding import Purpose, generator
from meta.maml.collapse import CollapseDetector, Weights
from meta.maml.learner import MAMLLearner, next_coefficient
from meta.maml.module import ENTROPY, MetaSetScorerModule, meta_model_config
from meta.maml.runner import MetaWork, OuterStep, is_warm_up, iteration_tasks
from meta.maml.stages import StageScore
from rllib_configs.algorithms.batched import BatchedConfig, UnitAlgorithm, module_weights
from rllib_configs.registries import prepare
from rllib_configs.runners.dispatch import Iteration
from rllib_configs.schema import ExperimentConfig

logger = logging.getLogger(__name__)

_DETECTOR = "guard"  # among the state of a checkpoint

Scores = tuple[StageScore, ...]  # of a task, by stage


@dataclass(frozen=True)
class UpdateStats:
    """What the updates of an iteration say.

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


class MAMLConfig(BatchedConfig):
    """Config of `MAML`; everything of ours is in `experiment`, with `MAMLOptions`."""

    def __init__(self, algo_class: type[Algorithm] | None = None) -> None:
        super().__init__(algo_class=algo_class or MAML)

    def make_work(self, module: Any) -> MetaWork:
        """See `MetaWork`."""
        return MetaWork(self.experiment, module)

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
        """Builds runners and learner.

        Raises:
            InputError: if the experiment's task is not the base of its family.
        """
        experiment = config.experiment
        if prepare(experiment) != experiment:
            raise InputError(
                "the task of a maml run is the base of its family; "
                "rllib_configs.registries.prepare puts it there"
            )
        self._detector = CollapseDetector()
        super().setup(config)

    def training_step(self) -> None:
        """Units sample, adapt and sample; then each update is one round trip, as in PPO."""
        started = perf_counter()
        experiment: ExperimentConfig = self.config.experiment
        weights = module_weights(self)
        iteration = self.begin(iteration_tasks(experiment, self.iteration), weights)
        sampled = iteration.play()
        gathered = perf_counter()
        stats = self._learn(iteration)
        scores: list[Scores] = [one for _, one in sorted(sampled.part.per_unit.items())]
        skipped = self.count_skipped()
        self._set_coefficient(weights, stats)
        collapsed = self._look_after(weights, scores, stats)
        learned = perf_counter()
        # Runners do both side by side: what they took together is divided as they did.
        spent = sampled.part.sums
        adapt_s = spent["adapt_s"] / spent["stages_s"] * (gathered - started)
        self.log_values(
            {
                **_scores(scores, self.headline),
                **skipped,
                "train/entropy": stats.entropy,
                "train/gradient_norm": stats.gradient_norm,
                "meta/inner_norm": stats.inner_norm,
                "meta/entropy_coefficient": float(weights[ENTROPY]),
                "meta/collapsed": float(collapsed),
                "time/sample_s": gathered - started,
                "time/runner_s": sampled.runner_s,
                "time/adapt_s": adapt_s,
                "time/learn_s": learned - gathered,
                "time/iteration_s": learned - started,
                "time/decisions_per_s": _decisions(scores) / (learned - started),
            }
        )
        self.log_workers()
        episodes = sum(score.num_episodes for task in scores for score in task)
        self.count({"total/decisions": _decisions(scores), "total/episodes": episodes})

    @property
    def lr(self) -> float:
        """It falls with the run, and by half with each collapse."""
        return super().lr * self._detector.scale

    def _learn(self, iteration: Iteration) -> UpdateStats:
        """Makes the updates of an iteration, each along the gradients of a few of its tasks."""
        parameters = self.parameters()
        plan = update_plan(self.config.experiment, self.iteration)
        made = []
        for indices in plan:
            part = iteration.step(OuterStep(len(indices)), parameters, indices).part
            updated = self.learn(part.gradient)
            parameters = updated.parameters
            if updated.accepted:
                count = max(1.0, part.sums["tasks"])  # that had decisions to make
                means = (part.sums[name] / count for name in ("entropy", "inner_norm"))
                made.append((*means, updated.norm))
        entropy, inner_norm, norm = np.mean(made or [(0.0, 0.0, 0.0)], axis=0).tolist()
        return UpdateStats(entropy, inner_norm, norm, len(made), len(made) == len(plan))

    def _set_coefficient(self, weights: Weights, stats: UpdateStats) -> None:
        experiment: ExperimentConfig = self.config.experiment
        if not stats.num_updates:
            return
        value = next_coefficient(
            float(weights[ENTROPY]), stats.entropy, experiment.training.entropy_target
        )
        self.on_learner(partial(MAMLLearner.set_entropy_coefficient, value=value))

    def _look_after(self, weights: Weights, scores: Sequence[Scores], stats: UpdateStats) -> bool:
        """Goes back if the run has collapsed, and says whether it has."""
        experiment: ExperimentConfig = self.config.experiment
        value = float(np.mean([task[-1].value for task in scores]))
        best = self._detector.observe(weights, value, stats.entropy, stats.finite)
        if best is not None:
            # Too little of the bonus may have been what was wrong, so it stays as it is now.
            kept = {ENTROPY: module_weights(self)[ENTROPY]}
            self.on_learner(partial(MAMLLearner.go_back, weights={**best, **kept}))
            logger.warning(
                "iteration %d: %s; the run goes on from its best weights so far with half the "
                "learning rate. If it comes again, lower training.lr or inner_rate, or raise "
                "training.tasks_per_update",
                self.iteration + 1,
                self._detector.reason,
            )
        iteration = self.iteration
        if is_warm_up(experiment, iteration) and not is_warm_up(experiment, iteration + 1):
            self._detector.reset()
        return best is not None

    def get_state(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """RLlib's state, and that of the collapse detector."""
        state: dict[str, Any] = super().get_state(*args, **kwargs)
        return state | {_DETECTOR: self._detector.get_state()}

    def set_state(self, state: dict[str, Any]) -> None:
        """Takes over what `get_state` gave."""
        super().set_state({name: value for name, value in state.items() if name != _DETECTOR})
        if _DETECTOR in state:
            self._detector.set_state(state[_DETECTOR])


def update_plan(experiment: ExperimentConfig, iteration: int) -> list[list[int]]:
    """Indices of the tasks of each update of an iteration.

    Each pass has an order of its own, which depends on seed, iteration and pass alone. Neighbors
    are mostly played by one runner, so an update takes one task from each of as many runs of
    neighbors; tasks are drawn independently, so who meets whom changes nothing else.
    """
    training = experiment.training
    plan = []
    for epoch in range(training.epochs):
        rng = generator(experiment.seed, Purpose.SHUFFLE, iteration, epoch)
        updates = -(-training.tasks // training.tasks_per_update)
        runs = np.array_split(np.arange(training.tasks), -(-training.tasks // updates))
        orders = [rng.permutation(run).tolist() for run in runs]
        plan += [[order[k] for order in orders if k < len(order)] for k in range(updates)]
    return plan


def _scores(scores: Sequence[Scores], headline: str) -> dict[str, float]:
    before = [task[0] for task in scores]
    after = [task[-1] for task in scores]
    value_before = np.mean([score.value for score in before])
    value_after = np.mean([score.value for score in after])
    episodes = sum(score.num_episodes for task in scores for score in task)
    return {
        "meta/return_before": float(value_before),
        "meta/return_after": float(value_after),
        "meta/gain": float(value_after - value_before),
        f"meta/{headline}_before": float(np.mean([score.headline for score in before])),
        f"train/{headline}": float(np.mean([score.headline for score in after])),
        "train/return_mean": float(np.mean([score.return_mean for score in after])),
        "train/return_max": float(np.mean([score.return_max for score in after])),
        "train/decisions_per_episode": _decisions(scores) / episodes,
    }


def _decisions(scores: Sequence[Scores]) -> int:
    return sum(score.num_decisions for task in scores for score in task)
