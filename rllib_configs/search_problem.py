"""What a search is about, by its config: jobsets, limits, and weights as one vector."""

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from cluster_env.core.errors import InputError
from cluster_env.core.jobs import JobSet
from cluster_env.core.policy import Policy
from cluster_env.core.registry import unknown
from cluster_env.core.seeding import Purpose, Split, generator
from cluster_env.core.spec import get_heuristic, spec_of
from cluster_env.core.world import World
from cluster_env.evaluation import get_metric
from cluster_env.objectives import Objective, mixture
from cluster_env.task import Task
from rllib_configs.conditioned import draw_weights, objectives_of
from rllib_configs.config.changes import change
from rllib_configs.config.loading import parse_section
from rllib_configs.config.options import AdaptationSection, TrainingSection
from rllib_configs.config.schema import ExperimentConfig
from rllib_configs.config.task_schema import TaskSection
from rllib_configs.learning.evolution import CandidateJudge, Limit, Vector
from rllib_configs.networks.registry import Shapes, network_of

_SEED_BOUND = 2**63
_OF_OBJECTIVE = 2  # last key of the stream that objectives come from

FIXED, ADAPTING = 5.0, 0.05
"""Multipliers of limits that have no other, and where they adapt."""

JOBS = 512
"""Of a jobset of a family, where the task's jobsets have no fixed number."""


class SearchProblem:
    """Where the jobsets of a search come from, and what counts on each.

    That is the task, or a family of its world, and the task's objective within the limits of the
    training. A network that is told of objectives learns from other weights of these on each
    jobset. All of it comes from the random streams of (seed, split, index), as tasks do.
    """

    def __init__(self, experiment: ExperimentConfig) -> None:
        self.task: Task = experiment.task.build(seed=experiment.seed)
        self._seed = experiment.seed
        training = experiment.training
        self._family = _family_of(self.task, training) if training.family else None
        self._objectives = objectives_of(getattr(training, "conditioned_on", ()))

    def draw(
        self, split: Split, indices: Sequence[int]
    ) -> Iterator[tuple[Sequence[int], World, Sequence[JobSet], Objective]]:
        """The jobsets of indices with their places, by world and by what counts on them.

        It is the same whoever draws them.
        """
        if self._family is None and not self._objectives:
            found = self.task.jobsets(split, indices)
            yield range(len(indices)), self.task.world, found, self.task.objective
            return
        for place, index in enumerate(indices):
            keys = (self._seed, Purpose.TASK, int(split), index)
            world, jobset = self.task.world, None
            if self._family is not None:
                world, jobset = self._family(split, generator(*keys))
            jobsets = self.task.jobsets(split, [index]) if jobset is None else [jobset]
            objective = self.task.objective
            if self._objectives:
                objective = mixture(draw_weights(self._objectives, generator(*keys, _OF_OBJECTIVE)))
            yield [place], world, jobsets, objective


def _family_of(
    task: Task, training: TrainingSection
) -> Callable[[Split, np.random.Generator], tuple[World, JobSet]]:
    """Draws a machine and its jobs from the family of the training.

    Raises:
        InputError: if there is no such family, it lacks job logs, or the task has a log or a
            described site, on which nothing would be trained.
    """
    name, of_world = training.family, task.spec.training
    for setting, value in (
        ("task.workload.trace", getattr(task.workload, "path", None)),
        ("task.world.site", getattr(task.world, "site", None)),
    ):
        if value is not None:
            raise InputError(
                f"nothing would be trained on {setting}, because jobsets of training.family={name} "
                f"have machines and jobs of their own; add --set training.family="
            )
    num_jobs = int(getattr(task.workload, "jobs", 0) or JOBS)
    if name in of_world.site_families:
        draw = of_world.site_families[name](**dict(training.sites))
        return lambda split, rng: draw(split, task.world, num_jobs, rng)
    if name not in of_world.families:
        known = (*of_world.families, *of_world.site_families)
        raise unknown("family of jobsets", name, known)
    family = of_world.families[name]
    # Drawn sites have no end, so that a split needs no jobs of its own.
    return lambda split, rng: family(task.world, num_jobs, rng)


def limits_of(limits: Mapping[str, float]) -> dict[str, Limit]:
    """Limits by name of the metric, from the shares by which metrics may be worse."""
    return {name: Limit(worse, get_metric(name).higher_is_better) for name, worse in limits.items()}


def judge_of(experiment: ExperimentConfig) -> CandidateJudge:
    """What the candidates of an experiment are judged by, at its start."""
    training = experiment.training
    multipliers = training.multipliers
    usual = ADAPTING if training.multiplier_rate else FIXED
    return CandidateJudge(
        [multipliers.get(name, usual) for name in training.limits],
        training.limits_hold == "mean",
        training.multiplier_rate,
        training.pooled,
    )


def reference_of(experiment: ExperimentConfig, world: World) -> Policy:
    """What limits are relative to."""
    return get_heuristic(experiment.training.reference or spec_of(world).baselines[0], world)


def adapted_experiment(
    experiment: ExperimentConfig, task: int, keys: tuple[int, ...] = ()
) -> ExperimentConfig:
    """A task that candidates adapt to, and the inner search there; see `AdaptationSection`.

    Args:
        experiment: the outer search.
        task: number of the task.
        keys: split and index of the jobset that the adapted policy is judged by. The inner search
            has a seed for each, so its jobsets are others. Without keys: the outer seed.

    Raises:
        InputError: if the task is impossible.
    """
    training = experiment.training
    adaptation: AdaptationSection = training.adaptation
    data = {"task": experiment.task.model_dump(mode="json")}
    change(data, {f"task.{key}": values[task] for key, values in adaptation.tasks.items()})
    seed = experiment.seed
    if keys:
        seed = int(generator(seed, Purpose.EVOLUTION, *keys).integers(_SEED_BOUND))
    search = {
        "iterations": adaptation.iterations,
        "jobsets": 1,
        "fresh_jobsets": True,
        "episodes_per_jobset": adaptation.candidates,
        "step_size": adaptation.step_size,
        "validate_every": max(adaptation.iterations, 1),
        "adaptation": AdaptationSection(),
    }
    return experiment.model_copy(
        update={
            "seed": seed,
            "task": parse_section(TaskSection, data["task"]),
            "training": training.model_copy(update=search),
        }
    )


def prepare(experiment: ExperimentConfig) -> ExperimentConfig:
    """Makes sure that a search can begin.

    Raises:
        InputError: if there is no such family or reference, a limit contradicts the objective, or
            there is no task such as candidates shall adapt to.
    """
    for number in range(experiment.training.adaptation.num_tasks):
        adapted_experiment(experiment, number).task.build()
    task = SearchProblem(experiment).task
    headline = task.objective.metric.name
    training = experiment.training
    for name in training.limits:
        if name.startswith(headline):  # utilization, and that up to the last finish
            raise InputError(
                f"training.limits: the objective optimizes {headline} already, so a limit "
                f"on {name} contradicts it; limit other metrics, as "
                f"{' or '.join(one for one in task.spec.side_metrics if one != headline) or 'wait'}"
            )
    reference_of(experiment, task.world)
    return experiment


def searched_shapes(experiment: ExperimentConfig) -> Shapes:
    """Shapes of the weights that a search looks for, by name."""
    network = network_of(experiment)
    shapes = network.shapes(experiment, experiment.task.world)
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
