"""The paper's learning on RLlib: servers play and learn on runners, each by itself.

A unit is some servers for an iteration, each with a jobset of its own. Its answer is what they have
learned, which is all that goes on to the next iteration: servers begin it empty. What a server
learns depends on nothing but its own parameters and arrivals, whoever plays it.
"""

from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.errors import Failure
from cluster_env.core.seeding import Split
from cluster_env.objectives import UTILITY
from cluster_env.worlds.accrual.rules import Rule
from cluster_env.worlds.accrual.td import Learners
from cluster_env.worlds.accrual.values import RULEBASE, RULES
from rllib_configs.algorithms.batched import (
    UnitAlgorithm,
    WeightsHolder,
    module_weights,
)
from rllib_configs.algorithms.config import BatchedConfig
from rllib_configs.config.schema import ExperimentConfig
from rllib_configs.runners.sampling import SampleUnit, iteration_units
from rllib_configs.runners.sums import Part
from rllib_configs.runners.units import Arrays
from rllib_configs.worlds.accrual.servers import Learning
from rllib_configs.worlds.accrual.state_values import value_kind

AVERAGES = ("reward", "steps", "count")
"""What of a learner goes on beside its parameters; see `cluster_env.worlds.accrual.td.LEARNER`."""


class ServersWork:
    """Has the servers of a unit play and learn, each learner by itself; see `UnitWork`."""

    def __init__(self, experiment: ExperimentConfig) -> None:
        self._task = experiment.task.build(seed=experiment.seed)
        self._num_servers = experiment.training.jobsets
        self._how = Learning.of(experiment.training)
        self._weights: Arrays = {}

    def set_weights(self, weights: Arrays) -> None:
        """Takes what all servers have learned so far."""
        self._weights = weights

    def play(self, unit: SampleUnit) -> tuple[Part, None]:
        """Plays an episode of each server; server k has jobset k of those of an iteration.

        Returns:
            Sums for metrics; and apart from them what each server knows afterwards, as it is kept
            from iteration to iteration.
        """
        world: Any = self._task.world
        simulator = world.simulator()
        simulator.load(self._task.jobsets(Split.TRAIN, unit.jobsets), UTILITY)
        first = unit.jobsets[0] - unit.iteration * self._num_servers
        last = first + len(unit.jobsets)
        learners = self._learners(slice(first * world.num_learners, last * world.num_learners))
        before = learners.memory["count"].sum()
        simulator.play(Rule("best_fit", "value"), learners=learners, learning=True)
        schedule = simulator.schedule()
        sums = {
            "episodes": schedule.num_episodes,
            "earned": float(simulator.earned.sum()),
            "room": float(schedule.end.sum()) * world.capacity,
            "busy": float(simulator.busy.sum()),
            "unfinished": int((~schedule.finished).sum()),
            "updates": int(learners.memory["count"].sum() - before),
        }
        return Part(None, sums, {unit.index: (learners.p, averages_of(learners))}), None

    def _learners(self, places: slice) -> Learners:
        """Some of them go on where they were, but for the state that they last saw."""
        learners = self._how.begin(self._weights["values"][places].astype(np.float64))
        averages = self._weights["averages"][places].astype(np.float64)
        known = averages[:, AVERAGES.index("count")] > 0
        for name, values in zip(AVERAGES, averages.T, strict=True):
            learners.memory[name][known] = values[known]
        learners.memory["rho"][known] = (learners.memory["reward"] / learners.memory["steps"])[
            known
        ]
        return learners


def averages_of(learners: Learners) -> NDArray[np.float64]:
    """What of learners goes on beside their parameters, float64 ``(num_servers, 3)``."""
    return np.stack([learners.memory[name].astype(np.float64) for name in AVERAGES], axis=1)


class FuzzyTD(UnitAlgorithm):
    """Each server tunes a value function of its own (section 1), all of them side by side."""

    def training_step(self) -> None:
        """Every server plays an episode; what it has learned then is kept."""
        started = perf_counter()
        units = iteration_units(self.config.experiment, self.iteration)
        weights = module_weights(self)
        gathered = self.begin(units, weights).play()
        learned = [gathered.part.per_unit[unit.index] for unit in units]
        found = [np.concatenate(part).astype(np.float32) for part in zip(*learned, strict=True)]
        skipped = self._go_back_where_broken(found, [weights["values"], weights["averages"]])
        kept = dict(zip(("values", "averages"), found, strict=True))
        self.on_learner(lambda learner: learner.hold(kept))
        sums, elapsed = gathered.part.sums, perf_counter() - started
        self.log_iteration(
            {
                "train/return_mean": sums["earned"] / sums["episodes"],
                "train/return_max": sums["earned"] / sums["episodes"],  # one episode of a jobset
                "train/productivity": sums["earned"] / sums["room"],
                "train/utilization": sums["busy"] / sums["room"],
                "train/unfinished_jobs": sums["unfinished"],
                "train/updates": sums["updates"],
                "train/skipped_updates": skipped,
                **self._learned(*found),
                "time/sample_s": elapsed,
                "time/runner_s": gathered.runner_s,
                "time/iteration_s": elapsed,
            },
            episodes=int(sums["episodes"]),
        )

    def _learned(
        self, values: NDArray[np.float32], averages: NDArray[np.float32]
    ) -> dict[str, float]:
        """What servers know: means over them."""
        reward, steps = averages[:, 0], averages[:, 1]
        found = {"values/rho": float((reward / np.maximum(steps, 1e-9)).mean())}
        if value_kind(self.config.experiment) == RULEBASE:
            names = [f"values/p_{rule}" for rule in RULES]
            found |= dict(zip(names, values.mean(axis=0).tolist(), strict=True))
        return found

    def _go_back_where_broken(
        self, found: list[NDArray[np.float32]], before: list[NDArray[np.float32]]
    ) -> int:
        """Lets servers whose values are not finite forget the iteration; how many they are.

        Raises:
            Failure: if there is one and the run is to stop.
        """
        broken = np.flatnonzero(~np.isfinite(found[0]).all(axis=1))
        if broken.size and self.config.experiment.training.on_nan == "stop":
            raise Failure(
                f"iteration {self.iteration + 1}: the values of server {broken[0]} are not finite; "
                f"what is kept is from before it; resume with a lower training.lr, or with "
                f"--set training.on_nan=skip to let such servers forget the iteration"
            )
        for now, then in zip(found, before, strict=True):
            now[broken] = then[broken]
        return int(broken.size)


class FuzzyTDConfig(BatchedConfig):
    """Config of `FuzzyTD`."""

    algorithm_class = FuzzyTD
    default_learner = WeightsHolder
    preset = "fuzzy-td"

    def make_work(self, module: Any) -> ServersWork:
        """See `ServersWork`."""
        return ServersWork(self.experiment)
