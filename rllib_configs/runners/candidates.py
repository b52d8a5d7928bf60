"""Units of a search: every candidate plays the same jobsets, wherever that is."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.conditioned import draw_weights, limits_in, objectives_of
from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.core.policy import Policy
from cluster_env.core.registry import unknown
from cluster_env.core.schedule import Schedule
from cluster_env.core.seeding import Purpose, Split, generator
from cluster_env.core.world import World, get_heuristic, kind_of
from cluster_env.evaluation import cost_of, evaluate, get_metric, objective_metric
from cluster_env.evaluation.metrics import episode_means
from cluster_env.objectives import mixture
from rllib_configs.learning.evolution import LEAST_COST, Judge, Limit, Vector
from rllib_configs.networks import Shapes, network_of
from rllib_configs.networks.conditions import Wanted
from rllib_configs.options import candidate_groups
from rllib_configs.policy_files import policy_of
from rllib_configs.runners.hybrid import world_in
from rllib_configs.runners.sums import Part
from rllib_configs.runners.units import Arrays
from rllib_configs.schema import ExperimentConfig

CANDIDATES = "candidates"
_OF_WANTED = 2  # last key of the stream that objectives and limits come from
SLACK = 0.1
"""Of the mean run time of jobs: waits count beside it, where limits hold on a mean that jobsets on
which hardly anybody waits would else decide; see `Limit.excess`."""

FIXED, ADAPTING = 5.0, 0.05
"""Multipliers of limits that have no other, and where they adapt."""

KEPT = -1.0
"""How far within a limit a policy counts on a jobset on which there is none."""

UNLIMITED, ALIKE = 0.25, 0.5
"""Share of the jobsets on which there is no limit of a metric, where limits are told; and of those
on which all limits are drawn as one, so that all of them are tight, or none is there."""

JOBS = 512
"""Of a jobset of a family, where the task's jobsets have no fixed number."""


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
    """Jobsets that candidates play, drawn, with what counts on them.

    Attributes:
        places: of the jobsets among those of the unit.
        world: that they are played in.
        jobsets: one or more.
        wanted: objective and limits.
        references: metrics of the reference by name, each by jobset; empty without limits.
        slack: see `Limit.excess`, by jobset.
    """

    places: Sequence[int]
    world: World
    jobsets: Sequence[JobSet]
    wanted: Wanted
    references: Mapping[str, NDArray[np.float64]]
    slack: NDArray[np.float64]


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
        self._source = Source(experiment)
        self._limits = tuple(experiment.training.limits.given())
        self._slack = SLACK if experiment.training.limits_hold == "mean" else 0.0
        self._headline = get_metric(self._source.task.kind.headline)
        self.shapes = searched_shapes(experiment, self._source.task.world)
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
            cost, limits = cost_of(played.wanted.objective), limits_of(played.wanted.limits or {})
            for row, number in enumerate(unit.candidates):
                policy = policy_of(
                    *(self._experiment, self._candidates[number], "candidate", "argmax"),
                    *(played.world, played.wanted),
                )
                schedule = evaluate(policy, played.jobsets, played.world)
                costs = episode_means(cost, schedule)
                judged[row, played.places, 0] = np.log(np.maximum(costs, LEAST_COST))
                values = self._measure(schedule)
                judged[row, played.places, 1:] = KEPT
                for name, limit in limits.items():
                    excess = limit.excess(values[name], played.references[name], played.slack)
                    judged[row, played.places, 1 + self._limits.index(name)] = excess
                self._count(sums, schedule)
        return Part(None, sums, {unit.index: judged}), None

    def _draw(self, unit: CandidateUnit) -> list[_Played]:
        """The jobsets of a unit; kept, because the next unit mostly has the same."""
        key = unit.split, unit.jobsets, unit.iteration
        if self._drawn[0] != key:
            drawn = []
            for places, task_world, jobsets, wanted in self._source.draw(unit.split, unit.jobsets):
                world = world_in(self._experiment.training, task_world, unit.iteration)
                references = self._measure(self._reference(world, jobsets)) if self._limits else {}
                run_times = np.array([float(one.duration.mean()) for one in jobsets])
                slack = 1.0 + self._slack * run_times
                drawn.append(_Played(places, world, jobsets, wanted, references, slack))
            self._drawn = key, drawn
        return self._drawn[1]

    def set_parameters(self, parameters: Any) -> None:
        """A search has no gradient."""

    def gradient(self, rows: None, step: Any) -> Part:
        """See `set_parameters`."""
        raise NotImplementedError("a search goes by the order of costs and has no gradient")

    def _reference(self, world: World, jobsets: Sequence[JobSet]) -> Schedule:
        return evaluate(reference_of(self._experiment, world), jobsets, world)

    def _measure(self, schedule: Schedule) -> dict[str, NDArray[np.float64]]:
        """The metrics that have limits, each by episode."""
        return {name: episode_means(get_metric(name), schedule) for name in self._limits}

    def _count(self, sums: dict[str, float], schedule: Schedule) -> None:
        values = self._headline.values(schedule)
        sums["jobs"] += schedule.job.size
        sums["episodes"] += schedule.num_episodes
        sums["unfinished"] += float((~schedule.finished).sum())
        sums["headline"] += float(values.sum())
        sums["headline_count"] += values.size


class Source:
    """Where the jobsets of a search come from, and what counts on each.

    That is the task, or a family of its world, and the task's objective within the limits of the
    training. A network that is told of objectives or limits learns from others on each jobset:
    weights of the objectives that it is told of, and limits from none to no worse at all. All of
    it comes from the random streams of (seed, split, index), as tasks do.
    """

    def __init__(self, experiment: ExperimentConfig) -> None:
        self.task = experiment.task.build(seed=experiment.seed)
        self._seed = experiment.seed
        training = experiment.training
        name = training.family
        families = self.task.kind.families
        if name and name not in families:
            raise unknown("family of jobsets", name, families)
        num_jobs = int(getattr(self.task.workload, "jobs", 0) or JOBS)
        self._family = partial(families[name], self.task.world, num_jobs) if name else None
        self._wanted = Wanted(self.task.objective, training.limits.given())
        told = getattr(training, "conditioned_on", ())
        self._objectives, self._told_limits = objectives_of(told), limits_in(told)

    def draw(
        self, split: Split, indices: Sequence[int]
    ) -> Iterator[tuple[Sequence[int], World, Sequence[JobSet], Wanted]]:
        """The jobsets of indices with their places, by world and by what counts on them.

        It is the same whoever draws them.
        """
        alike = not self._objectives and not self._told_limits
        if self._family is None and alike:
            found = self.task.jobsets(split, indices)
            yield range(len(indices)), self.task.world, found, self._wanted
            return
        for place, index in enumerate(indices):
            keys = (self._seed, Purpose.TASK, int(split), index)
            world, jobset = self.task.world, None
            if self._family is not None:
                world, jobset = self._family(generator(*keys))
            jobsets = self.task.jobsets(split, [index]) if jobset is None else [jobset]
            wanted = self._wanted if alike else self._draw_wanted(generator(*keys, _OF_WANTED))
            yield [place], world, jobsets, wanted

    def _draw_wanted(self, rng: np.random.Generator) -> Wanted:
        objective, limits = self._wanted.objective, dict(self._wanted.limits or {})
        if self._objectives:
            objective = mixture(draw_weights(self._objectives, rng))
        alike = rng.random() < ALIKE
        worse, free = float(rng.random()) ** 2, rng.random() < UNLIMITED
        for name in self._told_limits:
            if not alike:
                worse, free = float(rng.random()) ** 2, rng.random() < UNLIMITED
            if free:
                del limits[name]
            else:
                limits[name] = worse
        return Wanted(objective, limits)


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


def searched_shapes(experiment: ExperimentConfig, world: World) -> Shapes:
    """Shapes of the weights that a search looks for, by name."""
    network = network_of(experiment)
    shapes = network.shapes(experiment, world)
    return {name: shape for name, shape in shapes.items() if name not in network.fixed}


def split_up(flat: Vector, shapes: Shapes) -> dict[str, NDArray[np.float32]]:
    """Weights by name, of which `joined` made one vector."""
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes.values()])
    parts = np.split(flat, ends[:-1])
    return {
        name: part.reshape(shape) for (name, shape), part in zip(shapes.items(), parts, strict=True)
    }


def joined(weights: Mapping[str, NDArray[np.float32]], shapes: Shapes) -> Vector:
    """All weights of a network as one vector, in the order of its shapes."""
    return np.concatenate([weights[name].ravel() for name in shapes]).astype(np.float32)


def limits_of(limits: Mapping[str, float]) -> dict[str, Limit]:
    """Limits by name of the metric, from the shares by which metrics may be worse."""
    return {name: Limit(worse, get_metric(name).higher_is_better) for name, worse in limits.items()}


def judge_of(experiment: ExperimentConfig) -> Judge:
    """What the candidates of an experiment are judged by, at its start."""
    training = experiment.training
    multipliers = training.multipliers.given()
    usual = ADAPTING if training.multiplier_rate else FIXED
    return Judge(
        [multipliers.get(name, usual) for name in training.limits.given()],
        training.limits_hold == "mean",
        training.multiplier_rate,
        training.pooled,
    )


def reference_of(experiment: ExperimentConfig, world: World) -> Policy:
    """What limits are relative to."""
    return get_heuristic(experiment.training.reference or kind_of(world).baselines[0], world)


def prepare(experiment: ExperimentConfig) -> ExperimentConfig:
    """Makes sure that a search can begin.

    Raises:
        InputError: if there is no such family or reference, or a limit contradicts the objective.
    """
    task = Source(experiment).task
    headline = objective_metric(task.objective).name
    training = experiment.training
    told = limits_in(getattr(training, "conditioned_on", ()))
    for name in told:
        if name not in training.limits.given():
            raise InputError(
                f"training.conditioned_on tells a policy of the limit of {name}, so give "
                f"training.limits.{name}, which it is told where nobody says otherwise"
            )
    if told and (training.limits_hold == "mean" or training.multiplier_rate):
        raise InputError(
            "limits that a policy is told of differ from jobset to jobset, so they hold on each, "
            "with multipliers that stay; leave out training.limits_hold and multiplier_rate"
        )
    for name in training.limits.given():
        if name.startswith(headline):  # utilization, and that up to the last finish
            raise InputError(
                f"training.limits: {headline} is what the objective makes as good as can be, so a "
                f"limit on {name} contradicts the objective; limit other metrics, as "
                f"{' or '.join(one for one in task.kind.price if one != headline) or 'wait'}"
            )
    reference_of(experiment, task.world)
    return experiment
