"""Units of expert iteration: the policy plays jobsets, and rollouts compare actions on the way."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.policy import chooser
from cluster_env.core.seeding import Purpose, Split, episode_keys, generator, uniforms
from cluster_env.core.task import Task
from cluster_env.evaluation import check_warmup, get_metric
from cluster_env.evaluation.lookahead import Compared, Lookahead, candidates, decision_key
from rllib_configs.policy_files import LearnedPolicy, policy_of
from rllib_configs.runners.sampling import SampleUnit
from rllib_configs.runners.sums import Part
from rllib_configs.runners.units import Arrays
from rllib_configs.schema import ExperimentConfig
from rllib_configs.sections import refusing

_CHOSEN = 1
"""Last key of the random numbers that say at which decisions actions are compared."""


class Labels(NamedTuple):
    """Decisions at which actions were compared, a row each.

    Where fewer actions were compared than in other rows, the action is -1, and gain and error 0.
    """

    states: NDArray[Any]  # (rows, state_size)
    actions: NDArray[np.int32]  # (rows, most), the policy's own first
    gains: NDArray[np.float64]  # (rows, most), mean over the futures, see `Compared`
    errors: NDArray[np.float64]  # (rows, most), of the means

    @classmethod
    def joined(cls, parts: Sequence["Labels"]) -> "Labels":
        """All rows of at least one part, in order."""
        return cls(*(np.concatenate(column) for column in zip(*parts, strict=True)))


@dataclass(eq=False)
class _Playing:
    """What the rows of a unit need: jobs, random numbers, and where later jobs come from."""

    workloads: Sequence[Any]
    keys: NDArray[np.uint64]  # (num_rows,), of the policy
    chosen_keys: NDArray[np.uint64]  # (num_rows,)


class LabelWork:
    """Plays units and compares actions; see `rllib_configs.runners.units.UnitWork`.

    The labels of a unit are not added up. They depend on seed, iteration, jobset and weights alone.
    """

    def __init__(self, experiment: ExperimentConfig) -> None:
        self._experiment = experiment
        self.task: Task = experiment.task.build(seed=experiment.seed)
        self._lookahead = lookahead_of(experiment, self.task)
        self._headline = get_metric(self.task.spec.headline)
        self._policy: LearnedPolicy

    def set_weights(self, weights: Arrays) -> None:
        """Takes the weights of the present policy."""
        self._policy = present_policy(self._experiment, weights)

    def play(self, unit: SampleUnit) -> tuple[Part, None]:
        """Plays the jobsets of a unit once, by the policy's own actions."""
        training, simulator = self._experiment.training, self.task.world.simulator()
        drawn = self.task.jobsets(Split.TRAIN, unit.jobsets)
        jobsets = [self._policy.view(self.task.world, jobset) for jobset in drawn]
        simulator.load(jobsets, self.task.objective)
        playing = self._playing(unit)
        decide, rewards = chooser(self._policy), np.empty(len(jobsets))
        rows = np.flatnonzero(simulator.active).astype(np.int32)
        sums = dict.fromkeys(("decisions", "returns"), 0.0)
        sums["episodes"] = float(len(jobsets))
        most, decision = 1 + training.others, 0
        states = simulator.states
        labels: list[Labels] = [_no_labels(states.shape[1], states.dtype, most)]
        while rows.size:
            numbers = uniforms(playing.keys[rows], decision)
            actions = decide(simulator, rows, numbers)
            ranked = candidates(self._policy, simulator, rows, actions, most)
            chosen = uniforms(playing.chosen_keys[rows], decision) < training.label_share
            places = [place for place in np.flatnonzero(chosen) if ranked[place].size > 1]
            compared = self._lookahead.compare(
                self._policy,
                simulator,
                [int(rows[place]) for place in places],
                [ranked[place] for place in places],
                [decision_key(numbers[place]) for place in places],
                [playing.workloads[rows[place]] for place in places],
            )
            for place, found in zip(places, compared, strict=True):
                labels.append(self._label(simulator.states[rows[place]], found))
            sums["decisions"] += rows.size
            simulator.step(rows, actions, rewards)
            sums["returns"] += float(rewards[: rows.size].sum())
            rows = rows[simulator.active[rows]]
            decision += 1
        schedule = simulator.schedule()
        headline = self._headline.values(schedule)
        sums["headline"], sums["headline_count"] = float(headline.sum()), float(headline.size)
        sums["unfinished"] = float((~schedule.finished).sum())
        return Part(None, sums, {unit.index: Labels.joined(labels)}), None

    def _playing(self, unit: SampleUnit) -> _Playing:
        seed = self._experiment.seed
        # A jobset has its own keys, so that no number depends on the unit that it is in.
        keys = [
            episode_keys(seed, Split.TRAIN, unit.iteration, jobset, count=1)
            for jobset in unit.jobsets
        ]
        chosen_keys = [
            episode_keys(seed, Split.TRAIN, unit.iteration, jobset, _CHOSEN, count=1)
            for jobset in unit.jobsets
        ]
        # Where jobsets vary, their later jobs are like those that have come.
        of_jobset = getattr(self.task.workload, "of_jobset", None)
        workloads = [
            self.task.workload
            if of_jobset is None
            else of_jobset(generator(self.task.seed, Purpose.JOBSET, Split.TRAIN, jobset))
            for jobset in unit.jobsets
        ]
        return _Playing(workloads, np.concatenate(keys), np.concatenate(chosen_keys))

    def _label(self, state: NDArray[Any], compared: Compared) -> Labels:
        """What was compared at a decision, as a row."""
        label = _no_labels(state.size, state.dtype, 1 + self._experiment.training.others, 1)
        count = compared.actions.size
        label.states[0] = state
        label.actions[0, :count] = compared.actions
        label.gains[0, :count], label.errors[0, :count] = compared.mean, compared.error
        return label


def _no_labels(state_size: int, dtype: Any, most: int, num_rows: int = 0) -> Labels:
    return Labels(
        np.zeros((num_rows, state_size), dtype),
        np.full((num_rows, most), -1, np.int32),
        np.zeros((num_rows, most)),
        np.zeros((num_rows, most)),
    )


def lookahead_of(experiment: ExperimentConfig, task: Task) -> Lookahead:
    """How the actions of an experiment are compared.

    Raises:
        InputError: if futures cannot be sampled in its world.
    """
    training = experiment.training
    return Lookahead(task, training.futures, training.others, training.reach)


def present_policy(experiment: ExperimentConfig, weights: Arrays) -> LearnedPolicy:
    """The policy that plays, which takes the action of the highest score."""
    return policy_of(experiment, weights, "present", "argmax")


def prepare(experiment: ExperimentConfig) -> ExperimentConfig:
    """Makes sure that futures can be sampled, and that jobs count in a validation.

    Raises:
        InputError: if not.
    """
    task = experiment.task.build(seed=experiment.seed)
    lookahead_of(experiment, task)
    windows = [jobset.window for jobset in task.jobsets(Split.VALIDATION, range(1))]
    with refusing("training.validation_warmup"):
        check_warmup(experiment.training.validation_warmup, windows)
    return experiment
