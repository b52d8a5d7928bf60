"""Training, step by step: iterations, evaluations and states, and no files of a run directory.

A command that keeps its records beside the algorithm (`tune_jobs.runs.training`) and a trial whose
records are kept by another process (`tune_jobs.sweeps.trial`) both train with this.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rllib_configs import builders
from rllib_configs.config.schema import ExperimentConfig
from rllib_configs.policies import learned_policy, save_policy, start_from
from tune_jobs.processes.capacity import cpus_for
from tune_jobs.processes.pieces import Spread
from tune_jobs.processes.ray_session import without_ray_chatter
from tune_jobs.processes.spreading import here
from tune_jobs.runs.validation import RATIO, Validation

ALGORITHM = "algorithm"
POLICY = "policy"
PARTS = 2
"""Pieces of an evaluation for each runner, so that a slow one costs little."""


class Trainer:
    """An algorithm, the jobsets that it is validated on, and how far it is.

    Needs a Ray that this process is connected to. Ends with `close`.

    Args:
        config: what to train; with maml, the base of its family is the task.
        seen: told how many parts of an evaluation the runners have done, and of how many.

    Attributes:
        config: the same.
        validation: what it is evaluated on.
        done: iterations that it has done.
        references: metric of the heuristics to beat, by name; empty before `measure_references`.
        metrics: those of the last iteration; see `rllib_configs.builders.iteration_metrics`.
        evaluation: metrics of the newest evaluation, by the names of
            `cluster_env.evaluation.summary.flat_summary`; empty before the first.
        evaluated: the iteration of it.

    Raises:
        InputError: if there are more runners than units of work.
    """

    def __init__(
        self, config: ExperimentConfig, seen: Callable[[int, int], None] | None = None
    ) -> None:
        self.config = config
        self.validation = Validation(config)
        self.done = 0
        self.references: dict[str, float] = {}
        self.metrics: dict[str, float] = {}
        self.evaluation: dict[str, float] = {}
        self.evaluated = 0
        self._seen = seen
        with without_ray_chatter():
            self._algorithm = builders.build_algorithm(config)

    def close(self) -> None:
        """Ends the algorithm's processes."""
        self._algorithm.stop()

    def start(self) -> None:
        """Begins with the weights of an earlier run, if the config names one."""
        if self.config.training.start is not None:
            start_from(self._algorithm, self.config.training.start)

    def restore(self, folder: Path, iteration: int) -> None:
        """Goes on from a state; only an algorithm that has not trained yet can.

        Args:
            folder: what `save` wrote.
            iteration: iterations that had been done then.
        """
        self._algorithm.restore_from_path(str(folder / ALGORITHM))
        self.done = iteration

    def measure_references(self) -> dict[str, float]:
        """Evaluates the heuristics to beat, once, and returns their metrics by name."""
        if not self.references:
            self.references = self.validation.references(*self._spread())
        return self.references

    @property
    def finished(self) -> bool:
        """Whether all iterations are done."""
        return self.done >= self.config.training.iterations

    def iterate(self) -> dict[str, float]:
        """Does an iteration, and an evaluation if one is due.

        Returns:
            The row of the iteration in ``metrics.csv``.
        """
        self.metrics = builders.iteration_metrics(self._algorithm.train())
        self.done += 1
        row = {**self.metrics, **self._throughput()}
        if self.is_due(self.config.evaluation.every):
            row |= self._evaluate()
        return row

    def is_due(self, every: int) -> bool:
        """Whether something is due now, that is after every so many iterations and the last."""
        last = self.done == self.config.training.iterations
        return last or bool(every and self.done % every == 0)

    def save(self, folder: Path) -> None:
        """Writes a state: the algorithm's, and the policy in a folder of its own."""
        self._algorithm.save_to_path(str(folder / ALGORITHM))
        self.save_policy(folder / POLICY)

    def save_policy(self, folder: Path) -> None:
        """Writes the policy; see `rllib_configs.policy_files.load_policy`."""
        save_policy(self._algorithm, self.config, folder)

    def _evaluate(self) -> dict[str, float]:
        policies = [learned_policy(self._algorithm)]
        (self.evaluation,) = self.validation.evaluate(policies, *self._spread())
        self.evaluated = self.done
        row = {f"eval/{name}": value for name, value in self.evaluation.items()}
        value = self.evaluation[self.validation.metric]
        ratio = cost_ratio(value, self.measure_references(), self.validation.higher_is_better)
        return row | ({} if math.isnan(ratio) else {RATIO: ratio})

    def _spread(self) -> tuple[Spread, int]:
        """What evaluates, and in how many parts: the runners, if there are several."""
        runners = self.config.resources.num_runners
        return (self._on_runners, PARTS * runners) if runners > 1 else (here, 1)

    def _on_runners(
        self, function: Callable[[Any, Any], Any], shared: Any, pieces: Sequence[Any]
    ) -> list[Any]:
        """See `Spread`."""
        seen = self._seen or (lambda done, total: None)
        seen(0, len(pieces))
        found: list[Any] = self._algorithm.map(
            function, shared, pieces, lambda done: seen(done, len(pieces))
        )
        return found

    def _throughput(self) -> dict[str, float]:
        training, metrics = self.config.training, self.metrics
        if "time/decisions_per_s" in metrics:
            return {}
        episodes = training.jobsets * training.episodes_per_jobset
        decisions = metrics.get("train/decisions_per_episode", 0.0) * episodes
        seconds = metrics.get("time/iteration_s", 0.0)
        return {"time/decisions_per_s": decisions / seconds} if seconds and decisions else {}


def start_trainer(
    config: ExperimentConfig, say: Callable[[str], None], seen: Callable[[int, int], None]
) -> Trainer:
    """A trainer whose runners have a CPU each, which it waits for before.

    Args:
        config: see `Trainer`.
        say: told what it waits for, see `tune_jobs.processes.capacity.cpus_for`.
        seen: see `Trainer`.

    Raises:
        InputError: if there are more runners than units of work, or than CPUs in the cluster.
        Failure: if the CPUs have not come free in time.
    """
    with cpus_for(config, say):
        return Trainer(config, seen)


def cost_ratio(value: float, references: Mapping[str, float], higher_is_better: bool) -> float:
    """How a policy does beside the best heuristic, so that objectives can be compared.

    Args:
        value: metric of the policy.
        references: the same metric of heuristics, on the same jobsets; at least one.
        higher_is_better: whether a larger metric is better.

    Returns:
        Below 1 where the policy is better; NaN where a ratio means nothing.
    """
    best = max(references.values()) if higher_is_better else min(references.values())
    if not (value > 0 and best > 0):
        return math.nan
    return best / value if higher_is_better else value / best
