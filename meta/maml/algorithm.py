"""MAML on RLlib: tasks are played by runners, which answer with their outer gradients."""

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.core.rl_module.rl_module import RLModule, RLModuleSpec

from cluster_env.core.seeding import Purpose, generator
from meta.maml.collapse import CollapseDetector, Weights
from meta.maml.module import ENTROPY, MetaSetScorerModule, meta_model_config
from meta.maml.runner import MetaWork, OuterStep, is_warm_up, iteration_tasks
from meta.maml.stages import StageScore
from rllib_configs.algorithms.batched import (
    AdamLearner,
    UnitAlgorithm,
    module_weights,
)
from rllib_configs.algorithms.config import BatchedConfig
from rllib_configs.config.schema import ExperimentConfig
from rllib_configs.runners.dispatch import Iteration

logger = logging.getLogger(__name__)

HIGHEST_COEFFICIENT = 0.1
LOWEST_COEFFICIENT = 1e-4  # above 0, so that a factor brings it up again
_GAIN = 0.2  # of the controller; from 0.02 to the highest takes eight iterations
_DETECTOR = "guard"  # among the state of a checkpoint

Scores = tuple[StageScore, ...]  # of a task, by stage


@dataclass(frozen=True)
class UpdateStats:
    """What the updates of an iteration say.

    Attributes:
        entropy: mean entropy of adapted policies over decisions and updates, in nats.
        inner_norm: mean norm of the displacement by inner steps.
        gradient_norm: mean norm of the outer gradient.
        finite: whether all gradients were; an update without is left out.
    """

    entropy: float
    inner_norm: float
    gradient_norm: float
    num_updates: int
    finite: bool


def next_coefficient(coefficient: float, entropy: float, target: float) -> float:
    """The entropy bonus of the next iteration.

    It is multiplied where the mean entropy of this iteration's last stages, in nats, is below the
    target and divided where it is above, by more the further it is away, and stays within
    `LOWEST_COEFFICIENT` and `HIGHEST_COEFFICIENT`; 0 for a target of 0.
    """
    if target <= 0:
        return 0.0
    missing = min(1.0, max(-1.0, (target - entropy) / target))
    changed = coefficient * math.exp(_GAIN * missing)
    return min(HIGHEST_COEFFICIENT, max(LOWEST_COEFFICIENT, changed))


class MAMLLearner(AdamLearner):
    """Adam on the outer loss; inner rates have a learning rate of their own."""

    def groups(self, parameters: list[torch.nn.Parameter]) -> list[dict[str, Any]]:
        """See `UnitLearner`; rates are what has no dimensions."""
        rates = [each for each in parameters if each.ndim == 0]
        weights = [each for each in parameters if each.ndim > 0]
        groups: list[dict[str, Any]] = [{"params": weights, "scale": 1.0}]
        if rates:
            groups.append({"params": rates, "scale": self.config.experiment.training.rates_lr})
        return groups

    def set_entropy_coefficient(self, value: float) -> None:
        """Sets the bonus for entropy; it is part of the weights."""
        self._meta_module.entropy_coefficient.fill_(value)

    def go_back(self, weights: Mapping[str, NDArray[np.float32]]) -> None:
        """Takes earlier weights, and forgets what Adam has gathered since."""
        self._meta_module.set_state(dict(weights))
        for optimizer in self._optimizer_parameters:
            optimizer.state.clear()

    @property
    def _meta_module(self) -> MetaSetScorerModule:
        module: MetaSetScorerModule = self.module[DEFAULT_MODULE_ID].unwrapped()
        return module


class MAML(UnitAlgorithm):
    """Several passes over the tasks of an iteration, in updates of a few tasks.

    One algorithm with several names; see `meta.maml.options.MAMLOptions`.
    """

    def setup(self, config: AlgorithmConfig) -> None:
        """Builds runners and learner."""
        self._detector = CollapseDetector()
        super().setup(config)

    def training_step(self) -> None:
        """Units sample, adapt and sample; then each update is one round trip, as in PPO."""
        started = perf_counter()
        experiment: ExperimentConfig = self.config.experiment
        weights = module_weights(self)
        # Sample all stages of all tasks; their decisions stay with the runners.
        iteration = self.begin(iteration_tasks(experiment, self.iteration), weights)
        sampled = iteration.play()
        gathered = perf_counter()
        scores: list[Scores] = [one for _, one in sorted(sampled.part.per_unit.items())]
        # Update along their outer gradients.
        stats = self._learn(iteration)
        skipped = self.count_skipped()
        # Set the bonus for entropy of the next iteration, and go back where the run has collapsed.
        if stats.num_updates:
            target = experiment.training.entropy_target
            value = next_coefficient(float(weights[ENTROPY]), stats.entropy, target)
            self.on_learner(partial(MAMLLearner.set_entropy_coefficient, value=value))
        collapsed = self._go_back_if_collapsed(weights, scores, stats)
        learned = perf_counter()
        # Runners sample and adapt side by side: their time together is divided as they did.
        spent = sampled.part.sums
        adapt_s = spent["adapt_s"] / spent["stages_s"] * (gathered - started)
        episodes = sum(score.num_episodes for task in scores for score in task)
        self.log_iteration(
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
            },
            decisions=_decisions(scores),
            episodes=episodes,
        )

    @property
    def lr(self) -> float:
        """It falls with the run, and by half with each collapse."""
        return super().lr * self._detector.scale

    def _learn(self, iteration: Iteration) -> UpdateStats:
        """Makes the updates of an iteration, each along the gradients of a few of its tasks."""
        parameters = self.parameters()
        plan = update_plan(self.config.experiment, self.iteration)
        norms = []  # of each update: entropy, inner norm and norm of the gradient
        for indices in plan:
            part = iteration.step(OuterStep(len(indices)), parameters, indices).part
            updated = self.learn(part.gradient)
            parameters = updated.parameters
            if updated.accepted:
                count = max(1.0, part.sums["tasks"])  # that had decisions to make
                means = (part.sums[name] / count for name in ("entropy", "inner_norm"))
                norms.append((*means, updated.norm))
        entropy, inner_norm, norm = np.mean(norms or [(0.0, 0.0, 0.0)], axis=0).tolist()
        return UpdateStats(entropy, inner_norm, norm, len(norms), len(norms) == len(plan))

    def _go_back_if_collapsed(
        self, weights: Weights, scores: Sequence[Scores], stats: UpdateStats
    ) -> bool:
        """Goes back to the best weights if the run has collapsed; returns whether it has."""
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
        # After the warm-up, tasks are others and have inner steps: values start anew.
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
        # As many runs of neighbors as an update has tasks, each in an order of its own.
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


class MAMLConfig(BatchedConfig):
    """Config of `MAML`; options are those of `meta.maml.options.MAMLOptions`."""

    algorithm_class = MAML
    default_learner = MAMLLearner
    preset = "deeprm-maml"

    def make_work(self, module: RLModule) -> MetaWork:
        """See `MetaWork`."""
        return MetaWork(self.experiment, module)

    def get_default_rl_module_spec(self) -> RLModuleSpec:
        """The experiment's network, with what is learned beside it."""
        return RLModuleSpec(
            module_class=MetaSetScorerModule, model_config=meta_model_config(self.experiment)
        )
