"""Expert iteration (Anthony, Tian and Barber 2017): rollouts teach the policy that plays them."""

from functools import partial
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.rl_module import RLModule

from cluster_env.core.seeding import Split
from cluster_env.evaluation import evaluate, nonnegative_cost
from cluster_env.evaluation.metrics import episode_means
from rllib_configs.algorithms.batched import (
    UnitAlgorithm,
    WeightsHolder,
    module_weights,
)
from rllib_configs.algorithms.config import BatchedConfig
from rllib_configs.learning.distillation import Fitted, Targets, fit, targets_of
from rllib_configs.learning.flat import flat_parameters, load_flat
from rllib_configs.networks.registry import Weights
from rllib_configs.runners.labels import Labels, LabelWork, present_policy
from rllib_configs.runners.sampling import iteration_units
from rllib_configs.schema import ExperimentConfig

_STATE = "expert_iteration"

STEPS = (0.0, 0.25, 0.5, 1.0)
"""Weights that are tried: so far from the present ones to the fitted ones."""

MOVE_ERRORS = 2.0
"""Standard errors by which weights have to be better on validation jobsets than the present ones.
The best of several that are as good would be the luckiest, and weights would drift."""


class FittingLearner(WeightsHolder):
    """Fits the module to targets; there is no optimizer that lasts."""

    def fit(self, states: NDArray[Any], targets: Targets) -> Fitted:
        """See `rllib_configs.learning.distillation.fit`; the module stays as it is."""
        training = self.config.experiment.training
        module = self.module[DEFAULT_MODULE_ID].unwrapped()
        shown = {Columns.OBS: torch.from_numpy(states)}
        return fit(
            module,
            lambda: module.forward_train(shown)[Columns.ACTION_DIST_INPUTS],
            targets,
            steps=training.fit_steps,
            lr=training.lr,
            temperature=training.temperature,
            stay=training.stay,
        )

    def named(self, flat: NDArray[np.float32]) -> dict[str, NDArray[np.float32]]:
        """Weights by name whose learned ones are a vector's; the module stays as it is."""
        module = self.module[DEFAULT_MODULE_ID].unwrapped()
        before = flat_parameters(module)
        load_flat(module, flat)
        weights = {name: np.array(value) for name, value in module.get_state().items()}
        load_flat(module, before)
        return weights


def _named(learner: FittingLearner, flat: NDArray[np.float32]) -> dict[str, NDArray[np.float32]]:
    return learner.named(flat)


class Trial(NamedTuple):
    """Weights on validation jobsets: a call of `mean_costs`."""

    experiment: ExperimentConfig
    first: int  # index of the first jobset
    num_jobsets: int


def mean_costs(trial: Trial, weights: Weights) -> NDArray[np.float64]:
    """Mean cost of the objective on each validation jobset, NaN where no job counts."""
    task = trial.experiment.task.build(seed=trial.experiment.seed)
    drawn = task.jobsets(Split.VALIDATION, range(trial.first, trial.first + trial.num_jobsets))
    jobsets = [one.counting(trial.experiment.training.validation_warmup) for one in drawn]
    schedule = evaluate(present_policy(trial.experiment, weights), jobsets, task.world)
    return episode_means(nonnegative_cost(task.objective), schedule)


def better_by_errors(costs: NDArray[np.float64]) -> tuple[int, NDArray[np.float64]]:
    """The place of the best weights, and the mean cost of each.

    Args:
        costs: float64 ``(tried, jobsets)``, of the present weights first; see `mean_costs`. The
            others have to be better by `MOVE_ERRORS`, paired by jobset.
    """
    costs = costs[:, ~np.isnan(costs).any(axis=0)]
    gains = costs[0] - costs
    errors = gains.std(axis=1, ddof=1) / np.sqrt(costs.shape[1])
    proven = np.where(gains.mean(axis=1) > MOVE_ERRORS * errors, gains.mean(axis=1), 0.0)
    return int(proven.argmax()), costs.mean(axis=1)


class ExpertIteration(UnitAlgorithm):
    """Rollouts label decisions, the policy is fitted to the labels, and the better one goes on."""

    def setup(self, config: Any) -> None:
        """Builds what RLlib builds; nothing has been labeled yet."""
        super().setup(config)
        self._kept: list[Labels] = []

    def training_step(self) -> None:
        """Units label decisions; the learner is fitted, and moves as far as validation allows."""
        started = perf_counter()
        experiment = self.config.experiment
        training, weights = experiment.training, module_weights(self)
        units = iteration_units(experiment, self.iteration)
        played = self.begin(units, weights).play()
        labeled = perf_counter()
        new = Labels.joined([played.part.per_unit[unit.index] for unit in units])
        self._kept = [*self._kept, new][-training.memory :]
        fitted = self._fit(weights)
        moved = self._move(weights, fitted)
        ended = perf_counter()
        sums = played.part.sums
        proven = np.where(new.gains > training.errors * new.errors, new.gains, 0.0).max(
            axis=1, initial=0.0
        )
        self.log_iteration(
            {
                "train/return_mean": sums["returns"] / sums["episodes"],
                f"train/{self.headline}": sums["headline"] / max(sums["headline_count"], 1),
                "train/unfinished_jobs": sums["unfinished"],
                "train/decisions_per_episode": sums["decisions"] / sums["episodes"],
                "train/labels": len(proven),
                "train/changed_share": float((proven > 0).mean()) if proven.size else 0.0,
                "train/mean_gain": float(proven.mean()) if proven.size else 0.0,
                "train/loss_before": fitted.loss_before,
                "train/loss": fitted.loss,
                **moved,
                "time/sample_s": labeled - started,
                "time/runner_s": played.runner_s,
                "time/learn_s": ended - labeled,
                "time/iteration_s": ended - started,
            },
            decisions=int(sums["decisions"]),
            episodes=int(sums["episodes"]),
        )

    def get_state(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """RLlib's state, and the labels that are kept."""
        state: dict[str, Any] = super().get_state(*args, **kwargs)
        state[_STATE] = [labels._asdict() for labels in self._kept]
        return state

    def set_state(self, state: dict[str, Any]) -> None:
        """Takes over what `get_state` gave."""
        super().set_state({name: value for name, value in state.items() if name != _STATE})
        self._kept = [Labels(**labels) for labels in state.get(_STATE, [])]

    def _fit(self, weights: Weights) -> Fitted:
        """Fits the module to all labels that are kept."""
        experiment = self.config.experiment
        training, labels = experiment.training, Labels.joined(self._kept)
        targets = targets_of(
            *(labels.actions, labels.gains, labels.errors, experiment.task.world.num_actions),
            *(training.errors, training.smoothing),
        )
        counts = targets.weight > 0  # the others have no say in the fit
        if not counts.any():
            return Fitted(self.parameters(), 0.0, 0.0, True)
        some = Targets(targets.probability[counts], targets.weight[counts])
        states = labels.states[counts]
        return self.on_learner(lambda learner: learner.fit(states, some))

    def _move(self, weights: Weights, fitted: Fitted) -> dict[str, float]:
        """Takes the best weights between the present and the fitted ones, on new jobsets."""
        experiment = self.config.experiment
        count = experiment.training.validation_jobsets
        first, present = self.iteration * count, self.parameters()
        tried = []
        for step in STEPS if fitted.is_finite else (0.0,):
            between = present + np.float32(step) * (fitted.parameters - present)
            tried.append(self.on_learner(partial(_named, flat=between)))
        best, costs = better_by_errors(
            np.array(self.map(mean_costs, Trial(experiment, first, count), tried))
        )
        self.on_learner(lambda learner: learner.hold(tried[best]))
        return {
            "train/step": STEPS[best],
            "train/cost_before": costs[0],
            "train/validation_cost": costs[best],
        }


class ExpertIterationConfig(BatchedConfig):
    """Config of `ExpertIteration`."""

    algorithm_class = ExpertIteration
    default_learner = FittingLearner
    preset = "deeprm-expert"

    def make_work(self, module: RLModule) -> LabelWork:
        """See `LabelWork`."""
        return LabelWork(self.experiment)
