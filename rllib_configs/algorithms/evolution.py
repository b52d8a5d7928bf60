"""Evolution strategies on units: candidates play the same jobsets, and no learner is needed."""

from collections.abc import Sequence
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from ray.rllib.core.rl_module.rl_module import RLModule

from cluster_env.core.seeding import Split
from rllib_configs.algorithms.batched import (
    UnitAlgorithm,
    WeightsHolder,
    module_weights,
)
from rllib_configs.algorithms.config import BatchedConfig
from rllib_configs.learning.evolution import CandidateSearch, Vector
from rllib_configs.networks.registry import network_of
from rllib_configs.runners.candidates import (
    CANDIDATES,
    CandidateUnit,
    CandidateWork,
    judged_by_all,
    units_of,
)
from rllib_configs.runners.searching import AdaptedWork, work_of
from rllib_configs.search_problem import joined, judge_of, searched_shapes, split_up

_STATE = "evolution"


class Evolution(UnitAlgorithm):
    """CMA-ES; the policy is the mean that was best on validation jobsets so far."""

    def setup(self, config: Any) -> None:
        """Builds what RLlib builds; the search begins with the weights of the first iteration."""
        super().setup(config)
        self._search: CandidateSearch | None = None
        self._best = np.inf
        self._judge = judge_of(self.config.experiment)

    def training_step(self) -> None:
        """Draws candidates, has them played, and moves the mean to the best of them."""
        started = perf_counter()
        training = self.config.experiment.training
        search = self._searching()
        units, given = self.work()
        played = self.begin(units, given).play()
        judged = judged_by_all(units, played.part)
        answered = perf_counter()
        costs = self._judge.costs(judged)[: training.episodes_per_jobset]
        search.tell(costs)
        limits = self._limit(self._judge.beyond(judged))
        found = self._validate(search)
        sums = played.part.sums
        ended = perf_counter()
        self.log_iteration(
            {
                "train/return_mean": -float(costs.mean()),
                "train/return_max": -float(costs.min()),
                f"train/{self.headline}": sums["headline"] / max(sums["headline_count"], 1),
                "train/unfinished_jobs": sums["unfinished"],
                "train/decisions_per_episode": sums["jobs"] / sums["episodes"],
                "train/step_size": search.step_size,
                **limits,
                **found,
                "time/sample_s": answered - started,
                "time/runner_s": played.runner_s,
                "time/learn_s": ended - answered,
                "time/iteration_s": ended - started,
                "time/decisions_per_s": sums["jobs"] / (ended - started),
            },
            decisions=int(sums["jobs"]),
            episodes=int(sums["episodes"]),
        )

    def work(self) -> tuple[Sequence[CandidateUnit], dict[str, NDArray[np.float32]]]:
        """The units of the iteration, and the candidates that play them."""
        training, search = self.config.experiment.training, self._searching()
        candidates = search.ask(self.iteration)
        if self._judge.adapts:
            candidates = np.concatenate([candidates, search.mean[None]])
        first = self.iteration * training.jobsets if training.fresh_jobsets else 0
        units = units_of(
            *(Split.TRAIN, first, training.jobsets, training.jobsets_per_unit),
            *(len(candidates), self.iteration),
        )
        return units, {CANDIDATES: candidates, **self._fixed()}

    def get_state(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """RLlib's state, that of the search, and how good its best mean was."""
        state: dict[str, Any] = super().get_state(*args, **kwargs)
        if self._search is not None:
            state[_STATE] = {
                "search": self._search.get_state(),
                "best": self._best,
                "multipliers": self._judge.multipliers,
            }
        return state

    def set_state(self, state: dict[str, Any]) -> None:
        """Takes over what `get_state` gave."""
        super().set_state({name: value for name, value in state.items() if name != _STATE})
        if _STATE in state:
            self._best = state[_STATE]["best"]
            self._judge.multipliers = state[_STATE]["multipliers"]
            self._searching().set_state(state[_STATE]["search"])

    def _searching(self) -> CandidateSearch:
        """The search; it begins with the weights that the policy has, drawn or given."""
        if self._search is None:
            experiment = self.config.experiment
            training = experiment.training
            start = joined(module_weights(self), searched_shapes(experiment))
            self._search = CandidateSearch(
                start, training.step_size, training.episodes_per_jobset, experiment.seed
            )
        return self._search

    def _fixed(self) -> dict[str, NDArray[np.float32]]:
        """Weights that all candidates have."""
        names = network_of(self.config.experiment).fixed
        return {name: value for name, value in module_weights(self).items() if name in names}

    def _limit(self, beyond: NDArray[np.float64]) -> dict[str, float]:
        """Lets multipliers adapt; returns by how much limits were broken, and what that cost."""
        found = {}
        for k, name in enumerate(self.config.experiment.training.limits):
            found[f"train/beyond_{name}"] = float(beyond[:, k].mean())
            found[f"train/multiplier_{name}"] = float(self._judge.multipliers[k])
        if self._judge.adapts:
            self._judge.adapt(beyond[-1])
        return found

    def _validate(self, search: CandidateSearch) -> dict[str, float]:
        """Tries the mean if that is due, and makes it the policy if it is the best so far.

        Before the first trial the policy is the mean itself.
        """
        training, done = self.config.experiment.training, self.iteration + 1
        mean = search.mean
        if done % training.validate_every and done != training.iterations:
            if np.isinf(self._best):
                self._hold(mean)
            return {}
        count, size = training.validation_jobsets, training.jobsets_per_unit
        units = units_of(Split.VALIDATION, 0, count, size, 1)
        played = self.begin(units, {CANDIDATES: mean[None], **self._fixed()}).play()
        cost = float(self._judge.final_costs(judged_by_all(units, played.part))[0])
        if cost < self._best:
            self._best = cost
            self._hold(mean)
        return {"train/validation_cost": cost, "train/best_cost": self._best}

    def _hold(self, flat: Vector) -> None:
        weights = split_up(flat, searched_shapes(self.config.experiment))
        self.on_learner(lambda learner: learner.hold(weights))


class EvolutionConfig(BatchedConfig):
    """Config of `Evolution`."""

    algorithm_class = Evolution
    default_learner = WeightsHolder
    preset = "deeprm-operation"

    def make_work(self, module: RLModule) -> CandidateWork | AdaptedWork:
        """See `CandidateWork`, and `AdaptedWork` where candidates adapt."""
        return work_of(self.experiment)
