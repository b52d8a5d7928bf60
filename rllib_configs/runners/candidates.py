"""Units of a search: every candidate plays the same jobsets, wherever that is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.jobs import JobSet
from cluster_env.core.schedule import Schedule
from cluster_env.core.seeding import Split
from cluster_env.core.world import World
from cluster_env.evaluation import evaluate, get_metric, nonnegative_cost
from cluster_env.evaluation.metrics import episode_means
from cluster_env.objectives import Objective
from rllib_configs.config.options import candidate_groups
from rllib_configs.config.schema import ExperimentConfig
from rllib_configs.learning.evolution import LEAST_COST
from rllib_configs.policy_files import policy_of
from rllib_configs.runners.sums import Part
from rllib_configs.runners.units import Arrays
from rllib_configs.search_problem import (
    SearchProblem,
    limits_of,
    reference_of,
    searched_shapes,
    split_up,
)

CANDIDATES = "candidates"
SLACK = 0.1
"""Of the mean run time of jobs: waits count beside it, where limits hold on a mean that jobsets on
which hardly anybody waits would else decide; see `Limit.excess`."""

KEPT = -1.0
"""How far within a limit a policy counts on a jobset on which there is none."""


@dataclass(frozen=True)
class CandidateUnit:
    """Jobsets that some of the candidates play.

    Attributes:
        index: place of the unit in its round.
        split: training or validation.
        jobsets: their indices in the split.
        candidates: their places among all.
        iteration: of the run, for what changes in its course; None to play the task as it is.
    """

    index: int
    split: Split
    jobsets: tuple[int, ...]
    candidates: range
    iteration: int | None = None


@dataclass(frozen=True, eq=False)
class _Played:
    """Jobsets that candidates play, drawn, with what counts on them."""

    places: Sequence[int]  # among the jobsets of the unit
    world: World
    jobsets: Sequence[JobSet]
    objective: Objective
    references: Mapping[str, NDArray[np.float64]]  # metrics of the reference, each by jobset
    slack: NDArray[np.float64]  # see `Limit.excess`, by jobset


class CandidateWork:
    """Plays candidates on the jobsets of units; see `rllib_configs.runners.units.UnitWork`.

    The result of a unit is not added up: float64
    ``(num_candidates, num_jobsets, 1 + number of limits)``, ln(cost) of each of its candidates on
    each of its jobsets, and by how much it is beyond each limit; see `judged_by_all`.

    Attributes:
        shapes: of the weights of a candidate by name, see `searched_shapes`.
    """

    def __init__(self, experiment: ExperimentConfig) -> None:
        self._experiment = experiment
        self._problem = SearchProblem(experiment)
        self._limits = limits_of(experiment.training.limits)
        self._slack = SLACK if experiment.training.limits_hold == "mean" else 0.0
        self._headline = get_metric(self._problem.task.spec.headline)
        self.shapes = searched_shapes(experiment)
        self._candidates: list[dict[str, NDArray[np.float32]]] = []
        self._drawn: tuple[object, list[_Played]] = (None, [])

    def set_weights(self, weights: Arrays) -> None:
        """Takes the candidates, float32 ``(num_candidates, num_parameters)``.

        What else there is by name are weights that all of them have.
        """
        common = {name: value for name, value in weights.items() if name != CANDIDATES}
        self._candidates = [split_up(one, self.shapes) | common for one in weights[CANDIDATES]]

    def play(self, unit: CandidateUnit) -> tuple[Part, None]:
        """Plays candidates on the jobsets of a unit."""
        judged = np.empty((len(unit.candidates), len(unit.jobsets), 1 + len(self._limits)))
        sums = dict.fromkeys(("jobs", "episodes", "unfinished", "headline", "headline_count"), 0.0)
        for played in self._draw(unit):
            cost = nonnegative_cost(played.objective)
            for row, number in enumerate(unit.candidates):
                policy = policy_of(
                    *(self._experiment, self._candidates[number], "candidate", "argmax"),
                    *(played.world, played.objective),
                )
                schedule = evaluate(policy, played.jobsets, played.world)
                # Nothing counts in a window whose jobs are all of the warm-up: alike for everybody.
                costs = np.nan_to_num(episode_means(cost, schedule), nan=1.0)
                judged[row, played.places, 0] = np.log(np.maximum(costs, LEAST_COST))
                values = self._measure(schedule)
                for column, (name, limit) in enumerate(self._limits.items(), start=1):
                    excess = limit.excess(values[name], played.references[name], played.slack)
                    kept = np.nan_to_num(excess, nan=KEPT)
                    judged[row, played.places, column] = kept
                headline = self._headline.values(schedule)
                sums["jobs"] += schedule.job.size
                sums["episodes"] += schedule.num_episodes
                sums["unfinished"] += float((~schedule.finished).sum())
                sums["headline"] += float(headline.sum())
                sums["headline_count"] += headline.size
        return Part(None, sums, {unit.index: judged}), None

    def _draw(self, unit: CandidateUnit) -> list[_Played]:
        """The jobsets of a unit; kept, because the next unit mostly has the same."""
        key = unit.split, unit.jobsets, unit.iteration
        if self._drawn[0] != key:
            drawn = []
            for places, of_task, jobsets, objective in self._problem.draw(unit.split, unit.jobsets):
                world = self._experiment.training.world_at(of_task, unit.iteration)
                references: dict[str, NDArray[np.float64]] = {}
                if self._limits:
                    rule = reference_of(self._experiment, world)
                    references = self._measure(evaluate(rule, jobsets, world))
                run_times = np.array([float(one.duration.mean()) for one in jobsets])
                slack = 1.0 + self._slack * run_times
                drawn.append(_Played(places, world, jobsets, objective, references, slack))
            self._drawn = key, drawn
        return self._drawn[1]

    def _measure(self, schedule: Schedule) -> dict[str, NDArray[np.float64]]:
        """The metrics that have limits, each by episode."""
        return {name: episode_means(get_metric(name), schedule) for name in self._limits}


def units_of(
    split: Split,
    first: int,
    count: int,
    size: int,
    num_candidates: int,
    iteration: int | None = None,
) -> list[CandidateUnit]:
    """Cuts jobsets and candidates into units, whatever the number of runners.

    Candidates are played one by one, so that it costs nothing to cut between them; units of the
    same jobsets are neighbors, which one runner mostly has.

    Args:
        split: of the jobsets.
        first: index of the first.
        count: how many.
        size: jobsets of a unit; the last one may have fewer.
        num_candidates: all of them.
        iteration: see `CandidateUnit`.
    """
    starts = range(first, first + count, size)
    groups = candidate_groups(len(starts), num_candidates)
    ends = [num_candidates * k // groups for k in range(groups + 1)]
    shares = [
        (tuple(range(start, min(start + size, first + count))), range(begin, end))
        for start in starts
        for begin, end in pairwise(ends)
    ]
    return [
        CandidateUnit(index, split, jobsets, candidates, iteration)
        for index, (jobsets, candidates) in enumerate(shares)
    ]


def judged_by_all(units: Sequence[CandidateUnit], part: Part) -> NDArray[np.float64]:
    """What units came to, put together.

    Args:
        units: those of a round, as `units_of` gives them.
        part: their sum.

    Returns:
        float64 ``(num_candidates, num_jobsets, 1 + number of limits)``.
    """
    by_jobsets: dict[tuple[int, ...], list[NDArray[np.float64]]] = {}
    for unit in units:
        by_jobsets.setdefault(unit.jobsets, []).append(part.per_unit[unit.index])
    return np.concatenate([np.concatenate(each) for each in by_jobsets.values()], axis=1)
